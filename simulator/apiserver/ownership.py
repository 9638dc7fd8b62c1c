"""Who owns which field: ``metadata.managedFields`` through updates.

Each entry is one manager by one way of writing (Apply or Update) on one subresource. Writing a field makes
it the writer's; others who had it lose it when its value changed. Neighbours: ``fieldsets`` (the sets),
``apply`` (server-side apply, which asks the entries for conflicts).
"""

from __future__ import annotations

from typing import Any, Final

from volcano_py.simulator.apiserver import fieldsets
from volcano_py.simulator.apiserver.fieldsets import FieldSet
from volcano_py.simulator.apiserver.schema.kinds import ServedKind
from volcano_py.simulator.apiserver.status import Document

APPLY: Final = "Apply"
UPDATE: Final = "Update"
_MOST_UPDATERS: Final = 10
"""Managers by Update that an object remembers; the oldest are merged beyond that."""

_ALWAYS_THERE: Final = (
    "metadata",
    "spec",
    "status",
    "template",
    "jobTemplate",
    "strategy",
    "updateStrategy",
    "resources",
    "podSelector",
    "scaleTargetRef",
    "names",
)


def entries_of(document: Document) -> list[Document]:
    """The managedFields of *document*; empty where there are none."""
    entries = document["metadata"].get("managedFields")
    return entries if isinstance(entries, list) else []


def entry_for(entries: list[Document], manager: str, operation: str, subresource: str) -> Document | None:
    """The entry of one manager, by one way of writing."""
    for entry in entries:
        if (
            entry.get("manager") == manager
            and entry.get("operation") == operation
            and entry.get("subresource", "") == subresource
        ):
            return entry
    return None


def fields_in(entry: Document) -> FieldSet:
    """The set that an entry holds."""
    fields: FieldSet = entry.get("fieldsV1") or {}
    return fields


def new_entry(
    kind: ServedKind, manager: str, operation: str, subresource: str, fields: FieldSet, now: str
) -> Document:
    """An entry as it stands in managedFields."""
    entry: Document = {
        "manager": manager,
        "operation": operation,
        "apiVersion": kind.api_version,
        **({"time": now} if now else {}),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    if subresource:
        entry["subresource"] = subresource
    return entry


def own_update(
    kind: ServedKind, new: Document, old: Document | None, manager: str, subresource: str, now: str
) -> None:
    """Write into *new* who owns what after *manager* turned *old* into it.

    ``managedFields: []`` in *new* takes all ownership away, as clients ask for it; from then on nothing is
    recorded until somebody applies.
    """
    if old is not None and (new["metadata"].get("managedFields") == [] or not entries_of(old)):
        new["metadata"].pop("managedFields", None)
        return
    entries = entries_of(old) if old is not None else []
    changed, removed = (writable(kind, part, subresource) for part in _difference(kind, old, new))
    kept = [_lessened(entry, changed, removed, manager, subresource) for entry in entries]
    left = [entry for entry in kept if entry is not None]
    if changed:
        left = _with_owner(kind, left, manager, subresource, changed, now)
    set_entries(new, left)


def set_entries(document: Document, entries: list[Document]) -> None:
    """Put *entries* into the metadata; no entries, no field."""
    if entries:
        document["metadata"]["managedFields"] = sorted(entries, key=_rank)
    else:
        document["metadata"].pop("managedFields", None)


def _rank(entry: Document) -> tuple[str, ...]:
    return tuple(
        str(entry.get(name, "")) for name in ("operation", "time", "manager", "apiVersion", "subresource")
    )


def _difference(kind: ServedKind, old: Document | None, new: Document) -> tuple[FieldSet, FieldSet]:
    before: Any = old if old is not None else {"metadata": {}}
    if not kind.custom:
        before = {**_empty_like(new), **before}
    changed = fieldsets.without_servers_own(fieldsets.changed_fields(before, new, kind.shape))
    removed = fieldsets.without_servers_own(fieldsets.removed_fields(before, new, kind.shape))
    return changed, removed


def writable(kind: ServedKind, fields: FieldSet, subresource: str) -> FieldSet:
    """The part of a change that a request on *subresource* can own."""
    if "status" not in kind.subresources:
        return fields
    if subresource == "status":
        return {step: below for step, below in fields.items() if step in ("f:status", "f:metadata")}
    return {step: below for step, below in fields.items() if step != "f:status"}


def _empty_like(document: Document) -> Document:
    """The parts of a built-in object that are always there, empty: they are no fields of their own."""
    empty: Document = {name: _empty_like(document[name]) for name in _ALWAYS_THERE if _is_map(document, name)}
    if "containers" in document:
        empty["containers"] = []
    return empty


def _is_map(document: Document, name: str) -> bool:
    return isinstance(document.get(name), dict)


def _lessened(
    entry: Document, changed: FieldSet, removed: FieldSet, manager: str, subresource: str
) -> Document | None:
    """What is left of an entry after a change; None for nothing."""
    own = entry.get("manager") == manager and entry.get("subresource", "") == subresource
    own = own and entry.get("operation") == UPDATE
    fields = fields_in(entry)
    left = fields if own else fieldsets.subtract(fields, changed)
    left = fieldsets.subtract(left, removed)
    if not left:
        return None
    return entry if left == fields else {**entry, "fieldsV1": left}


def _with_owner(
    kind: ServedKind, entries: list[Document], manager: str, subresource: str, changed: FieldSet, now: str
) -> list[Document]:
    own = entry_for(entries, manager, UPDATE, subresource)
    fields = fieldsets.join(fields_in(own), changed) if own is not None else changed
    others = [entry for entry in entries if entry is not own]
    return [*_condensed(others), new_entry(kind, manager, UPDATE, subresource, fields, now)]


def _condensed(entries: list[Document]) -> list[Document]:
    """At most so many updaters that the object does not grow without end."""
    updaters = [entry for entry in entries if entry.get("operation") == UPDATE]
    if len(updaters) < _MOST_UPDATERS:
        return entries
    oldest, second = sorted(updaters, key=lambda entry: str(entry.get("time")))[:2]
    merged = {
        **second,
        "manager": "ancient-changes",
        "fieldsV1": fieldsets.join(fields_in(oldest), fields_in(second)),
    }
    return [merged, *(entry for entry in entries if entry not in (oldest, second))]
