"""What a CustomResourceDefinition's schema does to a document: unknown fields go, defaults come.

Also how documents of such a kind merge. All functions work on the ``openAPIV3Schema`` as it stands in
the definition. Faults of values are found in ``values.py`` and ``rules.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from volcano_py.simulator.apiserver.schema.builtin_reading import struct_reader
from volcano_py.simulator.apiserver.schema.builtin_shapes import struct_shape
from volcano_py.simulator.apiserver.schema.kinds import ANY, Malformed, Shape

Schema = Mapping[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
# Every object has these, whether its schema says so or not.
OBJECT_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


def prune(schema: Schema, document: Any) -> list[str]:
    """Drop from a whole object what its schema does not know, in place.

    Returns:
        Paths of the dropped fields, such as ``spec.items[0].foo``.

    Raises:
        Malformed: ``metadata`` cannot be read.
    """
    dropped: list[str] = []
    _prune(schema, document, "", dropped, is_object=True)
    return dropped


def _prune(schema: Schema, value: Any, path: str, dropped: list[str], *, is_object: bool = False) -> None:
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, Mapping):
            for position, item in enumerate(value):
                _prune(items, item, f"{path}[{position}]", dropped)
    elif isinstance(value, dict):
        _prune_fields(schema, value, path, dropped, is_object or bool(schema.get(EMBEDDED)))


def _prune_fields(
    schema: Schema, value: dict[str, Any], path: str, dropped: list[str], is_object: bool
) -> None:
    known: Mapping[str, Schema] = schema.get("properties") or {}
    rest = schema.get("additionalProperties")
    keeps = bool(schema.get(PRESERVE)) or rest is True
    for name in list(value):
        below = f"{path}.{name}" if path else name
        if is_object and name in OBJECT_FIELDS:
            if name == "metadata":
                _read_metadata(value, below, dropped)
        elif name in known:
            _prune(known[name], value[name], below, dropped)
        elif isinstance(rest, Mapping):
            _prune(rest, value[name], below, dropped)
        elif not keeps:
            dropped.append(below)
            del value[name]


def _read_metadata(owner: dict[str, Any], path: str, dropped: list[str]) -> None:
    metadata = owner["metadata"]
    if metadata is None:
        del owner["metadata"]
        return
    if not isinstance(metadata, dict):
        raise Malformed(f"json: cannot unmarshal into Go struct field .{path} of type v1.ObjectMeta")
    try:
        struct_reader("V1ObjectMeta")(metadata, path, dropped)
    except Malformed as fault:
        # The real server reads a custom object's metadata on its own, so its path begins there.
        raise Malformed(fault.message.replace(f"ObjectMeta.{path}.", "ObjectMeta.")) from fault


def fill_defaults(schema: Schema, value: Any) -> None:
    """Give absent fields the default that their schema declares; a null that may not be is absent."""
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, Mapping):
            for item in value:
                fill_defaults(items, item)
    elif isinstance(value, dict):
        _fill_fields(schema, value)


def _fill_fields(schema: Schema, value: dict[str, Any]) -> None:
    known: Mapping[str, Schema] = schema.get("properties") or {}
    rest: Any = schema.get("additionalProperties")
    for name, declared in known.items():
        if "default" in declared and (name not in value or _is_forbidden_null(declared, value[name])):
            value[name] = deepcopy(declared["default"])
    for name in list(value):
        field: Any = known.get(name, rest)
        if not isinstance(field, Mapping):
            continue
        if _is_forbidden_null(field, value[name]):
            if "default" not in field:
                del value[name]
                continue
            value[name] = deepcopy(field["default"])
        fill_defaults(field, value[name])


def _is_forbidden_null(schema: Schema, value: Any) -> bool:
    return value is None and not schema.get("nullable", False) and not schema.get(PRESERVE, False)


def document_shape(schema: Schema) -> Shape:
    """How whole objects of a custom kind merge."""
    shape = _shape(schema)
    plain = {"apiVersion": ANY, "kind": ANY, "metadata": struct_shape("V1ObjectMeta")}
    return Shape(fields={**shape.fields, **plain}, each=shape.each)


def _shape(schema: Schema) -> Shape:
    fields = {name: _shape(field) for name, field in (schema.get("properties") or {}).items()}
    if schema.get(EMBEDDED):
        fields["metadata"] = struct_shape("V1ObjectMeta")
    items, rest = schema.get("items"), schema.get("additionalProperties")
    each = next((_shape(one) for one in (items, rest) if isinstance(one, Mapping)), None)
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    list_type = schema.get("x-kubernetes-list-type") or ("atomic" if schema.get("type") == "array" else "")
    return Shape(
        list_type=list_type,
        keys=keys,
        key_defaults=_key_defaults(items, keys),
        atomic=schema.get("x-kubernetes-map-type") == "atomic",
        fields=fields,
        each=each,
    )


def _key_defaults(items: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    known = items.get("properties") or {} if isinstance(items, Mapping) else {}
    return {key: known[key]["default"] for key in keys if "default" in known.get(key, {})}
