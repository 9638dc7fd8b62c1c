"""OpenAPI documents: version 3 for one group version, version 2 for everything.

``kubectl explain`` finds a kind's schema through its paths; ``kubectl apply`` looks for the query
parameters of a patch and for merge keys. Both read the documents made here, on request.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from volcano_py.simulator.apiserver.schema.builtin import BuiltinKind
from volcano_py.simulator.apiserver.schema.custom import CustomKind
from volcano_py.simulator.apiserver.schema.discovery import verbs_of
from volcano_py.simulator.apiserver.schema.kinds import ServedKind
from volcano_py.simulator.apiserver.schema.models import (
    META,
    REFERENCE,
    component,
    component_names,
    resolve,
)

Document = dict[str, Any]

_REFERENCE_KEY = "$ref"
_PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_LIST_PARAMETERS = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_DELETE_PARAMETERS = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_TYPED_PARAMETERS = {
    "allowWatchBookmarks": "boolean",
    "force": "boolean",
    "gracePeriodSeconds": "integer",
    "limit": "integer",
    "orphanDependents": "boolean",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}


def version_3(kinds: Iterable[ServedKind]) -> Document:
    """The document of one group version.

    Args:
        kinds: All kinds of that version.
    """
    served = list(kinds)
    paths: Document = {}
    schemas: Document = {}
    for kind in served:
        paths.update(_paths(kind))
        schemas.update(_own_components(kind))
    schemas.update(
        _referenced([*schemas.values(), {_REFERENCE_KEY: f"{REFERENCE}{META}DeleteOptions"}], schemas)
    )
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1"},
        "paths": paths,
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def version_2(kinds: Iterable[ServedKind]) -> Document:
    """The document of everything, in the old form."""
    whole = version_3(kinds)
    definitions = json.loads(
        json.dumps(whole["components"]["schemas"]).replace(REFERENCE, "#/definitions/"),
        object_hook=_version_2_schema,
    )
    paths = {path: _version_2_path(item) for path, item in whole["paths"].items()}
    return {"swagger": "2.0", "info": whole["info"], "paths": paths, "definitions": definitions}


def _version_2_schema(schema: Document) -> Document:
    """References stand alone in the old form, and alternatives are not known."""
    if len(schema.get("allOf") or ()) == 1 and _REFERENCE_KEY in schema["allOf"][0]:
        schema[_REFERENCE_KEY] = schema.pop("allOf")[0][_REFERENCE_KEY]
    for keyword in ("oneOf", "anyOf", "not", "nullable"):
        if not isinstance(schema.get(keyword), dict) or keyword == "not":
            schema.pop(keyword, None)
    return schema


def _version_2_path(item: Document) -> Document:
    return {
        verb: operation if verb == "parameters" else _version_2_operation(operation)
        for verb, operation in item.items()
    }


def _version_2_operation(operation: Document) -> Document:
    kept = {
        key: value
        for key, value in operation.items()
        if key not in ("requestBody", "parameters", "responses")
    }
    parameters = [{**one, "type": one["schema"]["type"]} for one in operation.get("parameters", ())]
    for one in parameters:
        del one["schema"]
    if body := operation.get("requestBody"):
        kept["consumes"] = list(body["content"])
        parameters.append({"name": "body", "in": "body", "required": True, "schema": {"type": "object"}})
    return {**kept, "parameters": parameters, "responses": {"200": {"description": "OK"}}}


def component_name(kind: ServedKind) -> str:
    """What a kind's schema is called in documents."""
    if isinstance(kind, BuiltinKind):
        return component_names()[kind.model]
    return f"{'.'.join(reversed(kind.group.split('.')))}.{kind.version}.{kind.kind}"


def _own_components(kind: ServedKind) -> Iterator[tuple[str, Document]]:
    name = component_name(kind)
    schema = _builtin_schema(kind) if isinstance(kind, BuiltinKind) else _custom_schema(kind)
    yield name, {**schema, "x-kubernetes-group-version-kind": [_group_version_kind(kind, kind.kind)]}
    if "list" in kind.verbs:
        yield _list_name(kind), _list_schema(kind, name)


def _list_name(kind: ServedKind) -> str:
    return component_name(kind).removesuffix(kind.kind) + kind.list_kind


def _builtin_schema(kind: BuiltinKind) -> Document:
    return component(kind.model)


def _custom_schema(kind: ServedKind) -> Document:
    if not isinstance(kind, CustomKind):
        raise TypeError(kind.kind)
    object_fields = component("V1Status")["properties"]
    metadata = component("V1ConfigMap")["properties"]["metadata"]
    plain = {"apiVersion": object_fields["apiVersion"], "kind": object_fields["kind"], "metadata": metadata}
    return {**kind.schema, "properties": {**plain, **(kind.schema.get("properties") or {}), **plain}}


def _list_schema(kind: ServedKind, name: str) -> Document:
    plain = component("V1Status")["properties"]
    return {
        "type": "object",
        "description": f"{kind.list_kind} is a list of {kind.kind}",
        "required": ["items"],
        "properties": {
            "apiVersion": plain["apiVersion"],
            "items": {"type": "array", "items": {"allOf": [{_REFERENCE_KEY: REFERENCE + name}]}},
            "kind": plain["kind"],
            "metadata": plain["metadata"],
        },
        "x-kubernetes-group-version-kind": [_group_version_kind(kind, kind.list_kind)],
    }


def _group_version_kind(kind: ServedKind, name: str) -> Document:
    return {"group": kind.group, "version": kind.version, "kind": name}


def _referenced(schemas: Iterable[Document], known: Document) -> Document:
    """All components that *schemas* lead to and that are not in *known*."""
    found: Document = {}
    pending = list(schemas)
    while pending:
        for reference in _references(pending.pop()):
            name = reference.removeprefix(REFERENCE)
            if name not in known and name not in found:
                found[name] = resolve(reference)
                pending.append(found[name])
    return found


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        reference = value.get(_REFERENCE_KEY)
        # A schema of schemas has a field of that name, which is no reference.
        if isinstance(reference, str):
            yield reference
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def _paths(kind: ServedKind) -> Iterator[tuple[str, Document]]:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    scoped = f"{root}/namespaces/{{namespace}}" if kind.namespaced else root
    verbs = set(verbs_of(kind))
    if kind.namespaced and "list" in verbs:
        yield f"{root}/{kind.plural}", {"get": _operation(kind, "list", _LIST_PARAMETERS)}
    yield f"{scoped}/{kind.plural}", _collection(kind, verbs)
    if "get" in verbs:
        yield f"{scoped}/{kind.plural}/{{name}}", _item(kind)
    if "status" in kind.subresources:
        yield f"{scoped}/{kind.plural}/{{name}}/status", _item(kind, deletes=False)


def _collection(kind: ServedKind, verbs: set[str]) -> Document:
    item: Document = {}
    if "list" in verbs:
        item["get"] = _operation(kind, "list", _LIST_PARAMETERS)
    if "create" in verbs:
        item["post"] = _operation(kind, "post", _WRITE_PARAMETERS, ("*/*",))
    if "deletecollection" in verbs:
        item["delete"] = _operation(kind, "deletecollection", _LIST_PARAMETERS)
    return item


def _item(kind: ServedKind, *, deletes: bool = True) -> Document:
    patches = _PATCHES[:3] if kind.custom else _PATCHES
    item = {
        "get": _operation(kind, "get", ()),
        "put": _operation(kind, "put", _WRITE_PARAMETERS, ("*/*",)),
        "patch": _operation(kind, "patch", (*_WRITE_PARAMETERS, "force"), patches),
    }
    if deletes:
        item["delete"] = _operation(kind, "delete", _DELETE_PARAMETERS)
    return item


def _operation(
    kind: ServedKind, action: str, parameters: Iterable[str], bodies: Iterable[str] = ()
) -> Document:
    answer = {_REFERENCE_KEY: REFERENCE + (_list_name(kind) if action == "list" else component_name(kind))}
    operation: Document = {
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": answer}}}},
        "parameters": [
            {"name": name, "in": "query", "schema": {"type": _TYPED_PARAMETERS.get(name, "string")}}
            for name in parameters
        ],
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _group_version_kind(kind, kind.kind),
    }
    if content := {body: {"schema": {"type": "object"}} for body in bodies}:
        operation["requestBody"] = {"content": content, "required": True}
    return operation
