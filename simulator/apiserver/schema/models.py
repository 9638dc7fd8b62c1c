"""OpenAPI schemas of the built-in kinds, read from the official client's models when they are asked for.

A component is named as the real server names it (``io.k8s.api.core.v1.Pod``), so that clients which
follow references show the same words. Nothing of the API's text is kept here: descriptions are the
client's own. What the models do not say (merge keys, quantities) comes from ``merge_facts.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from kubernetes.client import models as client

from volcano_py.simulator.apiserver.schema import merge_facts
from volcano_py.simulator.apiserver.schema.choice_facts import CHOICES
from volcano_py.simulator.apiserver.schema.table_of_kinds import ROWS, Row

Schema = dict[str, Any]

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
TIME = META + "Time"
MICRO_TIME = META + "MicroTime"
FIELDS = META + "FieldsV1"
REFERENCE = "#/components/schemas/"

_META_MODELS = (
    "V1ObjectMeta",
    "V1ListMeta",
    "V1OwnerReference",
    "V1ManagedFieldsEntry",
    "V1LabelSelector",
    "V1LabelSelectorRequirement",
    "V1Status",
    "V1StatusDetails",
    "V1StatusCause",
    "V1DeleteOptions",
    "V1Preconditions",
    "V1Condition",
    "V1ShardInfo",
    "V1FieldSelectorRequirement",
)
# Parts of the core group that only other groups' kinds lead to.
_CORE_MODELS = ("V1TopologySelectorTerm", "V1TopologySelectorLabelRequirement")
# Asked for by subresources, so no row of the table leads to them.
_SUBRESOURCE_MODELS = {
    "V1Eviction": "io.k8s.api.policy.v1.",
    "V1Scale": "io.k8s.api.autoscaling.v1.",
    "AuthenticationV1TokenRequest": "io.k8s.api.authentication.v1.",
}
_PREFIX = re.compile(r"^(?:[A-Z][a-z]+(?=V\d))?V\d+(?:(?:alpha|beta)\d+)?")
_ITEM = re.compile(r"^(List|Dict)\[(?:str, )?(.+)\]$")
_PLAIN: dict[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "object": {"x-kubernetes-preserve-unknown-fields": True},
}


def short_name(model: str) -> str:
    """The name in ``kubectl explain``: *model* without group and version."""
    return _PREFIX.sub("", model)


def model_class(model: str) -> type[Any] | None:
    """The client's class of that name; None where *model* is a plain type such as ``str``."""
    found = getattr(client, model, None)
    return found if isinstance(found, type) and hasattr(found, "openapi_types") else None


@cache
def component_names() -> dict[str, str]:
    """What each model is called in documents, for all models that a built-in kind leads to."""
    names = {model: META + short_name(model) for model in _META_MODELS}
    names |= {model: f"io.k8s.api.core.v1.{short_name(model)}" for model in _CORE_MODELS}
    for row in ROWS:
        _name_reachable(row.model, package_of(row), names)
    for model, package in _SUBRESOURCE_MODELS.items():
        _name_reachable(model, package, names)
    return names


def package_of(row: Row) -> str:
    """The Go package in which a kind's types are defined."""
    if row.group == "apiextensions.k8s.io":
        return f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{row.version}."
    return f"io.k8s.api.{row.group.split('.')[0] or 'core'}.{row.version}."


def _name_reachable(model: str, package: str, names: dict[str, str]) -> None:
    pending = [model]
    while pending:
        current = pending.pop()
        found = model_class(current)
        if current in names or found is None:
            continue
        names[current] = package + short_name(current)
        pending.extend(re.findall(r"\w+", " ".join(found.openapi_types.values())))


@cache
def component(model: str) -> Schema:
    """The schema of *model*; fields of other models are references."""
    found = model_class(model)
    if found is None:
        raise KeyError(model)
    owner = short_name(model)
    schema: Schema = {"type": "object"}
    if description := _description(found):
        schema["description"] = description
    fields = {one.serialization_alias or name: one for name, one in found.model_fields.items()}
    if required := [name for name, one in fields.items() if one.is_required()]:
        schema["required"] = required
    schema["properties"] = {
        found.attribute_map[name]: _property(f"{owner}.{found.attribute_map[name]}", declared, fields)
        for name, declared in found.openapi_types.items()
    }
    if owner in merge_facts.ATOMIC_STRUCTS:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


def _description(found: type[Any]) -> str:
    return (found.__doc__ or "").split("\n    Attributes:")[0].strip()


def _property(key: str, declared: str, fields: Mapping[str, Any]) -> Schema:
    schema = _type(declared, key)
    if description := fields[key.split(".", 1)[1]].description:
        schema = {"description": description, **schema}
    if key in CHOICES:
        holder = schema["items"] if schema.get("type") == "array" else schema
        holder["enum"] = CHOICES[key]
    return {**schema, **_merge_extensions(key, schema)}


def _type(declared: str, key: str) -> Schema:
    if match := _ITEM.match(declared):
        container, item = match.groups()
        inner = _type(item, key)
        return {"type": "array", "items": inner} if container == "List" else _free_map(inner)
    if key in merge_facts.QUANTITIES:
        return {"allOf": [{"$ref": REFERENCE + QUANTITY}]}
    if key in merge_facts.INT_OR_STRING:
        return {"allOf": [{"$ref": REFERENCE + INT_OR_STRING}]}
    if declared == "datetime":
        return {"allOf": [{"$ref": REFERENCE + (MICRO_TIME if key in merge_facts.MICRO_TIMES else TIME)}]}
    if key == "ManagedFieldsEntry.fieldsV1":
        return {"allOf": [{"$ref": REFERENCE + FIELDS}]}
    if declared in _PLAIN:
        return dict(_PLAIN[declared])
    return {"allOf": [{"$ref": REFERENCE + component_names()[declared]}]}


def _free_map(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def _merge_extensions(key: str, schema: Schema) -> Schema:
    if schema.get("type") == "array":
        return _list_extensions(key)
    if key in merge_facts.STRATEGIES:
        return {"x-kubernetes-patch-strategy": merge_facts.STRATEGIES[key]}
    if key in merge_facts.ATOMIC_MAPS:
        return {"x-kubernetes-map-type": "atomic"}
    return {"x-kubernetes-map-type": "granular"} if key in merge_facts.GRANULAR else {}


def _list_extensions(key: str) -> Schema:
    if key in merge_facts.SETS:
        merged = {"x-kubernetes-patch-strategy": "merge"} if key in merge_facts.MERGED_SETS else {}
        return {"x-kubernetes-list-type": "set", **merged}
    merge = merge_facts.LISTS.get(key)
    if merge is None:
        return {"x-kubernetes-list-type": "atomic"}
    extensions: Schema = {"x-kubernetes-list-type": "map" if merge.keys else "atomic"}
    if merge.keys:
        extensions["x-kubernetes-list-map-keys"] = list(merge.keys)
    if merge.patch_key:
        extensions["x-kubernetes-patch-merge-key"] = merge.patch_key
        extensions["x-kubernetes-patch-strategy"] = "merge,retainKeys" if merge.retain_keys else "merge"
    return extensions


PLAIN_COMPONENTS: dict[str, Schema] = {
    QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]},
    INT_OR_STRING: {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    TIME: {"type": "string", "format": "date-time"},
    MICRO_TIME: {"type": "string", "format": "date-time"},
    FIELDS: {"type": "object"},
}


@cache
def models_by_component() -> dict[str, str]:
    """The other way round: which model a component name stands for."""
    return {name: model for model, name in component_names().items()}


def resolve(reference: str) -> Schema:
    """The schema that a ``$ref`` points to.

    Raises:
        KeyError: Nothing built in is called so.
    """
    name = reference.removeprefix(REFERENCE)
    if name in PLAIN_COMPONENTS:
        return PLAIN_COMPONENTS[name]
    return component(models_by_component()[name])
