"""Kinds that are always there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from volcano_py.simulator.apiserver.schema.builtin_reading import struct_reader
from volcano_py.simulator.apiserver.schema.builtin_shapes import struct_shape
from volcano_py.simulator.apiserver.schema.checks import CHECKS
from volcano_py.simulator.apiserver.schema.definitions import fill_names
from volcano_py.simulator.apiserver.schema.kinds import (
    Document,
    Invalid,
    Malformed,
    ScalePaths,
    ServedKind,
    Shape,
)
from volcano_py.simulator.apiserver.schema.table_of_kinds import ROWS, Row

# events.k8s.io calls the fields of an event otherwise; events are stored as the core group's.
_CORE_EVENT_FIELDS = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_EVENT_FIELDS = {core: name for name, core in _CORE_EVENT_FIELDS.items()}
# A Deployment's status names its selector nowhere: the server makes the text from the spec.
_SCALED = ScalePaths(("spec", "replicas"), ("status", "replicas"), None)


@dataclass(frozen=True, eq=False, kw_only=True)
class BuiltinKind(ServedKind):
    """A kind whose fields the official client's models describe.

    Attributes:
        model: The class in ``kubernetes.client.models``.
    """

    model: str

    @cached_property
    def shape(self) -> Shape:
        """How a whole document merges."""
        return struct_shape(self.model)

    @property
    def converts(self) -> bool:
        """Only events have two spellings."""
        return self.model == "EventsV1Event"

    def read(self, document: Document, *, strict: bool) -> list[str]:
        """Check types, drop unknown fields and nulls.

        Raises:
            Malformed: With the whole message that the real server gives.
        """
        dropped: list[str] = []
        try:
            struct_reader(self.model)(document, "", dropped)
        except Malformed as fault:
            heading = f'{self.kind} in version "{self.version}" cannot be handled as a {self.kind}'
            raise Malformed(f"{heading}: {fault.message}") from fault
        return dropped

    def default(self, document: Document) -> None:
        """Complete a definition's names; defaults of other built-in kinds are no matter of a schema."""
        if self.kind == "CustomResourceDefinition":
            fill_names(document)

    def check(self, new: Document, old: Document | None, subresource: str) -> None:
        """Hold the object against what the real server asks of its kind.

        Raises:
            Invalid: With every fault.
        """
        checker = CHECKS.get((self.group, self.kind))
        if checker is None:
            return
        if found := list(checker(new, old, subresource)):
            raise Invalid(*found)

    def inward(self, document: Document) -> Document:
        """As stored: an event of events.k8s.io becomes one of the core group."""
        if not self.converts:
            return document
        renamed = {_CORE_EVENT_FIELDS.get(name, name): value for name, value in document.items()}
        return {**renamed, "apiVersion": "v1"}

    def outward(self, document: Document) -> Document:
        """As this version spells it."""
        if not self.converts:
            return document
        renamed = {_EVENT_FIELDS.get(name, name): value for name, value in document.items()}
        return {**renamed, "apiVersion": self.api_version}


def builtin_kinds() -> list[BuiltinKind]:
    """Every built-in kind, in the order in which groups are listed."""
    return [_kind(row) for row in ROWS]


def _kind(row: Row) -> BuiltinKind:
    plain = f"{row.names.plural}.{row.group}" if row.group else row.names.plural
    return BuiltinKind(
        group=row.group,
        version=row.version,
        names=row.names,
        namespaced=row.namespaced,
        bucket=row.bucket or plain,
        verbs=row.verbs,
        subresources=row.subresources,
        scale=_SCALED if "scale" in row.subresources else None,
        model=row.model,
    )
