"""The same questions to both servers: refusals, discovery, OpenAPI and tables.

Where the embedded server answers otherwise than the real one, the embedded one is wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.bad_definitions import BAD_DEFINITIONS
from tests.apiserver.bad_definitions import GOOD as DEFINITION
from tests.apiserver.bad_objects import BAD
from tests.apiserver.definitions import PATH, every_keyword, own, probe, registry
from tests.apiserver.objects_for_tables import OBJECTS
from tests.apiserver.spaces import exists, new_namespace, until
from tests.apiserver.test_schema_custom import FAULTS, GOOD
from tests.e2e.servers import KINDS
from volcano_py.client.api import Api
from volcano_py.client.errors import ApiError
from volcano_py.simulator.apiserver.schema.discovery import AGGREGATED
from volcano_py.simulator.apiserver.schema.registry import Registry

Configs = Callable[[str], Path]
Resource = tuple[str, ...]
"""Path of a discovery document, and what names a resource in it."""
DRY = {"dryRun": "All"}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
# Long or rare lists of words, which are not told here.
UNTOLD_CHOICES = frozenset(
    {
        "AzureDiskVolumeSource.cachingMode",
        "AzureDiskVolumeSource.kind",
        "CertificateSigningRequestSpec.usages",
        "ContainerStatus.stopSignal",
        "HostPathVolumeSource.type",
        "Lifecycle.stopSignal",
        "ModifyVolumeStatus.status",
        "PersistentVolumeClaimStatus.allocatedResourceStatuses",
        "ServiceSpec.ipFamilies",
    }
)
# Subresources that need a kubelet's connection; the embedded server has none of them.
STREAMS = frozenset({"attach", "exec", "portforward", "proxy"})


@asynccontextmanager
async def reached(configs: Configs, kind: str) -> AsyncIterator[tuple[Api, str]]:
    """A server that serves the test's kinds, and an empty namespace on it."""
    async with await Api.connect(str(configs(kind))) as api:
        definitions = (*own(), every_keyword())
        for definition in definitions:
            await make(api, DEFINITIONS, definition)
        for definition in definitions:
            await until(partial(exists, api, served(definition)))
        yield api, await new_namespace(api)


def served(definition: dict[str, Any]) -> str:
    """Where objects of a defined kind are listed."""
    spec = definition["spec"]
    return f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"


async def make(api: Api, path: str, document: dict[str, Any]) -> None:
    """Create an object; one that is there already may stay."""
    try:
        await api.post(path, document)
    except ApiError as refusal:
        if not refusal.is_exists:
            raise


async def refusal_of(api: Api, path: str, document: dict[str, Any]) -> list[dict[str, str]]:
    """The causes that a server gives against *document*; empty where it takes it."""
    try:
        await api.post(path, document, **DRY)
    except ApiError as refusal:
        found: list[dict[str, str]] = json.loads(refusal.body).get("details", {}).get("causes", [])
        return found
    return []


async def causes(api: Api, path: str, document: dict[str, Any]) -> list[str]:
    return sorted(f"{one['field']}: {one['message']}" for one in await refusal_of(api, path, document))


async def reasons(api: Api, path: str, document: dict[str, Any]) -> list[str]:
    return sorted(f"{one['field']}: {one['reason']}" for one in await refusal_of(api, path, document))


@pytest.mark.parametrize("kind", KINDS)
def test_built_in_kinds_are_refused_in_the_same_words(configs: Configs, kind: str) -> None:
    async def check() -> None:
        async with reached(configs, kind) as (api, namespace):
            for case in BAD:
                found = await causes(api, case.path.replace("{ns}", namespace), copy.deepcopy(case.document))
                assert found == sorted(case.causes), case.name

    asyncio.run(check())


@pytest.mark.parametrize("kind", KINDS)
def test_custom_kinds_are_refused_in_the_same_words(configs: Configs, kind: str) -> None:
    async def check() -> None:
        async with reached(configs, kind) as (api, namespace):
            path = PATH.replace("{ns}", namespace)
            for spec, expected in FAULTS:
                found = await causes(api, path, probe(**copy.deepcopy(spec)))
                assert [one for one in found if "rules were not checked" not in one] == sorted(expected), spec
            for spec in GOOD:
                assert await causes(api, path, probe(**copy.deepcopy(spec))) == [], spec

    asyncio.run(check())


@pytest.mark.parametrize("kind", KINDS)
def test_definitions_are_refused_for_the_same_reasons(configs: Configs, kind: str) -> None:
    async def check() -> None:
        async with reached(configs, kind) as (api, _):
            for case in BAD_DEFINITIONS:
                assert await reasons(api, DEFINITIONS, case.document) == sorted(case.faults), case.name
            assert await reasons(api, DEFINITIONS, DEFINITION) == []

    asyncio.run(check())


def plain(value: Any) -> Any:
    """A discovery document without what only the real server has."""
    if isinstance(value, dict):
        kept = {key: plain(inner) for key, inner in value.items() if key != "storageVersionHash"}
        if "subresources" in kept:
            kept["subresources"] = [one for one in kept["subresources"] if one["subresource"] not in STREAMS]
        return {key: inner for key, inner in kept.items() if inner != []}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("accept", ["application/json", AGGREGATED])
def test_discovery_says_the_same_of_every_kind(configs: Configs, accept: str) -> None:
    async def check() -> None:
        async with reached(configs, "embedded") as (api, _):
            embedded = await discovered(api, accept)
        assert len(embedded) > 60
        real: dict[Resource, Any] = {}

        async def knows_all() -> bool:
            real.update(await discovered(api, accept))
            return embedded.keys() <= real.keys()

        async with reached(configs, "real") as (api, _):
            # The real server tells of a new kind a moment after it serves it.
            with contextlib.suppress(TimeoutError):
                await until(knows_all)
        for name, resource in embedded.items():
            assert resource == real.get(name), name

    asyncio.run(check())


async def discovered(api: Api, accept: str) -> dict[Resource, Any]:
    """What discovery says of each resource, in one document or in one of each group."""
    if accept == AGGREGATED:
        paths = ["/api", "/apis"]
    else:
        groups = json.loads(await api.call("GET", "/apis"))["groups"]
        paths = ["/api/v1", *(f"/apis/{one['preferredVersion']['groupVersion']}" for one in groups)]
    found: dict[Resource, Any] = {}
    for path in paths:
        try:
            document = json.loads(await api.call("GET", path, accept=accept))
        except ApiError as error:
            if not error.is_missing:
                raise
            continue  # a group whose last kind has gone may be named for a moment
        found |= resources(path, document)
    return found


def resources(path: str, document: dict[str, Any]) -> dict[Resource, Any]:
    """The resources of one document of discovery, by path, name and version."""
    found: dict[Resource, Any] = {}
    for resource in document.get("resources", ()):
        found[path, resource["name"]] = plain(resource)
    for group in document.get("items", ()):
        for version in group["versions"]:
            for resource in version["resources"]:
                name = group["metadata"].get("name", "")
                found[path, name, version["version"], resource["resource"]] = plain(resource)
    return found


def test_openapi_merges_as_the_real_server_does(configs: Configs) -> None:
    async def fetch() -> dict[str, Any]:
        async with reached(configs, "real") as (api, _):
            index = json.loads(await api.call("GET", "/openapi/v3"))["paths"]
            schemas: dict[str, Any] = {}
            for name in index:
                if name.count("/"):
                    document = json.loads(await api.call("GET", f"/openapi/v3/{name}"))
                    schemas.update(document.get("components", {}).get("schemas", {}))
            return schemas

    real = asyncio.run(fetch())
    compared = 0
    for name, schema in ours().items():
        for field, mine in schema.get("properties", {}).items():
            theirs = real.get(name, {}).get("properties", {}).get(field)
            # The client's models are of a newer release: they may know more.
            free = "x-kubernetes-preserve-unknown-fields" in json.dumps(mine)
            if theirs is not None and name.startswith("io.k8s") and not free:
                untold = f"{name.rsplit('.', 1)[1]}.{field}" in UNTOLD_CHOICES
                assert extensions(mine, untold) == extensions(theirs, untold), (name, field)
                compared += 1
    assert compared > 1500


def ours() -> dict[str, Any]:
    made = registry()
    schemas: dict[str, Any] = {}
    for path in answer(made, "/openapi/v3")["paths"]:
        schemas.update(answer(made, f"/openapi/v3/{path}")["components"]["schemas"])
    return schemas


def answer(made: Registry, path: str) -> dict[str, Any]:
    found = made.answer(path, "application/json", "")
    assert found is not None
    document: dict[str, Any] = json.loads(found.body)
    return document


def extensions(schema: dict[str, Any], untold: bool = False) -> dict[str, Any]:
    """Type, choices, references and merge keys of a field, without words and defaults."""
    told = {"type"} if untold else {"type", "enum"}
    kept = {key: value for key, value in schema.items() if key in told or key.startswith("x-kubernetes")}
    for keyword in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(keyword), dict):
            kept[keyword] = extensions(inner, untold)
    references = [schema] if "$ref" in schema else schema.get("allOf", [])
    if references:
        kept["reference"] = references[0]["$ref"]
    return kept


def test_tables_show_what_the_real_server_shows(configs: Configs) -> None:
    async def check() -> None:
        made = registry(every_keyword())
        async with reached(configs, "real") as (api, namespace):
            for template, documents in OBJECTS.items():
                path = template.replace("{ns}", namespace)
                for document in documents:
                    await make_with_status(
                        api, path, json.loads(json.dumps(document).replace("{ns}", namespace))
                    )
                await compare(api, made, path)
                if path == template:
                    await unmake(api, path, documents)

    asyncio.run(check())


async def unmake(api: Api, path: str, documents: Sequence[dict[str, Any]]) -> None:
    """Delete what is in no namespace; other cases meet a default class, or nodes, of their own only."""
    for document in documents:
        await api.delete(f"{path}/{document['metadata']['name']}")


async def make_with_status(api: Api, path: str, document: dict[str, Any]) -> None:
    """Create an object, then write the status that stands in it."""
    status = document.pop("status", None)
    await make(api, path, document)
    if status is not None:
        name = document["metadata"]["name"]
        sub = "" if "podgroups" in path else "/status"
        await api.patch(f"{path}/{name}{sub}", {"status": status})


async def compare(api: Api, made: Registry, path: str) -> None:
    """The real server's Table of what is at *path*, and our Table of the objects in its rows."""
    *_, group, version, rest = (
        path.partition("/apis/")[2].split("/", 2) if "/apis/" in path else ("", "v1", path)
    )
    kind = made.resolve(group, version, path.rsplit("/", 1)[1])
    assert kind is not None, rest
    query = {"includeObject": "Object"}
    began = time.time()
    theirs = json.loads(await api.call("GET", path, query=query, accept=TABLE))
    ended = time.time()
    moments = [*(began + second for second in range(int(ended - began) + 1)), ended]
    items = [row["object"] for row in theirs["rows"]]
    mine = [made.table(kind, items, "Object", metadata={}, now=now) for now in moments]
    for column, known in zip(mine[0]["columnDefinitions"], theirs["columnDefinitions"], strict=True):
        named = {key: column[key] for key in ("name", "type", "format", "priority")}
        assert named == {key: known[key] for key in named}, path
    assert items
    for *rows, known in zip(*(table["rows"] for table in mine), theirs["rows"], strict=True):
        name = (path, rows[0]["object"]["metadata"]["name"])
        # Ages are those of the moment at which the server looked.
        for *cells, cell in zip(*(row["cells"] for row in rows), known["cells"], strict=True):
            assert cell in cells, name
        assert rows[0].get("conditions") == known.get("conditions"), name
