"""How documents of built-in kinds merge, derived from the client's models and the table of merge facts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from volcano_py.simulator.apiserver.schema import merge_facts
from volcano_py.simulator.apiserver.schema.kinds import ANY, Shape
from volcano_py.simulator.apiserver.schema.models import model_class, short_name

_CONTAINER = re.compile(r"^(List|Dict)\[(?:str, )?(.+)\]$")


class FieldShapes(Mapping[str, Shape]):
    """Shapes of a model's fields, made when they are looked at: some models contain themselves."""

    def __init__(self, model: str, declared: Mapping[str, str]) -> None:
        self._owner = short_name(model)
        self._declared = declared
        self._made: dict[str, Shape] = {}

    def __getitem__(self, name: str) -> Shape:
        if name not in self._made:
            self._made[name] = _field_shape(self._declared[name], f"{self._owner}.{name}")
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)


@cache
def struct_shape(model: str) -> Shape:
    """How objects of the client's class *model* merge."""
    found = model_class(model)
    if found is None:
        return ANY
    declared = {found.attribute_map[name]: kind for name, kind in found.openapi_types.items()}
    return Shape(atomic=short_name(model) in merge_facts.ATOMIC_STRUCTS, fields=FieldShapes(model, declared))


def _field_shape(declared: str, key: str) -> Shape:
    if match := _CONTAINER.match(declared):
        container, item = match.groups()
        return _list_shape(item, key) if container == "List" else _map_shape(item, key)
    shape = struct_shape(declared)
    atomic = shape.atomic and key not in merge_facts.GRANULAR
    return Shape(atomic=atomic, patch_strategy=_strategy(key), fields=shape.fields)


def _strategy(key: str) -> frozenset[str]:
    return frozenset({merge_facts.STRATEGIES[key]} if key in merge_facts.STRATEGIES else ())


def _map_shape(item: str, key: str) -> Shape:
    each = _field_shape(item, "") if item.startswith(("List", "Dict")) else struct_shape(item)
    return Shape(atomic=key in merge_facts.ATOMIC_MAPS, each=each)


def _list_shape(item: str, key: str) -> Shape:
    each = struct_shape(item)
    if key in merge_facts.SETS:
        strategy = frozenset({"merge"}) if key in merge_facts.MERGED_SETS else frozenset[str]()
        return Shape(list_type="set", patch_strategy=strategy, each=each)
    merge = merge_facts.LISTS.get(key)
    if merge is None:
        return Shape(list_type="atomic", each=each)
    strategies = {"merge"} if merge.patch_key else set[str]()
    if merge.retain_keys:
        strategies.add("retainKeys")
    return Shape(
        list_type="map" if merge.keys else "atomic",
        keys=merge.keys,
        key_defaults=merge_facts.KEY_DEFAULTS.get(key, {}),
        patch_key=merge.patch_key,
        patch_strategy=frozenset(strategies),
        each=each,
    )
