"""Pods of Kubernetes' own workloads, as their controllers would make them: Jobs, Deployments and their like.

What a workload has already is counted: a manifest may raise the replicas of what runs. One that has a status
is at work, and its pods, where they matter, are given beside it. Neighbour: ``expand``, which puts the pods
into groups; ``job_objects`` has the Jobs of Volcano.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count, islice
from typing import Any, Final

from volcano_py.simulator.job_objects import MOST_PODS
from volcano_py.simulator.present import Document, Present, part

_APPS: Final = "apps/v1"
WORKLOADS: Final = {
    "Job": ("batch/v1", "parallelism"),
    "Deployment": (_APPS, "replicas"),
    "ReplicaSet": (_APPS, "replicas"),
    "StatefulSet": (_APPS, "replicas"),
}
"""Kind -> its version, and the field that says how many pods it wants at once."""


def is_workload(document: Document) -> bool:
    """Whether *document* is one whose pods are made here."""
    version, _ = WORKLOADS.get(str(document.get("kind")), ("", ""))
    return document.get("apiVersion") == version


def workload_pods(
    document: Document, documents: Iterable[Document], present: Present
) -> list[Document] | None:
    """Pods that *document* wants and *documents* lack; None where none are made of it."""
    if not is_workload(document) or why_left_out(document):
        return None
    wanted = _wanted(document) or 0
    there = pods_there(document, documents)
    return [_pod(document, name) for name in islice(_free_names(document, present), max(wanted - there, 0))]


def pods_there(owner: Document, documents: Iterable[Document]) -> int:
    """How many of *documents* are pods of *owner* that have not ended."""
    return sum(1 for pod in documents if _is_of(pod, owner))


def why_left_out(document: Document) -> str:
    """Why no pods are made of *document*, a workload; "" where they are."""
    if document.get("status"):
        return "it is at work already, and its pods count where they are given"
    if part(document, "metadata").get("ownerReferences"):
        return "its owner is what counts"
    if not part(document, "spec", "template", "spec"):
        return "it has no template for pods"
    if not part(document, "metadata").get("name"):
        return "it has no name"
    return "" if _wanted(document) is not None else "how many it wants is no whole number"


def _wanted(document: Document) -> int | None:
    """How many pods it wants at once; None where that makes no sense."""
    spec: Any = part(document, "spec")
    if spec.get("suspend") is True:
        return 0
    wanted: Any = spec.get(WORKLOADS[document["kind"]][1], 1)
    completions: Any = spec.get("completions", wanted) if document["kind"] == "Job" else wanted
    if not isinstance(wanted, int) or not isinstance(completions, int):
        return None
    return min(wanted, completions, MOST_PODS)


def _is_of(pod: Document, owner: Document) -> bool:
    """Whether *pod* is one of *owner*'s that has not ended; a Deployment's belong to its ReplicaSets."""
    if pod.get("kind") != "Pod" or part(pod, "status").get("phase") in ("Succeeded", "Failed"):
        return False
    if _space(pod) != _space(owner):
        return False
    references: Any = part(pod, "metadata").get("ownerReferences")
    name = str(part(owner, "metadata").get("name"))
    return any(
        isinstance(one, dict) and one.get("controller") and _names(one, owner["kind"], name)
        for one in (references if isinstance(references, list) else ())
    )


def _names(reference: Document, kind: str, name: str) -> bool:
    if kind == "Deployment":
        made, _, mark = str(reference.get("name")).rpartition("-")
        return reference.get("kind") == "ReplicaSet" and made == name and bool(mark)
    return (reference.get("kind"), reference.get("name")) == (kind, name)


def _free_names(document: Document, present: Present) -> Iterator[str]:
    name, space = part(document, "metadata")["name"], _space(document)
    return (f"{name}-{at}" for at in count() if not present.has("Pod", space, f"{name}-{at}"))


def _pod(document: Document, name: str) -> Document:
    meta, template = part(document, "metadata"), part(document, "spec", "template")
    owner = {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "name": meta["name"],
        "uid": meta.get("uid", ""),
        "controller": True,
    }
    written = {key: value for key, value in part(template, "metadata").items() if value}
    made = {**written, "name": name, "namespace": _space(document), "ownerReferences": [owner]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": made,
        "spec": template["spec"],
        "status": {"phase": "Pending"},
    }


def _space(document: Document) -> str:
    return str(part(document, "metadata").get("namespace") or "default")
