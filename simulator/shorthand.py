"""Short forms for scenarios: ``nodes``, ``queues``, ``jobs``, ``priorities`` and ``plugins``.

They stand beside ``objects`` (``actions`` and ``plugins`` in place of ``config``) in a scenario or a step
and are turned into plain Kubernetes objects and a plain configuration, so nothing behind them knows of
them. A key that isn't known is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

from volcano_py.crds.annotations import GROUP, PREEMPTABLE, ROLE
from volcano_py.crds.schedulerconfig import SCENARIO_CONFIG
from volcano_py.simulator.card_shorthand import ShorthandError, asked, node_cards, record

Object = dict[str, Any]

NODE_KEYS: Final = {
    "name", "cpu", "memory", "pods", "amounts", "labels", "annotations", "taints", "unschedulable", "cards",
    "copies", "firstCopy",
}  # fmt: skip
JOB_KEYS: Final = {
    "name", "namespace", "queue", "min", "pods", "first", "cpu", "memory", "requests", "at", "phase",
    "priority", "created", "started", "annotations", "labels", "spec", "group", "role", "minResources",
    "leaving", "succeeded", "preemptable", "cards", "holds",
}  # fmt: skip
CREATED: Final = "2025-12-31T12:00:00Z"
STARTED: Final = "2025-12-31T00:00:00Z"
LEAVING: Final = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
PRIORITY_API: Final = "scheduling.k8s.io/v1"
GROUP_API: Final = "scheduling.volcano.sh/v1beta1"


def nodes(entries: Iterable[Object]) -> list[Object]:
    """Node objects; 4 CPU, 64Gi and 110 pods where nothing is said. ``cards``: see ``node_cards``."""
    return [_node(_checked("nodes", entry, NODE_KEYS)) for entry in entries]


def queues(entries: Iterable[Object]) -> list[Object]:
    """Queue objects: ``name`` and ``state`` apart, everything else is the spec."""
    return [_queue(dict(entry)) for entry in entries]


def jobs(entries: Iterable[Object]) -> list[Object]:
    """A PodGroup and its pods for every entry; several entries of one name add pods to one group.

    ``at`` (a node, or one a pod) makes pods that run; ``leaving: true`` ones that are on their way
    out, ``succeeded: true`` finished ones. ``annotations`` go onto group and pods, ``labels`` onto
    pods, ``spec`` into the pod's spec, ``group`` into the PodGroup's (null: pods alone). Pods are numbered
    from ``first`` on (0, or where an earlier entry ended). ``preemptable`` says whether the
    job may be interrupted, ``cards`` what each pod asks of cards (``asked``), ``holds`` the slices that
    each pod sits on (``record``).
    """
    made: list[Object] = []
    counts: dict[tuple[str, str], int] = {}
    for entry in entries:
        job = _checked("jobs", entry, JOB_KEYS)
        key = (job.get("namespace", "ml"), job["name"])
        if key not in counts and job.get("group", {}) is not None:
            made.append(_group(job))
        first = int(job.get("first", counts.get(key, 0)))
        pods = _pods(job, first)
        counts[key] = first + len(pods)
        made += pods
    return made


def priorities(values: Mapping[str, int]) -> list[Object]:
    """PriorityClass objects from name and value."""
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        for name, value in dict(values).items()
    ]


def config(actions: str | None, plugins: Mapping[str, Any]) -> Object:
    """The scenario configuration with other *actions*, and *plugins* changed by name.

    A plugin's value is its arguments and ``enable...`` flags, or null to leave it out. One that the
    scenario configuration lacks joins the last tier.
    """
    made: Object = yaml.safe_load(SCENARIO_CONFIG)
    if actions is not None:
        made["actions"] = actions
    wanted = dict(plugins)
    for tier in made["tiers"]:
        said = [(plugin["name"], wanted.pop(plugin["name"], {})) for plugin in tier["plugins"]]
        tier["plugins"] = [_plugin(name, words) for name, words in said if words is not None]
    missing = sorted(name for name, words in wanted.items() if words is None)
    if missing:
        raise ShorthandError(f"plugins: {missing[0]!r} can't be left out, it isn't in the configuration")
    made["tiers"][-1]["plugins"] += [_plugin(name, words) for name, words in wanted.items()]
    return made


def _plugin(name: str, words: Object) -> Object:
    flags = {key: value for key, value in words.items() if key.startswith("enable")}
    arguments = {key: value for key, value in words.items() if key not in flags}
    return {"name": name, **flags, **({"arguments": arguments} if arguments else {})}


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
    notes, cards = node_cards(name, entry["cards"]) if "cards" in entry else ({}, {})
    amounts = {**cards, **amounts}
    meta: Object = {
        "name": name,
        "labels": {"kubernetes.io/hostname": name, **entry.get("labels", {})},
        "annotations": {**notes, **entry.get("annotations", {})},
    }
    spec = {key: entry[key] for key in ("taints", "unschedulable") if key in entry}
    copies: Object = {key: entry[key] for key in ("copies", "firstCopy") if key in entry}
    status = {"allocatable": amounts}
    return {**copies, "apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}


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
        "status": {"phase": job.get("phase", "Running" if "at" in job else "Inqueue")},
    }


def _meta(job: Object, name: str) -> Object:
    said = {PREEMPTABLE: str(job["preemptable"]).lower()} if "preemptable" in job else {}
    return {
        "name": name,
        "namespace": job.get("namespace", "ml"),
        "creationTimestamp": job.get("created", CREATED),
        "annotations": {**said, **job.get("annotations", {})},
    }


def _pods(job: Object, first: int) -> list[Object]:
    at = job.get("at")
    places: list[str] | None = at if isinstance(at, list) else None
    count = len(places) if places is not None else job["pods"] if "pods" in job else job.get("min", 1)
    return [_pod(job, first + i, places[i] if places is not None else at) for i in range(count)]


def _pod(job: Object, number: int, node: str | None) -> Object:
    amounts = {key: str(job[key]) for key in ("cpu", "memory") if job.get(key) is not None}
    if "cpu" not in job:
        amounts["cpu"] = "1"
    amounts |= {key: str(value) for key, value in job.get("requests", {}).items()}
    if "cards" in job:
        amounts |= asked(job["cards"])
    meta = _meta(job, f"{job['name']}-{number}")
    meta["labels"] = dict(job.get("labels", {}))
    meta["annotations"][GROUP] = job["name"]
    if "role" in job:
        meta["annotations"][ROLE] = job["role"]
    if "holds" in job:
        family = job.get("cards", {}).get("family", "hami")
        meta["annotations"] |= record(str(node), job["holds"], family)
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
