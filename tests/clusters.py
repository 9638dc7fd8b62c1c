"""Small clusters for tests, in few words."""

from __future__ import annotations

from typing import Any

from volcano_py.crds.schedulerconfig import load_scheduler_config
from volcano_py.scheduler.engine import Engine

Document = dict[str, Any]

ALLOCATE_ONLY = "actions: allocate, backfill\ntiers: []\n"


def node(name: str, cpu: str = "4", memory: str = "16Gi", **more: Any) -> Document:
    """A node; *more* goes into ``status.allocatable`` (underscores in names become slashes: no)."""
    amounts = {"cpu": cpu, "memory": memory, "pods": "110", **more.pop("amounts", {})}
    spec = {key: more[key] for key in ("taints", "unschedulable") if key in more}
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **more.get("labels", {})}}
    if "annotations" in more:
        meta["annotations"] = more["annotations"]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta,
        "spec": spec,
        "status": {"allocatable": amounts},
    }


def group(
    name: str, minimum: int = 1, queue: str = "default", phase: str = "Inqueue", **more: Any
) -> Document:
    """A PodGroup of namespace ``ml``; *more* goes into its spec."""
    meta = {"name": name, "namespace": "ml", "annotations": more.pop("annotations", {})}
    meta["creationTimestamp"] = more.pop("created", "2025-12-31T12:00:00Z")
    spec = {"minMember": minimum, "queue": queue, **more}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": meta,
        "spec": spec,
        "status": {"phase": phase},
    }


def pod(name: str, of: str, cpu: str | None = "1", *, on: str = "", **more: Any) -> Document:
    """A pod of namespace ``ml`` and PodGroup *of*; *on*: it runs there. *more* goes into its spec."""
    requests = {**({"cpu": cpu} if cpu else {}), **more.pop("requests", {})}
    annotations = {"scheduling.k8s.io/group-name": of, **more.pop("annotations", {})}
    meta = {"name": name, "namespace": "ml", "annotations": annotations, "labels": more.pop("labels", {})}
    meta["creationTimestamp"] = more.pop("created", "2025-12-31T12:00:00Z")
    status = {"phase": "Running", "startTime": "2025-12-31T12:00:00Z"} if on else {"phase": "Pending"}
    status |= more.pop("status", {})
    meta |= more.pop("metadata", {})
    spec = {
        "schedulerName": "volcano-py",
        "containers": [{"name": "main", "image": "busybox", "resources": {"requests": requests}}],
        **({"nodeName": on} if on else {}),
        **more,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def queue(name: str, weight: int = 1, **spec: Any) -> Document:
    """A queue; *spec* goes into its spec."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": weight, **spec},
        "status": {"state": "Open"},
    }


def engine(*documents: Document, config: str = ALLOCATE_ONLY) -> Engine:
    """An engine that knows *documents*; all of them must be sound."""
    made = Engine(load_scheduler_config(config))
    for document in documents:
        problems = made.apply(document)
        assert not problems, problems
    return made
