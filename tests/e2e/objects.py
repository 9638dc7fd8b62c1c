"""The objects that end-to-end cases are made of."""

from __future__ import annotations

from typing import Any

from volcano_py.simulator.kubelet.nodes import PRETEND_LABEL

Document = dict[str, Any]

GROUP = "scheduling.k8s.io/group-name"


def namespace(name: str) -> Document:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def node(name: str, *, cpu: str = "8", memory: str = "32Gi", pods: str = "110", **more: Any) -> Document:
    """A node; *more* goes into its metadata."""
    amounts = {"cpu": cpu, "memory": memory, "pods": pods}
    labels = {"kubernetes.io/hostname": name, PRETEND_LABEL: "true"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, **more},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def queue(name: str, **spec: Any) -> Document:
    """A queue."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def group(space: str, name: str, least: int, queue: str = "default", **spec: Any) -> Document:
    """A PodGroup of at least *least* members."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": space},
        "spec": {"minMember": least, "queue": queue, **spec},
    }


def pod(
    space: str,
    name: str,
    *,
    group: str = "",
    cpu: str = "1",
    scheduler: str = "volcano-py",
    requests: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Document:
    """A pod of one container; without *group* a plain one."""
    notes = {**({GROUP: group} if group else {}), **(annotations or {})}
    asks = {"cpu": cpu} if requests is None else requests
    container = {"name": "main", "image": "busybox", "resources": {"requests": asks, "limits": asks}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": space, "annotations": notes},
        "spec": {"schedulerName": scheduler, "containers": [container], **spec},
    }


def gang(
    space: str, name: str, members: int, *, queue: str = "default", cpu: str = "1", **pod_fields: Any
) -> list[Document]:
    """A PodGroup and its *members*, all of which must start together."""
    pods = [pod(space, f"{name}-{i}", group=name, cpu=cpu, **pod_fields) for i in range(members)]
    return [group(space, name, members, queue), *pods]


def priority(name: str, value: int) -> Document:
    """A priority class."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }
