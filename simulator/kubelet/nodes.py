"""Pretend nodes: what they report, and how they come onto an API server.

A node of ours carries the label ``playground.volcano-py.io/pretend``; by it the kubelets know which nodes
they play. Cards are reported as their device plugins would (``card_shorthand``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from volcano_py.client.api import RESOURCES, Api, ApiError
from volcano_py.scheduler.model.kube.times import format_time
from volcano_py.simulator.card_shorthand import node_cards
from volcano_py.simulator.kubelet.statuses import HOST_IP

Document = dict[str, Any]
PRETEND_LABEL: Final = "playground.volcano-py.io/pretend"
SELECTOR: Final = f"{PRETEND_LABEL}=true"
VERSION: Final = "v1.36.1-pretend"
_NODES: Final = RESOURCES["Node"]
_NOT_READY: Final = "node.kubernetes.io/not-ready"


@dataclass(frozen=True, slots=True)
class CardShape:
    """The cards of each node.

    Attributes:
        count: cards a node; 0: none.
        memory_mib: of each card.
        slots: pods that may share a card.
        model: as the device plugin reports it.
        family: whose device plugin reports them: ``hami`` or ``volcano``.
    """

    count: int = 0
    memory_mib: int = 81920
    slots: int = 10
    model: str = "NVIDIA-A100-SXM4-80GB"
    family: str = "hami"


@dataclass(frozen=True, slots=True)
class NodeShape:
    """What each node has; amounts as Kubernetes writes them."""

    cpu: str = "64"
    memory: str = "512Gi"
    pods: int = 110
    cards: CardShape = CardShape()
    zones: int = 1
    prefix: str = "node"


def make_nodes(count: int, shape: NodeShape) -> list[Document]:
    """*count* Node objects ``PREFIX-0`` to ``PREFIX-N``, dealt out over ``zone-a``, ``zone-b`` and so on."""
    return [_node(number, shape) for number in range(count)]


async def register_nodes(
    api: Api, nodes: Iterable[Document], *, kubelet_port: int = 0, in_flight: int = 16
) -> None:
    """Bring *nodes* onto the server, ready and untainted; those that are there get amounts and cards anew.

    Args:
        api: the server.
        nodes: from ``make_nodes``.
        kubelet_port: where logs are served (``logs.py``); 0: nowhere.
        in_flight: requests at once.

    Raises:
        ApiError: the server refused one.
        Unreachable: it did not answer.
    """
    gate = asyncio.Semaphore(in_flight)

    async def one(node: Document) -> None:
        async with gate:
            await _register(api, node, kubelet_port)

    try:
        async with asyncio.TaskGroup() as group:
            for node in nodes:
                group.create_task(one(node))
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def _register(api: Api, node: Document, kubelet_port: int) -> None:
    name = node["metadata"]["name"]
    path = _NODES.path(name=name)
    try:
        made = await api.post(_NODES.path(), node)
    except ApiError as error:
        if not error.is_exists:
            raise
        made = await api.patch(
            path, {"metadata": {key: node["metadata"][key] for key in ("labels", "annotations")}}
        )
    taints = made.get("spec", {}).get("taints", [])
    if any(taint["key"] == _NOT_READY for taint in taints):
        # A real server taints every new node until its node controller sees it ready; here nobody else would.
        kept = [taint for taint in taints if taint["key"] != _NOT_READY]
        await api.patch(path, {"spec": {"taints": kept or None}})
    status = {**node["status"], **_endpoint(kubelet_port), "conditions": _conditions()}
    await api.patch(f"{path}/status", {"status": status})


def _node(number: int, shape: NodeShape) -> Document:
    name = f"{shape.prefix}-{number}"
    notes, card_amounts = _cards(name, shape.cards)
    amounts = {"cpu": shape.cpu, "memory": shape.memory, "pods": str(shape.pods), **card_amounts}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": _labels(name, number, shape), "annotations": notes},
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            # No host name: a server would look it up before it asked for logs.
            "addresses": [{"type": "InternalIP", "address": HOST_IP}],
            "nodeInfo": _machine(name),
        },
    }


def _cards(node: str, cards: CardShape) -> tuple[Document, Document]:
    if cards.count == 0:
        return {}, {}
    words = {"count": cards.count, "memory": cards.memory_mib, "slots": cards.slots, "type": cards.model}
    return node_cards(node, {**words, "family": cards.family})


def _labels(name: str, number: int, shape: NodeShape) -> dict[str, str]:
    zone = chr(ord("a") + number % max(1, min(shape.zones, 26)))
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": f"zone-{zone}",
        PRETEND_LABEL: "true",
    }
    return {**labels, "gpu": "on"} if shape.cards.count else labels


def _machine(name: str) -> Document:
    same = {"machineID": name, "systemUUID": name, "bootID": name}
    return {
        **same,
        "architecture": "amd64",
        "operatingSystem": "linux",
        "osImage": "none (a pretend node)",
        "kernelVersion": "none",
        "containerRuntimeVersion": "pretend://1",
        "kubeletVersion": VERSION,
        "kubeProxyVersion": VERSION,
    }


def _endpoint(kubelet_port: int) -> Document:
    return {"daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}}} if kubelet_port else {}


def _conditions() -> Sequence[Document]:
    now = format_time(time.time())
    held = (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    )
    return [
        {"type": kind, "status": status, "reason": reason, "message": "a pretend node",
         "lastHeartbeatTime": now, "lastTransitionTime": now}
        for kind, status, reason in held
    ]  # fmt: skip
