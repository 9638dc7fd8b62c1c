"""Strategic merge patch: lists are merged item by item, as the kind's merge keys say.

Directives in the patch: ``$patch: replace|delete|merge`` on a map or list item, ``$retainKeys``,
``$deleteFromPrimitiveList/<field>`` and ``$setElementOrder/<field>``.
"""

from __future__ import annotations

from typing import Any, Final

from volcano_py.simulator.apiserver.fieldsets import child_shape
from volcano_py.simulator.apiserver.schema.kinds import ANY, Shape
from volcano_py.simulator.apiserver.status import Document, Refused, bad_request

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE_FROM: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"


def strategic_patch(document: Document, patch: Document, shape: Shape) -> Document:
    """*document* with *patch* merged in; neither is changed.

    Raises:
        Refused: 400, for a patch that makes no sense.
    """
    return _patched_map(document, patch, shape)


def _patched_map(value: Document, patch: Document, shape: Shape) -> Document:
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        fresh: Document = _fresh({name: below for name, below in patch.items() if name != _DIRECTIVE})
        return fresh
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"unrecognized type of patch: {directive}")
    merged = dict(value)
    if _RETAIN in patch:
        merged = {name: below for name, below in merged.items() if name in patch[_RETAIN]}
    for name, below in patch.items():
        if not name.startswith("$"):
            _patch_field(merged, name, below, patch, child_shape(shape, name))
    for name in _only_in_directives(patch):
        _patch_field(merged, name, [], patch, child_shape(shape, name))
    return merged


def _only_in_directives(patch: Document) -> list[str]:
    """Lists that the patch shortens or orders without naming them otherwise."""
    named = [key.partition("/")[2] for key in patch if key.startswith((_DELETE_FROM, _ORDER))]
    return [name for name in dict.fromkeys(named) if name not in patch]


def _patch_field(merged: Document, name: str, below: Any, patch: Document, shape: Shape) -> None:
    if below is None:
        merged.pop(name, None)
        return
    there = merged.get(name)
    if isinstance(below, dict):
        base = there if isinstance(there, dict) and "replace" not in shape.patch_strategy else {}
        merged[name] = _patched_map(base, below, shape)
    elif isinstance(below, list):
        _patch_list_field(merged, name, below, patch, shape)
    else:
        merged[name] = below


def _patch_list_field(merged: Document, name: str, below: list[Any], patch: Document, shape: Shape) -> None:
    if "merge" not in shape.patch_strategy:
        merged[name] = _fresh(below)
        return
    there = merged.get(name) or []
    gone = patch.get(_DELETE_FROM + name) or []
    order = patch.get(_ORDER + name, below)
    if shape.patch_key:
        result = _merged_items(there, below, shape)
        merged[name] = _ordered(result, order, [_key(item, shape) for item in there], shape)
    else:
        kept = [item for item in there if item not in gone]
        result = [*kept, *(item for item in below if item not in kept)]
        merged[name] = _ordered(result, order, there, shape)


def _merged_items(there: list[Any], below: list[Any], shape: Shape) -> list[Any]:
    if any(item.get(_DIRECTIVE) == "replace" for item in below if isinstance(item, dict)):
        return [
            _fresh(item) for item in below if isinstance(item, dict) and item.get(_DIRECTIVE) != "replace"
        ]
    each = shape.each or ANY
    merged = list(there)
    for item in below:
        if not isinstance(item, dict) or shape.patch_key not in item:
            raise _no_key(item, shape)
        _merge_item(merged, item, shape, each)
    return merged


def _no_key(item: Any, shape: Shape) -> Refused:
    shown = (
        " ".join(f"{name}:{below}" for name, below in sorted(item.items()))
        if isinstance(item, dict)
        else item
    )
    return Refused(500, "", f"map: map[{shown}] does not contain declared merge key: {shape.patch_key}")


def _merge_item(merged: list[Any], item: Document, shape: Shape, each: Shape) -> None:
    key = item[shape.patch_key]
    places = [place for place, other in enumerate(merged) if _key(other, shape) == key]
    if item.get(_DIRECTIVE) == "delete":
        for place in reversed(places):
            del merged[place]
    elif places:
        merged[places[0]] = _patched_map(merged[places[0]], item, each)
    else:
        merged.append(_patched_map({}, item, each))


def _key(item: Any, shape: Shape) -> Any:
    if not shape.patch_key:
        return item
    return item.get(shape.patch_key) if isinstance(item, dict) else None


def _ordered(items: list[Any], order: list[Any], before: list[Any], shape: Shape) -> list[Any]:
    """*items* in the order asked for; those it does not name stay where they were among their neighbours.

    *before* holds the keys in the order of the live list.
    """
    asked = [_key(entry, shape) for entry in order]
    named = sorted(
        (item for item in items if _key(item, shape) in asked),
        key=lambda item: asked.index(_key(item, shape)),
    )
    others = [item for item in items if _key(item, shape) not in asked]
    merged: list[Any] = []
    while named and others:
        if _stands_before(others[0], named[0], before, shape):
            merged.append(others.pop(0))
        else:
            merged.append(named.pop(0))
    return [*merged, *named, *others]


def _stands_before(one: Any, other: Any, before: list[Any], shape: Shape) -> bool:
    """Whether *one* came before *other* in the live list; what is new there comes first."""
    key = _key(other, shape)
    if key not in before:
        return False
    return before.index(_key(one, shape)) < before.index(key)


def _fresh(value: Any) -> Any:
    """*value* of a patch, as it is put where nothing was: no nulls, no directives."""
    if isinstance(value, dict):
        return {
            name: _fresh(below)
            for name, below in value.items()
            if below is not None and not name.startswith("$")
        }
    if isinstance(value, list):
        return [
            _fresh(item)
            for item in value
            if not (isinstance(item, dict) and item.get(_DIRECTIVE) == "delete")
        ]
    return value
