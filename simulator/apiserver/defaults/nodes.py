"""Nodes."""

from __future__ import annotations

from typing import Final

from volcano_py.simulator.apiserver.status import Document

_UNKNOWN_SYSTEM: Final = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


def default_node(node: Document) -> None:
    """What a node reports of its capacity is allocatable, unless it says otherwise."""
    node.setdefault("spec", {})
    status = node.setdefault("status", {})
    if status.get("capacity"):
        allocatable = status.setdefault("allocatable", {})
        for name, amount in status["capacity"].items():
            allocatable.setdefault(name, amount)
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
    system = status.setdefault("nodeInfo", {})
    for name in _UNKNOWN_SYSTEM:
        system.setdefault(name, "")
    for condition in status.get("conditions") or ():
        condition.setdefault("lastHeartbeatTime", None)
        condition.setdefault("lastTransitionTime", None)
