"""CustomResourceDefinitions that are refused, and where the real server finds the fault."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

ROOT = "spec.validation.openAPIV3Schema"
RULE = "x-kubernetes-validations"


class BadDefinition(NamedTuple):
    """A definition, and its faults as ``field: reason``."""

    name: str
    document: dict[str, Any]
    faults: list[str]


GOOD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.bad.volcano-py.io"},
    "spec": {
        "group": "bad.volcano-py.io",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


def changed(**spec: Any) -> dict[str, Any]:
    """The good definition with other fields in its spec; None takes one out."""
    document = copy.deepcopy(GOOD)
    for name, value in spec.items():
        if value is None:
            del document["spec"][name]
        else:
            document["spec"][name] = value
    return document


def version(**fields: Any) -> dict[str, Any]:
    return changed(versions=[{**copy.deepcopy(GOOD["spec"]["versions"][0]), **fields}])


def schema(field: dict[str, Any]) -> dict[str, Any]:
    """The good definition with one field, ``a``."""
    return version(schema={"openAPIV3Schema": {"type": "object", "properties": {"a": field}}})


def whole(document: dict[str, Any]) -> dict[str, Any]:
    return version(schema={"openAPIV3Schema": document})


A = f"{ROOT}.properties[a]"
BAD_DEFINITIONS = [
    BadDefinition("scope", changed(scope="Foo"), ["spec.scope: FieldValueNotSupported"]),
    BadDefinition("no scope", changed(scope=None), ["spec.scope: FieldValueRequired"]),
    BadDefinition(
        "no kind",
        changed(names={"plural": "things"}),
        [f"spec.names.{name}: FieldValueRequired" for name in ("kind", "listKind", "singular")],
    ),
    BadDefinition(
        "kind",
        changed(names={"plural": "things", "kind": "9X"}),
        [f"spec.names.{name}: FieldValueInvalid" for name in ("kind", "listKind", "singular")],
    ),
    BadDefinition(
        "other name",
        changed(names={"plural": "others", "kind": "Thing"}),
        ["metadata.name: FieldValueInvalid"],
    ),
    BadDefinition(
        "no schema", version(schema={}), ["spec.versions[0].schema.openAPIV3Schema: FieldValueRequired"]
    ),
    BadDefinition("root type", whole({"type": "string"}), [f"{ROOT}.type: FieldValueInvalid"]),
    BadDefinition("no root type", whole({}), [f"{ROOT}.type: FieldValueRequired"]),
    BadDefinition("no type", schema({}), [f"{A}.type: FieldValueRequired"]),
    BadDefinition("type", schema({"type": "foo"}), [f"{A}.type: FieldValueNotSupported"]),
    BadDefinition("no items", schema({"type": "array"}), [f"{A}.items: FieldValueRequired"]),
    BadDefinition("pattern", schema({"type": "string", "pattern": "["}), [f"{A}.pattern: FieldValueInvalid"]),
    BadDefinition(
        "syntax of a rule",
        schema({"type": "object", RULE: [{"rule": "self.foo("}]}),
        [f"{A}.{RULE}[0].rule: FieldValueInvalid"],
    ),
    BadDefinition(
        "function of a rule",
        schema({"type": "object", RULE: [{"rule": "bar(self)"}]}),
        [f"{A}.{RULE}[0].rule: FieldValueInvalid"],
    ),
    BadDefinition(
        "default", schema({"type": "integer", "default": "x"}), [f"{A}.default: FieldValueTypeInvalid"]
    ),
    BadDefinition(
        "map and struct",
        schema(
            {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "properties": {"b": {"type": "string"}},
            }
        ),
        [f"{A}.additionalProperties: FieldValueForbidden"],
    ),
    BadDefinition(
        "list map",
        schema({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map"}),
        [f"{A}.items.type: FieldValueInvalid", f"{A}.x-kubernetes-list-map-keys: FieldValueRequired"],
    ),
    BadDefinition(
        "alternatives",
        schema({"anyOf": [{"type": "integer"}]}),
        [f"{A}.anyOf[0].type: FieldValueForbidden", f"{A}.type: FieldValueRequired"],
    ),
    BadDefinition(
        "metadata",
        whole(
            {
                "type": "object",
                "properties": {"metadata": {"type": "object", "properties": {"foo": {"type": "string"}}}},
            }
        ),
        [f"{ROOT}.properties[metadata]: FieldValueForbidden"],
    ),
    BadDefinition(
        "scale",
        version(subresources={"scale": {"specReplicasPath": "spec.r", "statusReplicasPath": ".spec.r"}}),
        [
            "spec.subresources.scale.specReplicasPath: FieldValueInvalid",
            "spec.subresources.scale.statusReplicasPath: FieldValueInvalid",
        ],
    ),
    BadDefinition(
        "columns",
        version(additionalPrinterColumns=[{"name": "a", "type": "foo", "jsonPath": "x"}]),
        [
            "spec.additionalPrinterColumns[0].JSONPath: FieldValueInvalid",
            "spec.additionalPrinterColumns[0].type: FieldValueInvalid",
        ],
    ),
    BadDefinition(
        "short name",
        changed(names={"plural": "things", "kind": "Thing", "shortNames": ["A B"]}),
        ["spec.names.shortNames[0]: FieldValueInvalid"],
    ),
]
