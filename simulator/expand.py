"""Manifests as a cluster's controllers would complete them: Jobs into pods, single pods into groups.

A Job of Volcano becomes its PodGroup and pods (``job_objects``), Jobs and Deployments of Kubernetes become
pods (``workload_objects``). A pod of our schedulers that belongs to no group
gets one, shared with the other pods of its controlling owner. What the documents hold already wins, and
what can't be read is passed on as it is, for the engine to say what is wrong with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from volcano_py.crds.annotations import GROUP, GROUP_QUEUE
from volcano_py.crds.job import Job
from volcano_py.crds.objects import parse_object
from volcano_py.scheduler.model.kube.errors import ObjectError
from volcano_py.scheduler.model.kube.objects import Pod, decode
from volcano_py.scheduler.model.kube.request import pod_request
from volcano_py.simulator.group_objects import amounts_text, pod_group
from volcano_py.simulator.job_objects import job_objects
from volcano_py.simulator.present import Document, Present, part
from volcano_py.simulator.workload_objects import workload_pods

JOB_VERSION: Final = "batch.volcano.sh/v1alpha1"
MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"
TOPOLOGY_MODE: Final = "volcano.sh/network-topology-mode"
TOPOLOGY_TIER: Final = "volcano.sh/network-topology-highest-tier"
VOLCANO: Final = "volcano.sh/"


def expand(documents: Iterable[Document], scheduler_names: Collection[str]) -> list[Document]:
    """*documents* with Jobs and their like replaced by their pods, and single pods put into groups.

    Nothing given is changed; documents that need nothing are passed on themselves. Made objects name
    their Job or owner in ``ownerReferences``.

    Args:
        documents: Kubernetes objects, sound or not.
        scheduler_names: ``schedulerName`` values of pods that are ours.
    """
    written = list(documents)
    present = Present(written)
    given: list[Document] = []
    for document in written:
        pods = workload_pods(document, written, present)
        given += [document] if pods is None else pods
    groups = _single_groups(given, scheduler_names, present)
    made: list[Document] = []
    numbers = Counter[str]()
    for position, document in enumerate(given):
        job = _job(document)
        if job is not None:
            made += job_objects(job, present, _job_name(job, numbers))
        elif position in groups:
            group = groups[position]
            if group.first == position:
                made += group.objects(present)
            made.append(_joined(document, group.name))
        else:
            made.append(document)
    return made


# -- jobs ---------------------------------------------------------------------------------------


def _job(document: Document) -> Job | None:
    """The sound Job in *document*, if it is one."""
    if document.get("kind") != "Job" or document.get("apiVersion") != JOB_VERSION:
        return None
    try:
        parsed = parse_object(document)
    except ValidationError:
        return None
    return parsed if isinstance(parsed, Job) else None


def _job_name(job: Job, numbers: Counter[str]) -> str:
    """The job's name; one that only has a prefix gets the next number of that prefix."""
    meta = job.metadata
    if meta.name:
        return meta.name
    numbers[meta.generate_name] += 1
    return f"{meta.generate_name}{numbers[meta.generate_name]}"


# -- single pods --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Group:
    """The group of pods that name none.

    Attributes:
        first: position of the first pod among the documents.
        pod: that pod.
        owner: document of its controlling owner; empty where unknown.
        members: all its pods.
    """

    name: str
    first: int
    pod: Pod
    owner: Document
    members: list[Document] = field(default_factory=list)

    def objects(self, present: Present) -> list[Document]:
        """The PodGroup, unless it is there already."""
        meta = self.pod.metadata
        if present.has("PodGroup", meta.namespace, self.name):
            return []
        minimum = _count(self._said(MIN_MEMBER, "1"))
        pods = minimum if isinstance(minimum, int) else 0
        asked = {resource: amount * pods for resource, amount in pod_request(self.pod).items() if pods}
        document = self.members[0]
        spec = {
            "minMember": minimum,
            "minResources": amounts_text(asked),
            "queue": self._said(GROUP_QUEUE, ""),
            "priorityClassName": self.pod.spec.priority_class_name,
            "networkTopology": self._topology(),
        }
        header = {
            "name": self.name,
            "namespace": meta.namespace,
            "annotations": self._annotations(),
            "ownerReferences": part(document, "metadata").get("ownerReferences") or [_owner(self.pod)],
            "creationTimestamp": part(document, "metadata").get("creationTimestamp"),
        }
        return [pod_group(header, spec, self.members, present)]

    def _said(self, key: str, otherwise: str) -> Any:
        """Annotation *key* of the pod, else of its owner."""
        owner = part(self.owner, "metadata", "annotations")
        return self.pod.metadata.annotations.get(key, owner.get(key, otherwise))

    def _annotations(self) -> dict[str, Any]:
        """What owner and pod say about scheduling; the pod has the last word."""
        both = {**part(self.owner, "metadata", "annotations"), **self.pod.metadata.annotations}
        return {key: value for key, value in both.items() if key.startswith(VOLCANO)}

    def _topology(self) -> Document:
        mode, tier = self._said(TOPOLOGY_MODE, ""), self._said(TOPOLOGY_TIER, "")
        topology: Document = {"mode": mode} if mode else {}
        return {**topology, "highestTierAllowed": _count(tier)} if tier else topology


def _single_groups(
    documents: list[Document], scheduler_names: Collection[str], present: Present
) -> dict[int, _Group]:
    """Position of every pod of ours that names no group -> the group it gets."""
    groups: dict[tuple[str, str], _Group] = {}
    found = {}
    for position, document in enumerate(documents):
        pod = _single_pod(document, scheduler_names)
        if pod is None:
            continue
        name, owner = _group_name(document, pod, present)
        key = (pod.metadata.namespace, name)
        group = groups.setdefault(key, _Group(name, position, pod, owner))
        group.members.append(document)
        found[position] = group
    return found


def _single_pod(document: Document, scheduler_names: Collection[str]) -> Pod | None:
    """The pod in *document* if it is ours, sound, and names no group."""
    scheduler = part(document, "spec").get("schedulerName")
    if document.get("kind") != "Pod" or not isinstance(scheduler, str) or scheduler not in scheduler_names:
        return None
    if part(document, "metadata", "annotations").get(GROUP):
        return None
    try:
        pod = decode(document)
        if not isinstance(pod, Pod):
            return None
        pod_request(pod)
    except ObjectError:
        return None
    return pod


def _group_name(document: Document, pod: Pod, present: Present) -> tuple[str, Document]:
    """Name of the group of *pod*, after its controlling owner where it has one; and that owner."""
    for owner in pod.metadata.owner_references:
        if owner.controller:
            known = present.get(owner.kind, pod.metadata.namespace, owner.name)
            return f"podgroup-{owner.uid or owner.name}", known
    return f"podgroup-{part(document, 'metadata').get('uid') or pod.name}", {}


def _owner(pod: Pod) -> Document:
    """*pod* as the owner of its group."""
    return {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}


def _joined(document: Document, group: str) -> Document:
    """*document*, a pod, as a member of *group*."""
    meta = part(document, "metadata")
    annotations: Mapping[str, Any] = {**part(meta, "annotations"), GROUP: group}
    return {**document, "metadata": {**meta, "annotations": annotations}}


def _count(text: Any) -> Any:
    """A whole number as one; anything else as it was written, for the PodGroup's model to refuse."""
    written = str(text)
    return int(written) if written.isascii() and written.isdigit() else text
