"""What is there before anybody asks: namespaces, priority classes, our own definitions."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

import yaml

from volcano_py.simulator.apiserver.cluster import Cluster
from volcano_py.simulator.apiserver.status import Document

_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
_SYSTEM_CLASSES: Final = {
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if "
        "necessary.",
    ),
}


def furnish(cluster: Cluster, *, crds: bool) -> None:
    """Make what is missing; what is there stays as it is."""
    for name in _NAMESPACES:
        cluster.ensure("", "v1", "namespaces", {"metadata": {"name": name}})
    for name, (value, description) in _SYSTEM_CLASSES.items():
        document = {"metadata": {"name": name}, "value": value, "description": description}
        cluster.ensure("scheduling.k8s.io", "v1", "priorityclasses", document)
    if crds:
        for document in our_definitions():
            cluster.ensure("apiextensions.k8s.io", "v1", "customresourcedefinitions", document)


def our_definitions() -> list[Document]:
    """The CustomResourceDefinitions of this project."""
    folder = files("volcano_py.crds").joinpath("yaml")
    found = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".yaml")), key=lambda e: e.name
    )
    return [
        document
        for entry in found
        for document in yaml.load_all(entry.read_text(), yaml.CSafeLoader)
        if document
    ]
