"""Objects that cases and transcripts make; ``{ns}`` stands for a namespace."""

from __future__ import annotations

from typing import Any

MAPS = "/api/v1/namespaces/{ns}/configmaps"

PODS = "/api/v1/namespaces/{ns}/pods"

APPS = "/apis/apps/v1/namespaces/{ns}"

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

THINGS = "/apis/{ns}.example.com/v1/namespaces/{ns}/things"

TEMPLATE = {"metadata": {"labels": {"x": "z"}}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}}

SELECTOR = {"matchLabels": {"x": "z"}}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"schedulerName": "volcano-py", "containers": [container], **spec},
    }


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def workload(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"selector": SELECTOR, "template": TEMPLATE, **spec}}


def thing(name: str, **parts: Any) -> dict[str, Any]:
    return {"apiVersion": "{ns}.example.com/v1", "kind": "Thing", "metadata": {"name": name}, **parts}


def thing_definition(group: str) -> dict[str, Any]:
    item = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "value": {"type": "integer", "default": 7}},
    }
    spec = {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "minimum": 1},
            "colour": {"type": "string", "default": "red"},
            "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "parts": {
                "type": "array",
                "items": item,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "free": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    status = {"type": "object", "properties": {"phase": {"type": "string"}, "size": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
    }
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
