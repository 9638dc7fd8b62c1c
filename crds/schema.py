"""CustomResourceDefinitions out of the models: structural OpenAPI schemas and all that stands around them.

pydantic writes JSON Schema; the API server takes a narrower language: no references, a type on every node, no
``additionalProperties`` beside ``properties``, integers and texts in one field only in one fixed form. What
the models say besides types (CEL rules, defaults that are written, free-form parts) they say themselves; here
it is only brought into that form. Neighbours: ``base`` (models), ``generate`` (writes the files).

Source: the structural schema rules of apiextensions.k8s.io/v1.
"""

from typing import Any, Final

from volcano_py.crds.base import INT32_MAX, INT32_MIN, Column, CrdObject

__all__ = ["crd_manifest", "structural_schema"]

Schema = dict[str, Any]

_KEPT: Final = (
    "description", "type", "format", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength",
    "minItems", "maxItems", "required", "anyOf", "x-kubernetes-int-or-string", "x-kubernetes-list-type",
    "x-kubernetes-validations",
)  # fmt: skip


def crd_manifest(kind: type[CrdObject]) -> dict[str, Any]:
    """The CustomResourceDefinition of *kind*."""
    info = kind.info
    version: dict[str, Any] = {
        "name": info.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": structural_schema(kind)},
        "subresources": {"status": {}} if info.status_subresource else {},
    }
    if info.columns:
        version["additionalPrinterColumns"] = [_printer_column(column) for column in info.columns]
    names: dict[str, Any] = {
        "kind": info.kind,
        "listKind": f"{info.kind}List",
        "plural": info.plural,
        "singular": info.kind.lower(),
    }
    if info.short_names:
        names["shortNames"] = list(info.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # A helm uninstall must not take everybody's jobs with it.
        "metadata": {
            "name": f"{info.plural}.{info.group}",
            "annotations": {"helm.sh/resource-policy": "keep"},
        },
        "spec": {
            "group": info.group,
            "names": names,
            "scope": "Cluster" if info.cluster_scoped else "Namespaced",
            "versions": [version],
        },
    }


def structural_schema(kind: type[CrdObject]) -> Schema:
    """The OpenAPI v3 schema of *kind* as the API server takes it."""
    source = kind.model_json_schema(by_alias=True, mode="validation")
    schema = _structural(source, source.get("$defs", {}))
    properties = schema["properties"]
    properties["apiVersion"] = {"type": "string", "description": "Group and version of the object."}
    properties["kind"] = {"type": "string", "description": "Kind of the object."}
    properties["metadata"] = {"type": "object"}
    return schema


def _structural(node: Schema, definitions: dict[str, Schema]) -> Schema:
    """*node* without references and in the API server's words."""
    node = _flat(node, definitions)
    result: Schema = {key: node[key] for key in _KEPT if key in node}
    if "x-api-default" in node:
        result["default"] = node["default"]
    if result.get("type") == "integer":
        _name_int32(result)
    if "properties" in node:
        result["properties"] = {
            name: _structural(below, definitions) for name, below in node["properties"].items()
        }
    elif result.get("type") == "object":
        result.update(_map_schema(node, definitions))
    if "items" in node:
        result["items"] = _structural(node["items"], definitions)
    return result


def _map_schema(node: Schema, definitions: dict[str, Schema]) -> Schema:
    """What an object without named fields holds: values of one type, or anything."""
    values = node.get("additionalProperties")
    if isinstance(values, dict):
        return {"additionalProperties": _structural(values, definitions)}
    return {"x-kubernetes-preserve-unknown-fields": True}


def _flat(node: Schema, definitions: dict[str, Schema]) -> Schema:
    """*node* with its reference and its null branch resolved; what stands beside them wins."""
    if "$ref" in node:
        target = definitions[node["$ref"].removeprefix("#/$defs/")]
        return _flat(target | {key: value for key, value in node.items() if key != "$ref"}, definitions)
    branches = [branch for branch in node.get("anyOf", ()) if branch != {"type": "null"}]
    if len(branches) == 1:
        beside = {key: value for key, value in node.items() if key != "anyOf"}
        return _flat(branches[0] | beside, definitions)
    return node


def _name_int32(schema: Schema) -> None:
    """Say int32 where the limits are those of an int32."""
    if schema.get("maximum") == INT32_MAX:
        del schema["maximum"]
        schema["format"] = "int32"
    if schema.get("minimum") == INT32_MIN:
        del schema["minimum"]


def _printer_column(column: Column) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.json_path}
    return entry | ({"priority": column.priority} if column.priority else {})
