"""The Kubernetes objects of a shape, as documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from volcano_py.crds.annotations import GROUP, ROLE
from volcano_py.simulator.bench.shapes import Shape

Document = dict[str, Any]

NAMESPACE: Final = "bench"
CREATED: Final = "2025-12-31T12:00:00Z"
NOW: Final = 1767225600.0
"""2026-01-01T00:00:00Z: when the cycles of a benchmark happen."""
PODS_PER_NODE: Final = 250
RACK: Final = 25
RACKS_PER_SPINE: Final = 2


def amounts(cpu_milli: int, memory_mib: int, gpus: int, **more: str) -> dict[str, str]:
    """A resource list."""
    cards = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi", **cards, **more}


def node_name(index: int) -> str:
    """Name of the node numbered *index*."""
    return f"node-{index:05}"


def nodes(shape: Shape) -> Iterator[Document]:
    """The nodes, with a rack label each."""
    offer = amounts(shape.node_cpu_milli, shape.node_mem_mib, shape.node_gpus, pods=str(PODS_PER_NODE))
    for index in range(shape.nodes):
        name, rack = node_name(index), index // RACK
        labels = {"kubernetes.io/hostname": name, "rack": f"rack-{rack}"}
        labels["spine"] = f"spine-{rack // RACKS_PER_SPINE}"
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels, "creationTimestamp": CREATED},
            "status": {"allocatable": offer, "capacity": offer},
        }


def queue(name: str, **spec: Any) -> Document:
    """A queue of weight 1; *spec* goes into its spec."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
        "status": {"state": "Open"},
    }


def group(name: str, minimum: int, *, in_queue: str, phase: str = "Pending", **spec: Any) -> Document:
    """A PodGroup; *spec* goes into its spec."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE, "creationTimestamp": CREATED},
        "spec": {"minMember": minimum, "queue": in_queue, **spec},
        "status": {"phase": phase},
    }


def pod(
    of: str, index: int, request: dict[str, str], *, on: str = "", phase: str = "", role: str = "worker"
) -> Document:
    """Pod *index* of PodGroup *of*; with *on* it has that node and runs (or is in *phase*)."""
    status = {"phase": phase or "Running", "startTime": CREATED} if on else {"phase": "Pending"}
    container = {"name": "main", "image": "busybox", "resources": {"requests": request, "limits": request}}
    spec: Document = {"schedulerName": "volcano-py", "containers": [container]}
    if on:
        spec["nodeName"] = on
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{of}-{role}-{index}",
            "namespace": NAMESPACE,
            "creationTimestamp": CREATED,
            "labels": {"app": "bench"},
            "annotations": {GROUP: of, ROLE: role},
        },
        "spec": spec,
        "status": status,
    }


def job(shape: Shape, name: str, in_queue: str, **spec: Any) -> Iterator[Document]:
    """A waiting job of *shape*: its PodGroup, as the job controller writes it, and its pods."""
    request = amounts(shape.pod_cpu_milli, shape.pod_mem_mib, shape.pod_gpus)
    least = shape.min_available
    floor = amounts(shape.pod_cpu_milli * least, shape.pod_mem_mib * least, shape.pod_gpus * least)
    if least:
        spec["minResources"] = floor
    yield group(name, least, in_queue=in_queue, **spec)
    for index in range(shape.pods_per_job):
        yield pod(name, index, request)


def hyper_nodes(shape: Shape) -> Iterator[Document]:
    """Racks (tier 1) and spines (tier 2) of the nodes."""
    racks = -(-shape.nodes // RACK)
    for rack in range(racks):
        members = [node_name(i) for i in range(rack * RACK, min((rack + 1) * RACK, shape.nodes))]
        yield _hyper_node(f"rack-{rack}", 1, "Node", members)
    for spine in range(-(-racks // RACKS_PER_SPINE)):
        first = spine * RACKS_PER_SPINE
        below = [f"rack-{rack}" for rack in range(first, min(first + RACKS_PER_SPINE, racks))]
        yield _hyper_node(f"spine-{spine}", 2, "HyperNode", below)


def _hyper_node(name: str, tier: int, kind: str, members: list[str]) -> Document:
    listed = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": tier, "members": listed},
    }
