"""What an owner of pods needs next: a function of the owner and its children, as documents.

Jobs, ReplicaSets and Deployments, as far as trying needs them: parallelism and completions, backoff limit,
suspension, scale, a new template. Neighbour: ``owners`` carries plans out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

Document = dict[str, Any]
HASH: Final = "pod-template-hash"
_DEFAULT_BACKOFF: Final = 6


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do: children to make, children to delete, children to scale, and the owner's status."""

    status: Document
    make: list[Document] = field(default_factory=list)
    delete: list[Document] = field(default_factory=list)
    scale: list[tuple[Document, int]] = field(default_factory=list)


def plan_job(job: Document, pods: Sequence[Document], now: str) -> Plan:
    """A batch/v1 Job: pods until enough succeeded, or too many failed. Deleted pods are forgotten."""
    spec, status = job["spec"], dict(job.get("status", {}))
    succeeded, failed = _count(pods, "Succeeded"), _count(pods, "Failed")
    active = [pod for pod in pods if _is_active(pod)]
    status |= {
        "active": len(active),
        "ready": sum(map(_is_ready, active)),
        "succeeded": succeeded,
        "failed": failed,
    }
    if any(
        one["type"] in ("Complete", "Failed") and one["status"] == "True"
        for one in status.get("conditions", [])
    ):
        return Plan(status, delete=active)
    if spec.get("suspend"):
        return Plan(status, delete=active)
    status.setdefault("startTime", now)
    completions = spec.get("completions")
    is_done = not active and succeeded >= (completions or 1)
    if failed > spec.get("backoffLimit", _DEFAULT_BACKOFF):
        why = {"reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}
        return Plan({**status, "conditions": [_condition("Failed", now, **why)]}, delete=active)
    if is_done:
        over = {"completionTime": now, "conditions": [_condition("Complete", now)]}
        return Plan({**status, **over})
    room = _job_wants(spec.get("parallelism", 1), completions, succeeded, len(active)) - len(active)
    labels = {"batch.kubernetes.io/job-name": job["metadata"]["name"], "job-name": job["metadata"]["name"],
              "batch.kubernetes.io/controller-uid": job["metadata"]["uid"]}  # fmt: skip
    return Plan(status, make=_pods(job, room, labels), delete=active[len(active) + min(room, 0) :])


def _job_wants(parallelism: int, completions: int | None, succeeded: int, active: int) -> int:
    """Pods that should run; without completions the first success ends the making of more."""
    if completions is not None:
        return int(min(parallelism, completions - succeeded))
    return active if succeeded else parallelism


def plan_replicas(replicas: Document, pods: Sequence[Document], now: str) -> Plan:
    """A ReplicaSet: as many pods that have not ended as it says."""
    wanted = replicas["spec"].get("replicas", 1)
    active = sorted((pod for pod in pods if _is_active(pod)), key=_is_ready, reverse=True)
    ready = sum(map(_is_ready, active))
    status = {
        "replicas": len(active), "fullyLabeledReplicas": len(active), "readyReplicas": ready,
        "availableReplicas": ready, "observedGeneration": replicas["metadata"].get("generation", 1),
    }  # fmt: skip
    return Plan(status, make=_pods(replicas, wanted - len(active), {}), delete=active[wanted:])


def plan_deployment(deployment: Document, sets: Sequence[Document], now: str) -> Plan:
    """A Deployment: a ReplicaSet for its template; older ones go when the new one is ready."""
    wanted = deployment["spec"].get("replicas", 1)
    mark = _mark(deployment["spec"]["template"])
    current = next((one for one in sets if one["metadata"].get("labels", {}).get(HASH) == mark), None)
    others = [one for one in sets if one is not current and one["spec"].get("replicas", 1) > 0]
    ready = 0 if current is None else current.get("status", {}).get("readyReplicas", 0)
    status = _deployment_status(deployment, sets, current, now)
    if current is None:
        first = (
            wanted if not others or deployment["spec"].get("strategy", {}).get("type") != "Recreate" else 0
        )
        return Plan(status, make=[_replica_set(deployment, mark, first)], scale=[])
    scale = [(current, wanted)] if current["spec"].get("replicas", 1) != wanted else []
    if ready >= wanted:
        scale += [(one, 0) for one in others]
    return Plan(status, scale=scale)


def _deployment_status(
    deployment: Document, sets: Iterable[Document], current: Document | None, now: str
) -> Document:
    wanted = deployment["spec"].get("replicas", 1)
    counts = {
        key: sum(one.get("status", {}).get(key, 0) for one in sets)
        for key in ("replicas", "readyReplicas", "availableReplicas")
    }
    updated = 0 if current is None else current.get("status", {}).get("replicas", 0)
    enough = counts["availableReplicas"] >= wanted
    known = {one["type"]: one for one in deployment.get("status", {}).get("conditions", [])}
    before = known.get("Available", {})
    after = _condition("Available", now, status="True" if enough else "False")
    return {
        **counts,
        "updatedReplicas": updated,
        "unavailableReplicas": max(0, wanted - counts["availableReplicas"]),
        "observedGeneration": deployment["metadata"].get("generation", 1),
        "conditions": [before if before.get("status") == after["status"] else after],
    }


def _replica_set(deployment: Document, mark: str, replicas: int) -> Document:
    meta, template = deployment["metadata"], deployment["spec"]["template"]
    labels = {**template.get("metadata", {}).get("labels", {}), HASH: mark}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": f"{meta['name']}-{mark}", **_owned(deployment, labels)},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {**template, "metadata": {**template.get("metadata", {}), "labels": labels}},
        },
    }


def _pods(owner: Document, count: int, labels: dict[str, str]) -> list[Document]:
    template = owner["spec"]["template"]
    meta = template.get("metadata", {})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{owner['metadata']['name']}-",
            "annotations": meta.get("annotations", {}),
            **_owned(owner, {**meta.get("labels", {}), **labels}),
        },
        "spec": template["spec"],
    }
    return [pod] * max(0, count)


def _owned(owner: Document, labels: dict[str, str]) -> Document:
    meta = owner["metadata"]
    who = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
    reference = {**who, "controller": True, "blockOwnerDeletion": True}
    return {"namespace": meta["namespace"], "labels": labels, "ownerReferences": [reference]}


def _mark(template: Document) -> str:
    text = msgspec.json.encode(template, order="deterministic")
    return hashlib.blake2b(text, digest_size=5).hexdigest()


def _condition(kind: str, now: str, *, status: str = "True", **why: str) -> Document:
    return {"type": kind, "status": status, "lastProbeTime": now, "lastTransitionTime": now, **why}


def _count(pods: Iterable[Document], phase: str) -> int:
    return sum(pod.get("status", {}).get("phase") == phase for pod in pods)


def _is_active(pod: Document) -> bool:
    ended = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return not ended and "deletionTimestamp" not in pod["metadata"]


def _is_ready(pod: Document) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
