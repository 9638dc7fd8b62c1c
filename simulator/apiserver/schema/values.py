"""Whether a document's values are what a CustomResourceDefinition's schema asks for.

The words are the real server's, since people search for them. Values that did not change since the
object was stored are not looked at again, so an object from before a stricter schema can be updated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from celpy.celtypes import StringType
from celpy.evaluation import base_functions

from volcano_py.simulator.apiserver.schema.formats import FORMATS
from volcano_py.simulator.apiserver.schema.kinds import Cause

Schema = Mapping[str, Any]


class Missing:
    """Stands for an old value that is not there."""


MISSING = Missing()
# Where the server names no field.
NOWHERE = "<nil>"
_NAMES = {
    bool: "boolean",
    str: "string",
    dict: "object",
    list: "array",
    type(None): "null",
    int: "integer",
    float: "number",
}


def faults(schema: Schema, value: Any, old: Any = MISSING, path: str = "") -> list[Cause]:
    """All faults of *value*, in schema order.

    Args:
        schema: A structural schema.
        value: After pruning and defaulting.
        old: What is stored at the same place; MISSING on create.
        path: Such as ``spec.items[0]``; "" for the document.
    """
    if value is None and schema.get("nullable"):
        return []
    if old is not MISSING and same(old, value):
        return []
    found = list(_type_faults(schema, value, path))
    if any(cause.reason == "FieldValueTypeInvalid" for cause in found) and not _is_number(value):
        return found + list(_combined_faults(schema, value, path))
    found += _combined_faults(schema, value, path)
    for keyword in _KEYWORDS_BY_TYPE.get(_kind(value), ()):
        found += keyword(schema, value, path)
    found += _enum_faults(schema, value, path)
    found += _inner_faults(schema, value, old, path)
    return found


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: 2 is 2.0, but 1 is not true."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def type_name(value: Any) -> str:
    """The JSON type as errors name it; a whole number is an ``integer``."""
    if type(value) is float and value.is_integer() and abs(value) < 2**53:
        return "integer"
    if type(value) is int and not -(2**63) <= value < 2**63:
        return "number"
    return _NAMES.get(type(value), "object")


def quoted(value: Any) -> str:
    """A value as it stands in an error: JSON, without spaces."""
    if type(value) is float and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def invalid(path: str, shown: str, message: str) -> Cause:
    """A cause of the commonest kind."""
    return Cause("FieldValueInvalid", f"Invalid value: {shown}: {message}", path or NOWHERE)


def _kind(value: Any) -> str:
    name = type_name(value)
    return "number" if name == "integer" else name


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _type_faults(schema: Schema, value: Any, path: str) -> Iterator[Cause]:
    found = type_name(value)
    if schema.get("x-kubernetes-int-or-string"):
        if found not in ("integer", "string"):
            yield _type_fault(path, "integer,string", found)
        return
    wanted = schema.get("type")
    if not wanted:
        return
    if found != wanted and not (wanted == "number" and found == "integer"):
        yield _type_fault(path, wanted, found)
        if wanted == "integer" and found == "number":
            yield invalid("", '""', f"Checked value must be of type integer (default format) in {path}")
    elif wanted == "integer" and schema.get("format") == "int32" and not -(2**31) <= value < 2**31:
        yield invalid("", '""', f"Checked value must be of type integer with format int32 in {path}")


def _type_fault(path: str, wanted: str, found: str) -> Cause:
    message = f'Invalid value: "{found}": {path} in body must be of type {wanted}: "{found}"'
    return Cause("FieldValueTypeInvalid", message, path or NOWHERE)


def _combined_faults(schema: Schema, value: Any, path: str) -> Iterator[Cause]:
    if any_of := schema.get("anyOf"):
        attempts = [faults(one, value, path=path) for one in any_of]
        if all(attempts):
            yield invalid("", '""', f'"{path}" must validate at least one schema (anyOf)')
            yield from attempts[0]
    if one_of := schema.get("oneOf"):
        yield from _one_of_faults([faults(one, value, path=path) for one in one_of], path)
    if all_of := schema.get("allOf"):
        yield from _all_of_faults([faults(one, value, path=path) for one in all_of], path)
    if (forbidden := schema.get("not")) is not None and not faults(forbidden, value, path=path):
        yield invalid("", '""', f'"{path}" must not validate the schema (not)')


def _one_of_faults(attempts: list[list[Cause]], path: str) -> Iterator[Cause]:
    good = sum(not attempt for attempt in attempts)
    if good == 1:
        return
    detail = f"Found {good} valid alternatives" if good else "Found none valid"
    yield invalid("", '""', f'"{path}" must validate one and only one schema (oneOf). {detail}')
    if not good:
        yield from attempts[0]


def _all_of_faults(attempts: list[list[Cause]], path: str) -> Iterator[Cause]:
    if not any(attempts):
        return
    for attempt in attempts:
        yield from attempt
    detail = ". None validated" if all(attempts) else ""
    yield invalid("", '""', f'"{path}" must validate all the schemas (allOf){detail}')


def _string_faults(schema: Schema, value: str, path: str) -> Iterator[Cause]:
    longest = schema.get("maxLength")
    if longest is not None and len(value) > longest:
        yield Cause("FieldValueTooLong", f"Too long: may not be more than {longest} bytes", path)
    if len(value) < schema.get("minLength", 0):
        yield invalid(
            path, quoted(value), f"{path} in body should be at least {schema['minLength']} chars long"
        )
    if (pattern := schema.get("pattern")) and not matches(pattern, value):
        yield invalid(path, quoted(value), f"{path} in body should match '{pattern}'")
    wanted = schema.get("format", "")
    if wanted in FORMATS and not FORMATS[wanted](value):
        message = f"Invalid value: {quoted(value)}: {path} in body must be of type {wanted}: {quoted(value)}"
        yield Cause("FieldValueTypeInvalid", message, path)


def matches(pattern: str, text: str) -> bool:
    """Whether *pattern*, in Go's syntax, is found in *text*; CEL's own function knows that syntax."""
    return bool(base_functions["matches"](StringType(text), StringType(pattern)))


def _number_faults(schema: Schema, value: float, path: str) -> Iterator[Cause]:
    if (step := schema.get("multipleOf")) and value % step:
        yield invalid(path, quoted(value), f"{path} in body should be a multiple of {quoted(step)}")
    most, least = schema.get("maximum"), schema.get("minimum")
    if most is not None:
        strict = schema.get("exclusiveMaximum", False)
        if value > most or (strict and value == most):
            bound = "less than" if strict else "less than or equal to"
            yield invalid(path, quoted(value), f"{path} in body should be {bound} {quoted(most)}")
    if least is not None:
        strict = schema.get("exclusiveMinimum", False)
        if value < least or (strict and value == least):
            bound = "greater than" if strict else "greater than or equal to"
            yield invalid(path, quoted(value), f"{path} in body should be {bound} {quoted(least)}")


def _list_faults(schema: Schema, value: list[Any], path: str) -> Iterator[Cause]:
    if len(value) < schema.get("minItems", 0):
        yield invalid(
            path, str(len(value)), f"{path} in body should have at least {schema['minItems']} items"
        )
    yield from _too_many(schema.get("maxItems"), len(value), path)
    list_type = schema.get("x-kubernetes-list-type")
    if list_type == "set":
        yield from _duplicates(value, value, path)
    elif list_type == "map":
        names = schema.get("x-kubernetes-list-map-keys") or []
        keys = [
            {name: item[name] for name in names if name in item} if type(item) is dict else item
            for item in value
        ]
        yield from _duplicates(value, keys, path)


def _too_many(most: int | None, count: int, path: str) -> Iterator[Cause]:
    if most is not None and count > most:
        yield Cause("FieldValueTooMany", f"Too many: {count}: must have at most {most} items", path)


def _duplicates(items: list[Any], keys: list[Any], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for position, key in enumerate(keys):
        text = json.dumps(key, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        if text in seen:
            yield Cause("FieldValueDuplicate", f"Duplicate value: {text}", f"{path}[{position}]")
        seen.add(text)


def _object_faults(schema: Schema, value: dict[str, Any], path: str) -> Iterator[Cause]:
    required = list(schema.get("required") or ())
    if schema.get("x-kubernetes-embedded-resource"):
        required += ["apiVersion", "kind"]
    for name in required:
        if name not in value:
            yield Cause("FieldValueRequired", "Required value", f"{path}.{name}" if path else name)
    if len(value) < schema.get("minProperties", 0):
        least = schema["minProperties"]
        yield invalid(path, str(len(value)), f"{path} in body should have at least {least} properties")
    yield from _too_many(schema.get("maxProperties"), len(value), path)


def _enum_faults(schema: Schema, value: Any, path: str) -> Iterator[Cause]:
    allowed = schema.get("enum")
    if allowed is None or any(same(one, value) for one in allowed):
        return
    known = ", ".join(f'"{one}"' if isinstance(one, str) else f'"{quoted(one)}"' for one in allowed)
    message = f"Unsupported value: {quoted(value)}: supported values: {known}"
    yield Cause("FieldValueNotSupported", message, path)


def _inner_faults(schema: Schema, value: Any, old: Any, path: str) -> Iterator[Cause]:
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, Mapping):
            for position, (item, before) in enumerate(
                zip(value, counterparts(schema, value, old), strict=True)
            ):
                yield from faults(items, item, before, f"{path}[{position}]")
    elif isinstance(value, dict):
        for name, field in fields_of(schema, value):
            before = old.get(name, MISSING) if isinstance(old, dict) else MISSING
            yield from faults(field, value[name], before, f"{path}.{name}" if path else name)


def fields_of(schema: Schema, value: dict[str, Any]) -> Iterator[tuple[str, Schema]]:
    """The fields of an object that have a schema, declared ones first and in its order."""
    known: Mapping[str, Schema] = schema.get("properties") or {}
    for name, field in known.items():
        if name in value:
            yield name, field
    rest = schema.get("additionalProperties")
    if isinstance(rest, Mapping):
        for name in value:
            if name not in known:
                yield name, rest


def counterparts(schema: Schema, value: list[Any], old: Any) -> list[Any]:
    """The old item of each new one; MISSING where a list does not say which is which."""
    if not isinstance(old, list) or schema.get("x-kubernetes-list-type") != "map":
        return [MISSING] * len(value)
    names = schema.get("x-kubernetes-list-map-keys") or []

    def key(item: Any) -> str:
        return json.dumps(
            [item.get(name) for name in names] if isinstance(item, dict) else item, sort_keys=True
        )

    before = {key(item): item for item in old}
    return [before.get(key(item), MISSING) for item in value]


_KEYWORDS_BY_TYPE: dict[str, tuple[Callable[[Schema, Any, str], Iterator[Cause]], ...]] = {
    "string": (_string_faults,),
    "number": (_number_faults,),
    "array": (_list_faults,),
    "object": (_object_faults,),
}
