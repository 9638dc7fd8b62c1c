"""Sets of fields, as ``managedFields`` writes them, and what a document or a change consists of.

A set is a tree of dicts. A key names a step: ``f:name`` a field, ``k:{...}`` an item of a list by its key
fields, ``v:...`` an item of a set. A node without children is a member; ``.`` makes a node with children one
too. Atomic values are leaves. What identifies an object and what only the server writes is in no set.

Source: the FieldsV1 format of meta/v1 and the merge rules of structured merge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from volcano_py.simulator.apiserver.schema.kinds import ANY, Shape

FieldSet = dict[str, Any]

SELF: Final = "."
_SERVERS_OWN: Final = frozenset(
    [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ]
)
_sorted_json: Final = msgspec.json.Encoder(order="sorted").encode


# what a value consists of


def is_list_map(shape: Shape) -> bool:
    """Whether items of the list are found by key fields."""
    return shape.list_type == "map" and bool(shape.keys)


def is_granular(value: object, shape: Shape) -> bool:
    """Whether parts of *value* can have different owners."""
    if isinstance(value, dict):
        return not shape.atomic
    return isinstance(value, list) and (is_list_map(shape) or shape.list_type == "set")


def child_shape(shape: Shape, name: str) -> Shape:
    """The shape of a field, or of a value of a free map."""
    return shape.fields.get(name) or shape.each or ANY


def item_step(item: Any, shape: Shape) -> str:
    """The key of a list item in a set."""
    if shape.list_type == "set":
        return "v:" + _sorted_json(item).decode()
    found = {
        key: item.get(key, shape.key_defaults.get(key)) if isinstance(item, dict) else None
        for key in shape.keys
    }
    return "k:" + _sorted_json({key: value for key, value in found.items() if value is not None}).decode()


def children(value: Any, shape: Shape) -> Iterator[tuple[str, Any, Shape]]:
    """The steps below a granular value, each with what is there."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield f"f:{name}", below, child_shape(shape, name)
    else:
        each = shape.each or ANY
        for item in value:
            yield item_step(item, shape), item, each


def fields_of(document: Mapping[str, Any], shape: Shape) -> FieldSet:
    """What a manager owns who applies *document*."""
    return without_servers_own(_fields(document, shape, members=False))


def _fields(value: Any, shape: Shape, *, members: bool) -> FieldSet:
    if not value or not is_granular(value, shape):
        return {}
    in_list = isinstance(value, list)
    found: FieldSet = {SELF: {}} if members else {}
    for step, below, its_shape in children(value, shape):
        if below == [] and not members and is_granular(below, its_shape):
            # Nothing is asked of a list whose items have owners of their own.
            continue
        found[step] = _fields(below, its_shape, members=members)
        if in_list and found[step]:
            found[step] = {SELF: {}, **found[step]}
    return found


def without_servers_own(fields: FieldSet) -> FieldSet:
    """*fields* less what identifies the object and what the server writes."""
    kept = {step: below for step, below in fields.items() if step not in ("f:apiVersion", "f:kind")}
    metadata = kept.get("f:metadata")
    if metadata is not None:
        left = {step: below for step, below in metadata.items() if step[2:] not in _SERVERS_OWN}
        left.pop(SELF, None)
        if left:
            kept["f:metadata"] = left
        else:
            del kept["f:metadata"]
    return kept


# what a change consists of


def changed_fields(old: Any, new: Any, shape: Shape) -> FieldSet:
    """Fields of *new* that *old* does not have, or has otherwise."""
    if new == old or not is_granular(new, shape):
        return {}
    there = dict_of_steps(old, shape)
    found: FieldSet = {} if there is not None else {SELF: {}}
    for step, below, its_shape in children(new, shape):
        if there is not None and step in there:
            if there[step] != below:
                found.update(_changed_step(step, there[step], below, its_shape))
        else:
            found[step] = _fields(below, its_shape, members=True)
    return found


def _changed_step(step: str, old: Any, new: Any, shape: Shape) -> FieldSet:
    if not is_granular(new, shape) or type(old) is not type(new):
        return {step: _fields(new, shape, members=True)}
    below = changed_fields(old, new, shape)
    return {step: below} if below else {}


def removed_fields(old: Any, new: Any, shape: Shape) -> FieldSet:
    """Fields of *old* that *new* lacks."""
    if new == old or not is_granular(old, shape):
        return {}
    there = dict_of_steps(new, shape)
    found: FieldSet = {}
    for step, below, its_shape in children(old, shape):
        if there is None or step not in there:
            found[step] = _fields(below, its_shape, members=True)
        elif gone := removed_fields(below, there[step], its_shape):
            found[step] = gone
    return found


def dict_of_steps(value: Any, shape: Shape) -> dict[str, Any] | None:
    """What stands below each step; None where *value* is nothing that has steps."""
    if not is_granular(value, shape):
        return None
    return {step: below for step, below, _ in children(value, shape)}


# sets among themselves


def is_member(node: FieldSet) -> bool:
    """Whether the node itself is in the set, not only something below it."""
    return not node or SELF in node


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """Fields that are in either."""
    if not one or not other:
        # A leaf is a member; beside children it has to say so.
        merged = dict(one or other)
        if merged:
            merged[SELF] = {}
        return merged
    return _merge_steps(one, other)


def join(one: FieldSet, other: FieldSet) -> FieldSet:
    """``union`` of whole sets, whose root is no field."""
    return _merge_steps(one, other)


def _merge_steps(one: FieldSet, other: FieldSet) -> FieldSet:
    merged = dict(one)
    for step, below in other.items():
        merged[step] = union(merged[step], below) if step in merged else below
    return merged


def subtract(fields: FieldSet, taken: FieldSet) -> FieldSet:
    """Fields that are in *fields* and not in *taken*; of whole sets, whose root is no field."""
    left: FieldSet = {}
    for step, below in fields.items():
        if step == SELF:
            if SELF not in taken:
                left[SELF] = {}
        elif step not in taken:
            left[step] = below
        else:
            rest = _subtract_node(below, taken[step])
            if rest is not None:
                left[step] = rest
    return left


def _subtract_node(node: FieldSet, taken: FieldSet) -> FieldSet | None:
    """What is left of a node; None for nothing."""
    member = is_member(node) and not is_member(taken)
    below = {step: inner for step, inner in node.items() if step != SELF}
    rest = subtract(below, {step: inner for step, inner in taken.items() if step != SELF})
    if not rest:
        return {} if member else None
    return {SELF: {}, **rest} if member else rest


def common(fields: FieldSet, other: FieldSet) -> FieldSet:
    """Fields that are in both; of whole sets, whose root is no field."""
    both: FieldSet = {}
    for step, below in fields.items():
        if step != SELF and step in other:
            shared = _common_node(below, other[step])
            if shared is not None:
                both[step] = shared
    return both


def _common_node(one: FieldSet, other: FieldSet) -> FieldSet | None:
    member = is_member(one) and is_member(other)
    below = common(one, other)
    if not below:
        return {} if member else None
    return {SELF: {}, **below} if member else below


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """The members, as messages write them: ``.spec.containers[name="a"].image``."""
    for step, below in fields.items():
        if step == SELF:
            continue
        path = prefix + _written(step)
        if is_member(below):
            yield path
        yield from paths(below, path)


def _written(step: str) -> str:
    if step.startswith("f:"):
        return f".{step[2:]}"
    if step.startswith("v:"):
        return f"[={step[2:]}]"
    keys = msgspec.json.decode(step[2:])
    return "[" + ",".join(f"{key}={msgspec.json.encode(value).decode()}" for key, value in keys.items()) + "]"
