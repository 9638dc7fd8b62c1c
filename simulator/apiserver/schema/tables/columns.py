"""A column of a table, and the small values that many columns share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from volcano_py.simulator.apiserver.schema.tables.ages import age

Document = Mapping[str, Any]
# Takes the object and the time in seconds since 1970.
Cell = Callable[[Document, float], Any]

NONE = "<none>"
UNSET = "<unset>"


class Column(NamedTuple):
    """One column.

    Attributes:
        name: As the heading says it.
        cell: What stands in it.
        type: ``string``, ``integer``, ``boolean``, ``date`` or ``number``.
        priority: 0 is always shown, 1 with ``-o wide`` only.
        format: ``name`` for the column that names the object.
        description: What the column means, for people.
    """

    name: str
    cell: Cell
    type: str = "string"
    priority: int = 0
    format: str = ""
    description: str = ""


def field(document: Document, *path: str, default: Any = None) -> Any:
    """The value at *path*; *default* where there is none."""
    value: Any = document
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
        if value is None:
            return default
    return value


def at(*path: str, default: Any = None) -> Cell:
    """A cell that shows the value at *path*."""
    return lambda document, now: field(document, *path, default=default)


def text(*path: str, default: str = "") -> Cell:
    """A cell that shows the value at *path*, and *default* where it is empty as well."""
    return lambda document, now: field(document, *path) or default


def count(*path: str) -> Cell:
    """A cell that shows how many entries the list or map at *path* has."""
    return lambda document, now: len(field(document, *path, default=()))


def wide(name: str, cell: Cell) -> Column:
    """A column that is shown with ``-o wide`` only."""
    return Column(name, cell, priority=1)


def created(document: Document, now: float) -> str:
    """The object's age."""
    return age(field(document, "metadata", "creationTimestamp"), now)


NAME = Column("Name", at("metadata", "name"), format="name", description="The object's name.")
AGE = Column("Age", created, description="How long ago the object was made.")
CREATED_AT = Column(
    "Created At", at("metadata", "creationTimestamp"), type="date", description="When the object was made."
)


def joined(items: Iterable[Any]) -> str:
    """Texts with commas between them."""
    return ",".join(str(item) for item in items)


def labels(chosen: Mapping[str, Any] | None) -> str:
    """``a=1,b=2``, or ``<none>``."""
    return joined(f"{key}={chosen[key]}" for key in sorted(chosen)) if chosen else NONE


def selector(chosen: Mapping[str, Any] | None) -> str:
    """A label selector in the short form that ``-l`` takes, or ``<none>``."""
    return selector_text(chosen or {}) or NONE


def selector_text(chosen: Mapping[str, Any]) -> str:
    """A label selector in the short form; empty where it asks nothing."""
    exact = chosen.get("matchLabels") or {}
    parts = [f"{key}={exact[key]}" for key in sorted(exact)]
    parts += [_requirement(one) for one in chosen.get("matchExpressions") or ()]
    return joined(parts)


def _requirement(one: Mapping[str, Any]) -> str:
    key, operator, values = one["key"], one["operator"], one.get("values") or ()
    if operator == "Exists":
        return str(key)
    if operator == "DoesNotExist":
        return f"!{key}"
    return f"{key} {operator.lower()} ({joined(sorted(values))})"


def pod_template(*path: str) -> list[Column]:
    """The columns of a pod template at *path*: what it runs."""

    def of(name: str) -> Cell:
        return lambda document, now: joined(
            container.get(name, "") for container in field(document, *path, "spec", "containers", default=())
        )

    return [wide("Containers", of("name")), wide("Images", of("image"))]


def select(*path: str) -> Column:
    """The column of a label selector at *path*."""
    return wide("Selector", lambda document, now: selector(field(document, *path)))
