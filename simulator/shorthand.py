"""Short forms for scenarios: ``nodes``, ``queues`` and ``jobs`` instead of whole objects.

They stand beside ``objects`` in a scenario or a step and are turned into plain Kubernetes objects, so
nothing behind them knows of them. A key that isn't known is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

Object = dict[str, Any]

NODE_KEYS: Final = {
    "name", "cpu", "memory", "pods", "amounts", "labels", "annotations", "taints", "unschedulable", "copies",
    "firstCopy",
}  # fmt: skip
JOB_KEYS: Final = {
    "name", "namespace", "queue", "min", "pods", "cpu", "memory", "requests", "on", "phase", "priority", "created",
    "started", "annotations", "labels", "spec", "group", "role", "minResources", "leaving", "succeeded",
}  # fmt: skip
CREATED: Final = "2025-12-31T12:00:00Z"
STARTED: Final = "2025-12-31T00:00:00Z"
LEAVING: Final = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
GROUP_API: Final = "scheduling.volcano.sh/v1beta1"


class ShorthandError(ValueError):
    """A short form with a key or value that means nothing."""


def nodes(entries: Iterable[Object]) -> list[Object]:
    """Node objects; 4 CPU, 64Gi and 110 pods where nothing is said."""
    return [_node(_checked("nodes", entry, NODE_KEYS)) for entry in entries]


def queues(entries: Iterable[Object]) -> list[Object]:
    """Queue objects: ``name`` and ``state`` apart, everything else is the spec."""
    return [_queue(dict(entry)) for entry in entries]


def jobs(entries: Iterable[Object]) -> list[Object]:
    """A PodGroup and its pods for every entry; several entries of one name add pods to one group.

    ``on`` (a node, or one a pod) makes pods that run; ``leaving: true`` ones that are on their way
    out, ``succeeded: true`` finished ones. ``annotations`` go onto group and pods, ``labels`` onto
    pods, ``spec`` into the pod's spec, ``group`` into the PodGroup's.
    """
    made: list[Object] = []
    counts: dict[tuple[str, str], int] = {}
    for entry in entries:
        job = _checked("jobs", entry, JOB_KEYS)
        key = (job.get("namespace", "ml"), job["name"])
        if key not in counts:
            made.append(_group(job))
        first = counts.get(key, 0)
        pods = _pods(job, first)
        counts[key] = first + len(pods)
        made += pods
    return made


def _checked(where: str, entry: Object, known: set[str]) -> Object:
    unknown = sorted(set(entry) - known)
    if unknown or "name" not in entry:
        what = f"unknown key {unknown[0]!r}" if unknown else "no name"
        raise ShorthandError(f"{where}: {what} in {entry}; known keys: {', '.join(sorted(known))}")
    return entry


def _node(entry: Object) -> Object:
    name = entry["name"]
    amounts = {
        "cpu": str(entry.get("cpu", 4)),
        "memory": str(entry.get("memory", "64Gi")),
        "pods": str(entry.get("pods", 110)),
        **{key: str(value) for key, value in entry.get("amounts", {}).items()},
    }
    meta: Object = {"name": name, "labels": {"kubernetes.io/hostname": name, **entry.get("labels", {})}}
    if "annotations" in entry:
        meta["annotations"] = entry["annotations"]
    spec = {key: entry[key] for key in ("taints", "unschedulable") if key in entry}
    copies = {key: entry[key] for key in ("copies", "firstCopy") if key in entry}
    return {**copies, "apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": {"allocatable": amounts}}


def _queue(entry: Object) -> Object:
    if "name" not in entry:
        raise ShorthandError(f"queues: no name in {entry}")
    meta = {"name": entry.pop("name")}
    state = entry.pop("state", "Open")
    return {
        "apiVersion": GROUP_API,
        "kind": "Queue",
        "metadata": meta,
        "spec": {"weight": 1, **entry},
        "status": {"state": state},
    }


def _group(job: Object) -> Object:
    spec = {"minMember": job.get("min", 1), "queue": job.get("queue", "default"), **job.get("group", {})}
    if "priority" in job:
        spec["priorityClassName"] = job["priority"]
    if "minResources" in job:
        spec["minResources"] = {key: str(value) for key, value in job["minResources"].items()}
    return {
        "apiVersion": GROUP_API,
        "kind": "PodGroup",
        "metadata": _meta(job, job["name"]),
        "spec": spec,
        "status": {"phase": job.get("phase", "Running" if "on" in job else "Inqueue")},
    }


def _meta(job: Object, name: str) -> Object:
    return {
        "name": name,
        "namespace": job.get("namespace", "ml"),
        "creationTimestamp": job.get("created", CREATED),
        "annotations": dict(job.get("annotations", {})),
    }


def _pods(job: Object, first: int) -> list[Object]:
    on = job.get("on")
    places = on if isinstance(on, list) else None
    count = len(places) if places is not None else job.get("pods", job.get("min", 1))
    return [_pod(job, first + i, places[i] if places is not None else on) for i in range(count)]


def _pod(job: Object, number: int, node: str | None) -> Object:
    amounts = {key: str(job[key]) for key in ("cpu", "memory") if job.get(key) is not None}
    if "cpu" not in job:
        amounts["cpu"] = "1"
    amounts |= {key: str(value) for key, value in job.get("requests", {}).items()}
    meta = _meta(job, f"{job['name']}-{number}")
    meta["labels"] = dict(job.get("labels", {}))
    meta["annotations"]["scheduling.k8s.io/group-name"] = job["name"]
    if "role" in job:
        meta["annotations"]["volcano.sh/task-spec"] = job["role"]
    if job.get("leaving"):
        meta |= LEAVING
    extended = {key: value for key, value in amounts.items() if "/" in key}
    resources = {"requests": amounts, **({"limits": extended} if extended else {})}
    spec = {
        "schedulerName": "volcano-py",
        "containers": [{"name": "main", "image": "busybox", "resources": resources}],
        **({"nodeName": node} if node else {}),
        **job.get("spec", {}),
    }
    status: Object = {"phase": "Pending"}
    if node:
        phase = "Succeeded" if job.get("succeeded") else "Running"
        status = {"phase": phase, "startTime": job.get("started", STARTED)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}
