"""CustomResourceDefinitions: names, versions, and schemas that the server can use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from celpy.celtypes import StringType
from celpy.evaluation import CELEvalError, base_functions

from volcano_py.simulator.apiserver.schema.checks.causes import (
    each,
    forbidden,
    immutable,
    invalid,
    one_of,
    required,
    unsupported,
)
from volcano_py.simulator.apiserver.schema.checks.names import dns_1035_faults
from volcano_py.simulator.apiserver.schema.kinds import Cause, Document
from volcano_py.simulator.apiserver.schema.rules import definition_faults, parts_of
from volcano_py.simulator.apiserver.schema.values import faults

Schema = Mapping[str, Any]

_ROOT = "spec.validation.openAPIV3Schema"
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


def crd_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """Everything that is wrong with a definition, or with its change."""
    if subresource == "status":
        return
    spec = new.get("spec") or {}
    names = spec.get("names") or {}
    plural, group = names.get("plural", ""), spec.get("group", "")
    if old is None and new["metadata"].get("name") != f"{plural}.{group}":
        yield invalid(
            "metadata.name", new["metadata"].get("name"), 'must be spec.names.plural+"."+spec.group'
        )
    if not group:
        yield required("spec.group")
    if not spec.get("scope"):
        yield required("spec.scope")
    else:
        yield from one_of("spec.scope", spec["scope"], ("Cluster", "Namespaced"))
    yield from _version_list_faults(spec.get("versions") or [])
    yield from _name_faults(names)
    yield from _conversion_faults(spec.get("conversion") or {})
    if old is not None:
        before = old["spec"]
        yield from immutable("spec.group", group, before["group"])
        yield from immutable("spec.scope", spec.get("scope"), before["scope"])
        yield from immutable("spec.names.kind", names.get("kind"), before["names"]["kind"])
        yield from immutable("spec.names.plural", plural, before["names"]["plural"])


def _name_faults(names: Mapping[str, Any]) -> Iterator[Cause]:
    kind = names.get("kind", "")
    singular = names.get("singular") or kind.lower()
    list_kind = names.get("listKind") or (f"{kind}List" if kind else "")
    for name, value in (("plural", names.get("plural", "")), ("singular", singular)):
        if not value:
            yield required(f"spec.names.{name}")
        else:
            yield from each(f"spec.names.{name}", value, dns_1035_faults(value))
    for name, value in (("kind", kind), ("listKind", list_kind)):
        if not value:
            yield required(f"spec.names.{name}")
        else:
            wrong = dns_1035_faults(value.lower())
            mixed = [f"may have mixed case, but should otherwise match: {rule}" for rule in wrong]
            yield from each(f"spec.names.{name}", value, mixed)
    for name in ("shortNames", "categories"):
        for position, value in enumerate(names.get(name) or ()):
            yield from each(f"spec.names.{name}[{position}]", value, dns_1035_faults(value))


def _conversion_faults(conversion: Mapping[str, Any]) -> Iterator[Cause]:
    strategy = conversion.get("strategy", "None")
    if strategy == "Webhook":
        # A definition that needs more than other names must not be taken for one that works.
        yield forbidden(
            "spec.conversion.strategy", "this server converts between versions with strategy None only"
        )
    else:
        yield from one_of("spec.conversion.strategy", strategy, ("None", "Webhook"))


def _version_list_faults(versions: list[Mapping[str, Any]]) -> Iterator[Cause]:
    quoted = [
        {"Name": one.get("name"), "Served": one.get("served"), "Storage": one.get("storage")}
        for one in versions
    ]
    named = [one.get("name") for one in versions]
    if len(set(named)) != len(named):
        yield invalid("spec.versions", quoted, "must contain unique version names")
    if sum(bool(one.get("storage")) for one in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", quoted or None, detail)
    for position, one in enumerate(versions):
        at = f"spec.versions[{position}]"
        yield from each(f"{at}.name", one.get("name", ""), dns_1035_faults(one.get("name", "")))
        # The real server says where in a schema, but of one version only: not in which.
        schema = (one.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            yield required(f"{at}.schema.openAPIV3Schema")
        else:
            yield from schema_faults(schema)
        yield from _column_faults(one.get("additionalPrinterColumns") or ())
        yield from _scale_faults((one.get("subresources") or {}).get("scale"))


def _column_faults(columns: Any) -> Iterator[Cause]:
    for position, one in enumerate(columns):
        at = f"spec.additionalPrinterColumns[{position}]"
        if one.get("type") not in _COLUMN_TYPES:
            yield invalid(f"{at}.type", one.get("type", ""), f"must be one of {','.join(_COLUMN_TYPES)}")
        if not one.get("name"):
            yield required(f"{at}.name")
        if not one.get("jsonPath", "").startswith("."):
            detail = "must be a simple json path starting with ."
            yield invalid(f"{at}.JSONPath", one.get("jsonPath", ""), detail)


def _scale_faults(scale: Mapping[str, Any] | None) -> Iterator[Cause]:
    for name, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        path = (scale or {}).get(name, "")
        if scale is None:
            continue
        at = f"spec.subresources.scale.{name}"
        if not path:
            yield required(at)
        elif not path.startswith("."):
            yield invalid(at, path, "must be a simple json path starting with .")
        elif not path.startswith(f"{root}."):
            yield invalid(at, path, f"should be a json path under {root}")


def schema_faults(schema: Schema) -> Iterator[Cause]:
    """Whether a schema is structural, and its rules can be compiled."""
    kind = schema.get("type")
    if not kind:
        yield required(f"{_ROOT}.type", "must not be empty at the root")
    elif kind != "object":
        yield invalid(f"{_ROOT}.type", kind, "must be object at the root")
    yield from _metadata_faults(schema)
    yield from _part_faults(schema, _ROOT)
    yield from definition_faults(schema, _ROOT)


def _metadata_faults(schema: Schema) -> Iterator[Cause]:
    metadata = (schema.get("properties") or {}).get("metadata") or {}
    if set(metadata.get("properties") or ()) - {"name", "generateName"}:
        detail = (
            "must not specify anything other than name and generateName, but metadata is implicitly specified"
        )
        yield forbidden(f"{_ROOT}.properties[metadata]", detail)


def _part_faults(schema: Schema, place: str) -> Iterator[Cause]:
    """Faults of one schema and of those inside it."""
    yield from _type_faults(schema, place)
    if schema.get("additionalProperties") and schema.get("properties"):
        yield forbidden(
            f"{place}.additionalProperties", "additionalProperties and properties are mutual exclusive"
        )
    if (pattern := schema.get("pattern")) and (wrong := _pattern_fault(pattern)):
        yield invalid(f"{place}.pattern", pattern, f"must be a valid regular expression, but isn't: {wrong}")
    yield from _alternative_faults(schema, place)
    yield from _list_faults(schema, place)
    if schema.get("default") is not None:
        for cause in faults(schema, schema["default"]):
            yield cause._replace(field=f"{place}.default")
    for where, inner in parts_of(schema):
        yield from _part_faults(inner, f"{place}.{where}")


def _type_faults(schema: Schema, place: str) -> Iterator[Cause]:
    kind = schema.get("type")
    if kind is not None and kind not in _TYPES:
        yield unsupported(f"{place}.type", kind, _TYPES)
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not kind and not free and place != _ROOT:
        where = "array items" if place.endswith(".items") else "object fields"
        yield required(f"{place}.type", f"must not be empty for specified {where}")
    if kind == "array" and "items" not in schema:
        yield required(f"{place}.items", "must be specified")


def _pattern_fault(pattern: str) -> str:
    found = base_functions["matches"](StringType(""), StringType(pattern))
    return f"error parsing regexp: `{pattern}`" if isinstance(found, CELEvalError) else ""


def _alternative_faults(schema: Schema, place: str) -> Iterator[Cause]:
    """Alternatives may narrow values, but not say what fields there are."""
    if schema.get("x-kubernetes-int-or-string") and schema.get("anyOf") == _INT_OR_STRING:
        return
    for keyword in ("allOf", "anyOf", "oneOf"):
        for position, one in enumerate(schema.get(keyword) or ()):
            for name in ("type", "additionalProperties", "default", "description", "nullable"):
                if one.get(name) and not (keyword == "allOf" and one.get("anyOf") == _INT_OR_STRING):
                    yield forbidden(f"{place}.{keyword}[{position}].{name}", "must be empty to be structural")


def _list_faults(schema: Schema, place: str) -> Iterator[Cause]:
    if schema.get("x-kubernetes-list-type") != "map":
        return
    keys = schema.get("x-kubernetes-list-map-keys")
    items = schema.get("items")
    if not keys:
        detail = "must not be empty if x-kubernetes-list-type is map"
        yield required(f"{place}.x-kubernetes-list-map-keys", detail)
    if isinstance(items, Mapping) and items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{place}.items.type", items.get("type", ""), detail)
