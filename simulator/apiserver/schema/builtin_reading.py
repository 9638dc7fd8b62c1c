"""Reading documents of built-in kinds as Go would: types checked, unknown fields and nulls dropped.

The official client's models say which fields there are. A model's fields are compiled into readers
when a document first has such a part; values are changed in place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from volcano_py.simulator.apiserver.schema import merge_facts
from volcano_py.simulator.apiserver.schema.kinds import Malformed
from volcano_py.simulator.apiserver.schema.models import model_class, short_name
from volcano_py.simulator.apiserver.schema.plain_values import (
    canonical_quantity,
    canonical_time,
    check_base64,
)

# Takes the value, its path ("spec.containers[0]") and the list of dropped paths; returns the value to keep.
Reader = Callable[[Any, str, list[str]], Any]

_CONTAINER = re.compile(r"^(List|Dict)\[(?:str, )?(.+)\]$")
_INT_LIMITS = {"int32": 2**31, "int64": 2**63}
_JSON_NAMES: dict[type, str] = {bool: "bool", str: "string", dict: "object", list: "array"}


def json_name(value: Any) -> str:
    """What Go calls the JSON value in an error: ``string``, ``number 1.5``, ``object``."""
    if isinstance(value, int) and not isinstance(value, bool):
        return "number"
    return _JSON_NAMES.get(type(value), "number")


def _mismatch(value: Any, path: str, owner: str, go_type: str) -> Malformed:
    dotted = re.sub(r"\[\d+\]", "", path)
    found = json_name(value)
    if found == "number" and go_type.startswith("int"):
        found = f"number {value}"
    return Malformed(
        f"json: cannot unmarshal {found} into Go struct field {owner}.{dotted} of type {go_type}"
    )


@cache
def struct_reader(model: str) -> Reader:
    """Reads one JSON object as the client's class *model*."""
    found = model_class(model)
    if found is None:
        raise KeyError(model)
    declared = {found.attribute_map[name]: kind for name, kind in found.openapi_types.items()}
    owner = short_name(model)
    readers: dict[str, Reader] = {}

    def read(value: Any, path: str, dropped: list[str]) -> Any:
        prefix = f"{path}." if path else ""
        for name in list(value):
            if name not in declared:
                dropped.append(prefix + name)
                del value[name]
                continue
            if value[name] is None:
                del value[name]
                continue
            reader = readers.get(name)
            if reader is None:
                reader = readers[name] = _field_reader(declared[name], owner, name)
            value[name] = reader(value[name], prefix + name, dropped)
        return value

    return read


def _field_reader(declared: str, owner: str, name: str) -> Reader:
    if match := _CONTAINER.match(declared):
        container, item = match.groups()
        inner = _field_reader(item, owner, name)
        go_item = _go_type(item, f"{owner}.{name}")
        if container == "List":
            return _list_reader(inner, owner, go_item)
        return _map_reader(inner, owner, go_item, _zero(item))
    key = f"{owner}.{name}"
    if key in merge_facts.QUANTITIES:
        return _quantity
    if key in merge_facts.INT_OR_STRING:
        return _number_or_string(owner)
    if model_class(declared) is not None:
        return _part_reader(declared, owner)
    if declared == "datetime":
        return _time_reader(owner, micro=key in merge_facts.MICRO_TIMES)
    return _plain_reader(declared, owner, key)


def _zero(item: str) -> Any:
    """What Go leaves in a map for a null: the zero value."""
    return {"str": "", "bytes": "", "int": 0, "bool": False}.get(item)


def _go_type(item: str, key: str) -> str:
    if match := _CONTAINER.match(item):
        container, inner = match.groups()
        return ("[]" if container == "List" else "map[string]") + _go_type(inner, key)
    if key in merge_facts.QUANTITIES:
        return "resource.Quantity"
    plain = {
        "str": "string",
        "bool": "bool",
        "bytes": "[]uint8",
        "object": "interface {}",
        "float": "float64",
    }
    if item == "int":
        return "int64" if key in merge_facts.INT64 else "int32"
    return plain.get(item) or f"v1.{short_name(item)}"


def _list_reader(inner: Reader, owner: str, go_item: str) -> Reader:
    def read(value: Any, path: str, dropped: list[str]) -> Any:
        if type(value) is not list:
            raise _mismatch(value, path, owner, f"[]{go_item}")
        return [
            {} if item is None else inner(item, f"{path}[{position}]", dropped)
            for position, item in enumerate(value)
        ]

    return read


def _map_reader(inner: Reader, owner: str, go_item: str, zero: Any) -> Reader:
    def read(value: Any, path: str, dropped: list[str]) -> Any:
        if type(value) is not dict:
            raise _mismatch(value, path, owner, f"map[string]{go_item}")
        for name, item in value.items():
            value[name] = zero if item is None else inner(item, path, dropped)
        return value

    return read


def _part_reader(model: str, owner: str) -> Reader:
    def read(value: Any, path: str, dropped: list[str]) -> Any:
        if type(value) is not dict:
            raise _mismatch(value, path, owner, f"v1.{short_name(model)}")
        return struct_reader(model)(value, path, dropped)

    return read


def _plain_reader(declared: str, owner: str, key: str) -> Reader:
    go_type = _go_type(declared, key)

    def text(value: Any, path: str, dropped: list[str]) -> Any:
        if type(value) is not str:
            raise _mismatch(value, path, owner, go_type)
        return value

    def flag(value: Any, path: str, dropped: list[str]) -> Any:
        if type(value) is not bool:
            raise _mismatch(value, path, owner, go_type)
        return value

    def whole(value: Any, path: str, dropped: list[str]) -> Any:
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not int or not -limit <= value < limit:
            raise _mismatch(value, path, owner, go_type)
        return value

    def number(value: Any, path: str, dropped: list[str]) -> Any:
        if type(value) not in (int, float):
            raise _mismatch(value, path, owner, go_type)
        return value

    def data(value: Any, path: str, dropped: list[str]) -> Any:
        checked = text(value, path, dropped)
        try:
            check_base64(checked)
        except ValueError as fault:
            raise Malformed(str(fault)) from fault
        return checked

    limit = _INT_LIMITS.get(go_type, 0)
    readers: dict[str, Reader] = {"str": text, "bool": flag, "int": whole, "float": number, "bytes": data}
    return readers.get(declared, _anything)


def _anything(value: Any, path: str, dropped: list[str]) -> Any:
    return value


def _quantity(value: Any, path: str, dropped: list[str]) -> str:
    try:
        return canonical_quantity(value if type(value) in (str, int, float) else "")
    except ValueError as fault:
        raise Malformed(str(fault)) from fault


def _number_or_string(owner: str) -> Reader:
    def read(value: Any, path: str, dropped: list[str]) -> Any:
        if type(value) not in (int, str):
            raise _mismatch(value, path, owner, "int32")
        return value

    return read


def _time_reader(owner: str, *, micro: bool) -> Reader:
    def read(value: Any, path: str, dropped: list[str]) -> Any:
        if type(value) is not str:
            raise _mismatch(value, path, owner, "string")
        try:
            return canonical_time(value, micro=micro)
        except ValueError as fault:
            raise Malformed(str(fault)) from fault

    return read
