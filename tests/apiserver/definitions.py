"""Definitions of custom kinds for tests: this project's own, and one that uses every keyword."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from volcano_py import crds
from volcano_py.simulator.apiserver.schema.registry import Registry

FOLDER = Path(crds.__file__).parent / "yaml"


def own() -> list[dict[str, Any]]:
    """Every definition of this project."""
    return [yaml.load(path.read_text(), yaml.CSafeLoader) for path in sorted(FOLDER.glob("*.yaml"))]


def registry(*extra: dict[str, Any]) -> Registry:
    """A registry that serves this project's kinds, and *extra*."""
    made = Registry()
    for definition in (*own(), *extra):
        made.set_crd(definition)
    return made


def rule(text: str, **more: Any) -> list[dict[str, Any]]:
    return [{"rule": text, **more}]


STRING = {"type": "string"}
INTEGER = {"type": "integer"}
FIELDS: dict[str, Any] = {
    "required": {"type": "object", "required": ["a", "b"], "properties": {"a": STRING, "b": INTEGER}},
    "choice": {"type": "integer", "enum": [1, 2]},
    "number": {
        "type": "number",
        "minimum": 1,
        "exclusiveMinimum": True,
        "maximum": 5,
        "exclusiveMaximum": True,
    },
    "text": {"type": "string", "minLength": 2, "maxLength": 4},
    "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": STRING},
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": STRING},
    "map": {
        "type": "array",
        "maxItems": 9,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": STRING,
                "value": {**INTEGER, "x-kubernetes-validations": rule("self > 0")},
            },
        },
    },
    "object": {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 2,
        "additionalProperties": INTEGER,
    },
    "one": {
        "type": "object",
        "properties": {"a": STRING, "b": STRING},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "not": {"type": "object", "properties": {"a": STRING}, "not": {"required": ["a"]}},
    "all": {"type": "string", "allOf": [{"minLength": 3}, {"pattern": "^a"}]},
    "time": {"type": "string", "format": "date-time"},
    "address": {"type": "string", "format": "ipv4"},
    "bytes": {"type": "string", "format": "byte"},
    "embedded": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
    "either": {"x-kubernetes-int-or-string": True},
    "quantity": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "pattern": "^[0-9]+(Mi)?$",
    },
    "nullable": {"type": "string", "nullable": True},
    "plain": STRING,
    "small": {"type": "integer", "format": "int32"},
    "exact": {"type": "string", "x-kubernetes-validations": rule("self == 'x'", message="must be x")},
    "fixed": {"type": "integer", "x-kubernetes-validations": rule("self == oldSelf", message="immutable")},
    "told": {
        "type": "integer",
        "x-kubernetes-validations": rule(
            "self > 5", messageExpression="self > 2 ? 'big' : 'small'", reason="FieldValueForbidden"
        ),
    },
    "inner": {
        "type": "object",
        "properties": {"x": INTEGER, "y": {"type": "array", "items": INTEGER}},
        "x-kubernetes-validations": rule("self.x > 5", fieldPath=".x", message="too small"),
    },
    "positive": {
        "type": "array",
        "maxItems": 5,
        "items": INTEGER,
        "x-kubernetes-validations": rule("self.all(i, i > 0)"),
    },
    "flag": {"type": "boolean", "x-kubernetes-validations": rule("self")},
    "real": {"type": "number", "x-kubernetes-validations": rule("self > 1.0")},
    "defaults": {
        "type": "object",
        "default": {},
        "properties": {
            "k": {"type": "integer", "default": 7},
            "n": {"type": "string", "nullable": True, "default": "z"},
        },
    },
    "preserving": {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"k": {"type": "object", "properties": {"z": INTEGER}}},
    },
}
COLUMNS: list[dict[str, Any]] = [
    {"name": "Text", "type": "string", "jsonPath": ".spec.text"},
    {"name": "Made", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {"name": "Choice", "type": "integer", "jsonPath": ".spec.choice", "priority": 1},
    {"name": "List", "type": "string", "jsonPath": ".spec.list"},
    {"name": "Object", "type": "string", "jsonPath": ".spec.object"},
    {"name": "Flag", "type": "boolean", "jsonPath": ".spec.flag"},
    {"name": "Number", "type": "number", "jsonPath": ".spec.number"},
    {"name": "Filter", "type": "string", "jsonPath": ".spec.map[?(@.name=='a')].value"},
    {"name": "Wrong", "type": "integer", "jsonPath": ".spec.text"},
    {"name": "Every", "type": "string", "jsonPath": ".spec.map[*].name"},
]
PATH = "/apis/test.volcano-py.io/v1/namespaces/{ns}/probes"


def version(name: str, *, storage: bool, **more: Any) -> dict[str, Any]:
    """One version of the definition that uses every keyword."""
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.choice", "statusReplicasPath": ".status.n"},
        },
        "additionalPrinterColumns": COLUMNS,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {"type": "object", "properties": FIELDS},
                    "status": {"type": "object", "properties": {"n": INTEGER}},
                },
            }
        },
        **more,
    }


def every_keyword() -> dict[str, Any]:
    """A definition whose kind, Probe, has a field for each keyword of a schema."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "probes.test.volcano-py.io"},
        "spec": {
            "group": "test.volcano-py.io",
            "scope": "Namespaced",
            "names": {
                "plural": "probes",
                "singular": "probe",
                "kind": "Probe",
                "listKind": "ProbeList",
                "shortNames": ["pb"],
            },
            "versions": [version("v1", storage=True)],
        },
    }


def probe(name: str = "a", **spec: Any) -> dict[str, Any]:
    """An object of that kind."""
    return {"apiVersion": "test.volcano-py.io/v1", "kind": "Probe", "metadata": {"name": name}, "spec": spec}
