"""What the server writes into a CustomResourceDefinition's status: whether its names are free.

A definition is served once its names are accepted; until then its objects cannot be reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from volcano_py.simulator.apiserver.schema.kinds import Document, ServedKind

_CONFLICTS = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}


def status_of(document: Document, kinds: Iterable[ServedKind], now: str) -> Document:
    """The status of a definition.

    Args:
        document: The CustomResourceDefinition as stored.
        kinds: What is served now.
        now: The time, RFC 3339, for conditions that change.
    """
    spec = document["spec"]
    before: Mapping[str, Any] = document.get("status") or {}
    bucket = f"{spec['names']['plural']}.{spec['group']}"
    others = [kind for kind in kinds if kind.group == spec["group"] and kind.bucket != bucket]
    accepted, conflict = _accepted(spec["names"], before.get("acceptedNames") or {}, others)
    stored = list(before.get("storedVersions") or ())
    stored += [one["name"] for one in spec["versions"] if one["storage"] and one["name"] not in stored]
    return {
        "conditions": _conditions(before.get("conditions") or (), conflict, now),
        "acceptedNames": accepted,
        "storedVersions": stored,
    }


def is_established(status: Mapping[str, Any]) -> bool:
    """Whether a definition with this status is to be served."""
    return any(
        one["type"] == "Established" and one["status"] == "True" for one in status.get("conditions") or ()
    )


def _accepted(
    names: Mapping[str, Any], before: Mapping[str, Any], others: Iterable[ServedKind]
) -> tuple[Document, tuple[str, str] | None]:
    """The names that nobody else has, and reason and message of the last one that somebody has."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        resources |= {other.plural, other.singular, *other.names.short}
        kinds |= {other.kind, other.list_kind}
    accepted: Document = {"plural": "", "kind": "", **before}
    conflict: tuple[str, str] | None = None
    for field, reason in _CONFLICTS.items():
        value = names.get(field)
        taken = kinds if field in ("kind", "listKind") else resources
        clash = [name for name in (value if isinstance(value, list) else [value]) if name in taken]
        if clash:
            conflict = reason, f'"{clash[0]}" is already in use'
        elif value:
            accepted[field] = value
    if names.get("categories"):
        accepted["categories"] = names["categories"]
    return accepted, conflict


def fill_names(document: Document) -> None:
    """Names that follow from the others, and how versions are converted, in place."""
    spec: Document = document.get("spec") or {}
    names: Document = spec.get("names") or {}
    if kind := names.get("kind"):
        names.setdefault("singular", kind.lower())
        names.setdefault("listKind", f"{kind}List")
    if spec and not spec.get("conversion"):
        spec["conversion"] = {"strategy": "None"}


def _conditions(
    before: Iterable[Mapping[str, Any]], conflict: tuple[str, str] | None, now: str
) -> list[dict[str, Any]]:
    held = {one["type"]: dict(one) for one in before}
    if conflict is not None:
        wanted = {"NamesAccepted": ("False", *conflict)}
        if held.get("Established", {}).get("status") != "True":
            wanted["Established"] = ("False", "NotAccepted", "not all names are accepted")
    else:
        wanted = {
            "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
            "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
        }
    for name, (status, reason, message) in wanted.items():
        old = held.get(name)
        since = old["lastTransitionTime"] if old and old["status"] == status else now
        held[name] = {
            "type": name,
            "status": status,
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        }
    return list(held.values())
