"""What a check finds, and what checks look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from volcano_py.scheduler.engine import CycleResult, Engine

Document = dict[str, Any]
Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        severity: error: something can't work; warning: it works otherwise than people expect.
        object: ``Kind namespace/name``.
        evidence: what was seen, in numbers.
        fix: what to do, with the command where there is one.
        check: who found it; filled in by the registry.
    """

    severity: Severity
    object: str
    evidence: str
    fix: str
    check: str = ""

    def data(self) -> dict[str, str]:
        """For programs."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The cluster as the checks see it.

    Attributes:
        objects: documents by kind; kinds that could not be read are missing.
        engine: holds the same objects; one cycle has run in it.
        result: of that cycle.
        now: our clock when the server answered, epoch seconds; *server_now* its clock, None where it
            doesn't say.
        rights: who may not do what, see ``checks/rbac``.
        unread: kind -> why it could not be read.
    """

    objects: Mapping[str, Sequence[Document]]
    engine: Engine
    result: CycleResult
    now: float
    server_now: float | None = None
    rights: Sequence[Denied] = ()
    unread: Mapping[str, str] = field(default_factory=dict)

    def of(self, kind: str) -> Sequence[Document]:
        """Documents of *kind*; none where they could not be read."""
        return self.objects.get(kind, ())

    @property
    def server_time(self) -> float:
        """The server's clock where it is known, else ours."""
        return self.now if self.server_now is None else self.server_now


@dataclass(frozen=True, slots=True)
class Denied:
    """A right that a component's role gives and the server refuses."""

    account: str
    verb: str
    resource: str
    namespace: str


Check = Callable[[Evidence], Iterable[Finding]]


def name_of(document: Document) -> str:
    """``namespace/name``, or the name alone outside namespaces."""
    meta = document.get("metadata") or {}
    namespace, name = meta.get("namespace"), meta.get("name", "")
    return f"{namespace}/{name}" if namespace else str(name)


def labels_of(document: Document) -> Mapping[str, str]:
    """Its labels."""
    return (document.get("metadata") or {}).get("labels") or {}


def annotations_of(document: Document) -> Mapping[str, str]:
    """Its annotations."""
    return (document.get("metadata") or {}).get("annotations") or {}


def some(names: Sequence[str], most: int = 3) -> str:
    """The first of *names*, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
