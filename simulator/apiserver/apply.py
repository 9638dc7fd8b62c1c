"""Server-side apply: a manager says what it wants, and owns what it said.

The configuration is merged into the live object; what the same manager applied before and no longer does is
taken out, unless somebody else has it too. A field that another manager has with another value is a conflict,
which ``force`` decides for the applier.
"""

from __future__ import annotations

from typing import Any

from volcano_py.simulator.apiserver import fieldsets, ownership
from volcano_py.simulator.apiserver.fieldsets import (
    FieldSet,
    child_shape,
    is_granular,
    is_list_map,
    item_step,
)
from volcano_py.simulator.apiserver.ownership import APPLY, entries_of, entry_for, fields_in
from volcano_py.simulator.apiserver.schema.kinds import ANY, ServedKind, Shape
from volcano_py.simulator.apiserver.status import Document, Refused


def apply_configuration(
    kind: ServedKind,
    live: Document,
    wanted: Document,
    *,
    manager: str,
    subresource: str,
    force: bool,
    now: str,
) -> Document:
    """The live object with *wanted* applied, and its managedFields.

    *live* is not changed; for an object that is to be created it is ``{"metadata": {}}``.

    Raises:
        Refused: 409, where others own fields that would change.
    """
    entries = entries_of(live)
    own = entry_for(entries, manager, APPLY, subresource)
    asked = ownership.writable(kind, fieldsets.fields_of(wanted, kind.shape), subresource)
    merged: Document = merge(live, wanted, kind.shape)
    merged = _without_abandoned(merged, kind.shape, own, asked, entries)
    changed = _changed(kind, live, merged)
    others = [entry for entry in entries if entry is not own]
    disputes = [
        (entry, fieldsets.common(fields_in(entry), fieldsets.common(asked, changed))) for entry in others
    ]
    if not force and any(fields for _, fields in disputes):
        raise _conflict([(entry, fields) for entry, fields in disputes if fields])
    removed = fieldsets.removed_fields(live, merged, kind.shape)
    kept = [_yielded(entry, fields, removed) for entry, fields in disputes]
    # Saying what is so already makes a co-owner, at no time in particular.
    mine = _own_entry(kind, own, manager, subresource, asked, now if changed or removed else "")
    ownership.set_entries(merged, [*mine, *(entry for entry in kept if entry is not None)])
    return merged


def _changed(kind: ServedKind, live: Document, merged: Document) -> FieldSet:
    return fieldsets.without_servers_own(fieldsets.changed_fields(live, merged, kind.shape))


def _own_entry(
    kind: ServedKind, own: Document | None, manager: str, subresource: str, asked: FieldSet, now: str
) -> list[Document]:
    if not asked:
        return []
    same = own is not None and fields_in(own) == asked and own.get("apiVersion") == kind.api_version
    if own is not None and same and not now:
        return [own]
    return [ownership.new_entry(kind, manager, APPLY, subresource, asked, now)]


def _yielded(entry: Document, lost: FieldSet, removed: FieldSet) -> Document | None:
    left = fieldsets.subtract(fieldsets.subtract(fields_in(entry), lost), removed)
    return {**entry, "fieldsV1": left} if left else None


def _conflict(disputes: list[tuple[Document, FieldSet]]) -> Refused:
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {_who(entry)}", "field": path}
        for entry, fields in disputes
        for path in fieldsets.paths(fields)
    ]
    count = len(causes)
    return Refused(
        409,
        "Conflict",
        f"Apply failed with {count} conflict{'' if count == 1 else 's'}: {_sentences(disputes)}",
        details={"causes": causes},
    )


def _sentences(disputes: list[tuple[Document, FieldSet]]) -> str:
    told = []
    for entry, fields in disputes:
        lost = list(fieldsets.paths(fields))
        if len(lost) == 1:
            told.append(f"conflict with {_who(entry)}: {lost[0]}")
        else:
            told.append("\n- ".join([f"conflicts with {_who(entry)}:", *lost]))
    return "\n".join(told)


def _who(entry: Document) -> str:
    told = f'"{entry.get("manager", "")}"'
    if entry.get("subresource"):
        told += f' with subresource "{entry["subresource"]}"'
    if entry.get("operation") == ownership.UPDATE:
        told += f" using {entry.get('apiVersion', '')}"
    return told


# merging


def merge(live: Any, wanted: Any, shape: Shape) -> Any:
    """*wanted* laid over *live*; neither is changed."""
    if isinstance(wanted, dict) and isinstance(live, dict) and is_granular(wanted, shape):
        return _merge_maps(live, wanted, shape)
    if isinstance(wanted, list) and isinstance(live, list) and is_granular(wanted, shape):
        return _merge_lists(live, wanted, shape)
    return wanted


def _merge_maps(live: Document, wanted: Document, shape: Shape) -> Document:
    merged = dict(live)
    for name, value in wanted.items():
        merged[name] = merge(live[name], value, child_shape(shape, name)) if name in live else value
    return merged


def _merge_lists(live: list[Any], wanted: list[Any], shape: Shape) -> list[Any]:
    """Items in the order of *wanted*; those that only *live* has stay in front of what followed them."""
    each = shape.each or ANY
    there = {item_step(item, shape): item for item in live}
    asked = {item_step(item, shape): item for item in wanted}
    merged: dict[str, Any] = {}
    ours = iter(asked.items())
    for step, item in there.items():
        if step not in asked:
            merged[step] = item
        while step in asked and step not in merged:
            name, new = next(ours)
            both = name in there and is_list_map(shape)
            merged[name] = merge(there[name], new, each) if both else new
    merged.update((name, new) for name, new in ours)
    return list(merged.values())


# taking out what is no longer applied


def _without_abandoned(
    merged: Document, shape: Shape, own: Document | None, asked: FieldSet, entries: list[Document]
) -> Document:
    if own is None:
        return merged
    abandoned = fieldsets.subtract(fields_in(own), asked)
    for entry in entries:
        if entry is not own:
            abandoned = fieldsets.subtract(abandoned, _with_parents(fields_in(entry)))
    pruned = _prune(merged, abandoned, shape)
    return pruned if isinstance(pruned, dict) else merged


def _with_parents(fields: FieldSet) -> FieldSet:
    """*fields* and every node above them: who has a field keeps what it stands in."""
    return {
        step: {fieldsets.SELF: {}, **_with_parents(below)} if below else {}
        for step, below in fields.items()
        if step != fieldsets.SELF
    }


def _prune(value: Any, abandoned: FieldSet, shape: Shape) -> Any:
    if not abandoned or not is_granular(value, shape):
        return value
    if isinstance(value, dict):
        return _prune_map(value, abandoned, shape)
    each = shape.each or ANY
    kept = []
    for item in value:
        node = abandoned.get(item_step(item, shape))
        if node is None:
            kept.append(item)
        elif not fieldsets.is_member(node):
            kept.append(_prune(item, node, each))
    return kept


def _prune_map(value: Document, abandoned: FieldSet, shape: Shape) -> Document:
    kept: Document = {}
    for name, below in value.items():
        node = abandoned.get(f"f:{name}")
        if node is None:
            kept[name] = below
        elif not fieldsets.is_member(node):
            left = _prune(below, node, child_shape(shape, name))
            if left or not below:
                kept[name] = left
    return kept
