"""Other editions of our custom kinds than crds/yaml has, and their change on a live server."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from tests.e2e.cluster import CRDS, Cluster
from tests.e2e.live import Document
from volcano_py.client.resources import RESOURCES

PODGROUPS = "podgroups.scheduling.volcano.sh"
QUEUES = "queues.scheduling.volcano.sh"
# Fields that an edition may lack, and values for them.
PROBES: dict[str, Document] = {
    PODGROUPS: {"minTaskMember": {"a": 1}},
    QUEUES: {"max": {"cpu": "1"}},
}


def shipped(name: str) -> Document:
    """The definition *name* as crds/yaml has it."""
    document: Document = yaml.safe_load((CRDS / f"{name}.yaml").read_text())
    return document


def with_status(definition: Document, *, apart: bool) -> Document:
    """*definition* with its status written *apart* from the object, or with it."""
    changed = copy.deepcopy(definition)
    for version in changed["spec"]["versions"]:
        version["subresources"] = {"status": {}} if apart else {}
    return changed


def without_columns(definition: Document) -> Document:
    """*definition* with no columns of its own in tables."""
    changed = copy.deepcopy(definition)
    for version in changed["spec"]["versions"]:
        version.pop("additionalPrinterColumns", None)
    return changed


def without_field(definition: Document, *path: str) -> Document:
    """*definition* without the field at *path* of its objects, and without the rules that may speak of it."""
    changed = copy.deepcopy(definition)
    *parents, last = path
    for version in changed["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        for name in parents:
            schema.pop("x-kubernetes-validations", None)
            schema = schema["properties"][name]
        schema.pop("x-kubernetes-validations", None)
        del schema["properties"][last]
    return changed


@contextmanager
def replaced(cluster: Cluster, *definitions: Document) -> Iterator[None]:
    """Until the end of the block the server has *definitions*; then those of crds/yaml again."""
    names = [definition["metadata"]["name"] for definition in definitions]
    try:
        apply(cluster, *definitions)
        yield
    finally:
        apply(cluster, *map(shipped, names))


def apply(cluster: Cluster, *definitions: Document) -> None:
    """Give the server *definitions* in place of those of their names, and wait until they are served."""
    for definition in definitions:
        versions = definition["spec"]["versions"]
        name = definition["metadata"]["name"]
        cluster.patch("CustomResourceDefinition", name, {"spec": {"versions": versions}})
        cluster.until(lambda: _is_served(cluster, definition), what=f"{name} served")  # noqa: B023 - at once


def _is_served(cluster: Cluster, definition: Document) -> bool:
    """Whether the server goes by *definition*: it is a moment behind what it was given.

    Discovery shows the status endpoint exactly where there is to be one, and a new object would keep
    exactly the fields that the schema has.
    """
    spec: dict[str, Any] = definition["spec"]
    version = spec["versions"][0]
    found = cluster.call(cluster.api.get(f"/apis/{spec['group']}/{version['name']}"))
    listed = f"{spec['names']['plural']}/status" in {each["name"] for each in found["resources"]}
    if listed != ("status" in version.get("subresources", {})):
        return False
    known = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    asked = PROBES[definition["metadata"]["name"]]
    return _kept(cluster, spec["names"]["kind"], asked) == {name for name in asked if name in known}


def _kept(cluster: Cluster, kind: str, spec: Document) -> set[str]:
    """Which fields of *spec* a new object of *kind* would keep; none is made."""
    resource = RESOURCES[kind]
    probe = {"apiVersion": resource.api_version, "kind": kind, "metadata": {"name": "probe"}, "spec": spec}
    space = cluster.space if resource.namespaced else None
    made = cluster.ask("POST", resource.path(space), probe, query={"dryRun": "All"})
    return set(made.get("spec", {})) & set(spec)
