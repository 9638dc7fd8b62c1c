"""What the job controller makes of a Job: claims, a PodGroup, and pods.

In a cluster pods are made only once the PodGroup is admitted. Here they are made at once and the group
starts Pending, so that the gate decides before anybody is placed. A task that depends on others gets no
pods before enough of theirs run; until then the gang is that of the tasks that may start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from volcano_py.crds.annotations import GROUP, JOB_QUEUE, JOB_VERSION, ROLE
from volcano_py.crds.job import Job, TaskSpec, task_name
from volcano_py.scheduler.model.kube.errors import ObjectError
from volcano_py.scheduler.model.kube.objects import KubeObject, Pod, decode
from volcano_py.scheduler.model.kube.podspec import pod_constraints
from volcano_py.scheduler.model.kube.request import pod_request
from volcano_py.simulator.group_objects import amounts_text, inherited, pod_group
from volcano_py.simulator.present import Document, Present, part

SCHEDULER: Final = "volcano"
JOB_NAME: Final = "volcano.sh/job-name"
JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
TASK_INDEX: Final = "volcano.sh/task-index"
PARTITION: Final = "volcano.sh/partition-id"
NUMA_POLICY: Final = "volcano.sh/numa-topology-policy"
MOST_PODS: Final = 150_000
"""Pods made for one task at most: what Kubernetes supports in a whole cluster."""
_MAKES_PODS: Final = frozenset({"", "Pending", "Running", "Restarting"})


@dataclass(frozen=True, slots=True)
class Role:
    """A task of a Job.

    Attributes:
        request: what one pod asks, base units; None: the template can't be read.
        priority: of its pods.
    """

    name: str
    task: TaskSpec
    request: Mapping[str, int] | None
    priority: int


def job_objects(job: Job, present: Present, name: str) -> list[Document]:
    """The objects of *job*, which is called *name*, that *present* does not hold yet.

    A job that has ended or is on its way out gets nothing more. A template that can't be read is made
    into one pod, as it is, for the engine to complain of once.
    """
    state = job.status.state if job.status else None
    if job.metadata.deletion_timestamp or (state is not None and state.phase not in _MAKES_PODS):
        return []
    return _Maker(job, present, name).objects()


class _Maker:
    """One Job's objects."""

    def __init__(self, job: Job, present: Present, name: str) -> None:
        self.job, self.spec, self.present, self.name = job, job.spec, present, name
        self.namespace = job.metadata.namespace or "default"
        self.group = f"{name}-{job.metadata.uid}" if job.metadata.uid else name
        self.roles = [self._role(task_name(task, at), task) for at, task in enumerate(self.spec.tasks)]
        self.started = [role for role in self.roles if self._may_start(role)]

    def objects(self) -> list[Document]:
        """Claims, the group, pods."""
        pods = [pod for role in self.started for pod in self._pods(role)]
        made = [*self._claims(), self._group(pods), *pods]
        return [item for item in made if not self._is_present(item)]

    def _is_present(self, item: Document) -> bool:
        return self.present.has(item["kind"], self.namespace, item["metadata"]["name"])

    # -- roles ----------------------------------------------------------------------------------

    def _role(self, name: str, task: TaskSpec) -> Role:
        spec = part(task.template, "spec")
        document = {**task.template, "apiVersion": "v1", "kind": "Pod"}
        document["metadata"] = {**part(task.template, "metadata"), "name": name}
        try:
            request = _request(decode(document))
        except ObjectError:
            request = None
        named = spec.get("priorityClassName") or self.spec.priority_class_name
        return Role(name, task, request, self.present.priority(str(named)))

    def _may_start(self, role: Role) -> bool:
        """Whether the tasks that *role* waits for (all, or any of them) have their minimum running."""
        waits = role.task.depends_on
        if waits is None or not waits.name:
            return True
        met = [self._runs(other) for other in self.roles if other.name in waits.name]
        return any(met) if waits.iteration == "any" else all(met)

    def _runs(self, role: Role) -> bool:
        running = sum(_is_ready(self._known_pod(role, index)) for index in _indices(role))
        return running >= role.task.pods_needed

    def _known_pod(self, role: Role, index: int) -> Document:
        return self.present.get("Pod", self.namespace, self._pod_name(role, index))

    def _pod_name(self, role: Role, index: int) -> str:
        return f"{self.name}-{role.name}-{index}"

    # -- the group ------------------------------------------------------------------------------

    def _group(self, pods: list[Document]) -> Document:
        meta, minimum = self.job.metadata, self._minimum()
        members = [self.present.get("Pod", self.namespace, pod["metadata"]["name"]) for pod in pods]
        topology = self.spec.network_topology
        return pod_group(
            {
                **self._meta(self.group),
                "labels": dict(meta.labels),
                "annotations": inherited(meta.annotations),
            },
            {
                "minMember": minimum,
                "minTaskMember": {role.name: role.task.pods_needed for role in self.started},
                "minResources": self._min_resources(minimum),
                "queue": self.spec.queue,
                "priorityClassName": self.spec.priority_class_name,
                "networkTopology": topology.to_manifest() if topology else None,
                "subGroupPolicy": [policy for role in self.started if (policy := _sub_group(role))],
            },
            members,
            self.present,
        )

    def _minimum(self) -> int:
        """The gang's size without the members that may not start yet."""
        absent = sum(role.task.pods_needed for role in self.roles if role not in self.started)
        made = sum(role.task.replicas for role in self.started)
        least = min(1, self.spec.gang_size)
        return min(max(self.spec.gang_size - absent, least), made)

    def _min_resources(self, minimum: int) -> dict[str, str]:
        """What the first *minimum* pods ask, roles of high priority first.

        Where it covers the minimum of all roles these are counted first, then the rest in the same order.
        """
        roles = sorted(self.started, key=lambda role: -role.priority)
        needed = {role.name: role.task.pods_needed for role in roles}
        counts = Counter[str]()
        if minimum >= sum(needed.values()):
            counts.update(needed)
        for role in roles:
            counts[role.name] += min(role.task.replicas - counts[role.name], minimum - counts.total())
        total = Counter[str]()
        for role in roles:
            for resource, amount in (role.request or {}).items():
                total[resource] += amount * counts[role.name]
        return amounts_text({resource: amount for resource, amount in total.items() if amount})

    # -- pods and claims ------------------------------------------------------------------------

    def _pods(self, role: Role) -> list[Document]:
        if role.request is None:
            return [self._unreadable(role)]
        spec = self._pod_spec(role)
        return [self._pod(role, index, spec) for index in _indices(role)]

    def _unreadable(self, role: Role) -> Document:
        """The first pod of *role*, faults and all."""
        template = role.task.template
        written = part(template, "metadata")
        notes = written.get("annotations") or {}
        meta = {**written, **self._meta(self._pod_name(role, 0))}
        meta["annotations"] = {**notes, GROUP: self.group} if isinstance(notes, Mapping) else notes
        spec = self._pod_spec(role) if isinstance(template.get("spec", {}), Mapping) else template["spec"]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def _pod(self, role: Role, index: int, spec: Document) -> Document:
        template = part(role.task.template, "metadata")
        shared = {JOB_NAME: self.name, ROLE: role.name, JOB_QUEUE: self.spec.queue}
        version = str(self.job.status.version if self.job.status else 0)
        own = {GROUP: self.group, TASK_INDEX: str(index), JOB_VERSION: version}
        labels = {**part(template, "labels"), **shared, JOB_NAMESPACE: self.namespace}
        if role.task.partition_policy is not None:
            labels[PARTITION] = str(index // role.task.partition_policy.partition_size)
        annotations = {**part(template, "annotations"), **shared, **own}
        if role.task.topology_policy:
            annotations[NUMA_POLICY] = role.task.topology_policy
        meta = {**self._meta(self._pod_name(role, index)), "labels": labels, "annotations": annotations}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": meta,
            "spec": spec,
            "status": {"phase": "Pending"},
        }

    def _pod_spec(self, role: Role) -> Document:
        """The template's spec, with what the job says where it says nothing."""
        spec = dict(part(role.task.template, "spec"))
        spec["schedulerName"] = spec.get("schedulerName") or self.spec.scheduler_name or SCHEDULER
        if self.spec.priority_class_name and not spec.get("priorityClassName"):
            spec["priorityClassName"] = self.spec.priority_class_name
        if self.spec.volumes:  # mounts inside containers place nothing, so they are left out
            mounted = [
                {"name": f"job-volume-{at}", "persistentVolumeClaim": {"claimName": self._claim_name(at)}}
                for at in range(len(self.spec.volumes))
            ]
            spec["volumes"] = [*(spec.get("volumes") or []), *mounted]
        return spec

    def _claims(self) -> list[Document]:
        return [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": self._meta(self._claim_name(at)),
                "spec": volume.volume_claim,
            }
            for at, volume in enumerate(self.spec.volumes)
            if volume.volume_claim is not None
        ]

    def _claim_name(self, at: int) -> str:
        return self.spec.volumes[at].volume_claim_name or f"{self.name}-pvc-{at}"

    def _meta(self, name: str) -> Document:
        """Metadata of an object called *name* that this job owns."""
        meta = self.job.metadata
        owner = {
            "apiVersion": self.job.api_version,
            "kind": self.job.kind,
            "name": self.name,
            "uid": meta.uid,
            "controller": True,
        }
        created = {"creationTimestamp": meta.creation_timestamp} if meta.creation_timestamp else {}
        return {"name": name, "namespace": self.namespace, "ownerReferences": [owner], **created}


def _request(pod: KubeObject | None) -> Mapping[str, int] | None:
    """What *pod* asks in base units; raises ``ObjectError`` if anything that places it can't be read."""
    if not isinstance(pod, Pod):
        return None
    pod_constraints(pod)
    return pod_request(pod)


def _indices(role: Role) -> range:
    return range(min(role.task.replicas, MOST_PODS))


def _is_ready(pod: Document) -> bool:
    """Running, and not said to be unready."""
    status = part(pod, "status")
    conditions: Any = status.get("conditions")
    unready = any(
        part({"it": condition}, "it").get("type") == "Ready" and condition.get("status") != "True"
        for condition in (conditions if isinstance(conditions, list) else [])
    )
    return status.get("phase") == "Running" and not unready


def _sub_group(role: Role) -> Document | None:
    """The partitions of *role* as groups within the PodGroup."""
    partition = role.task.partition_policy
    if partition is None:
        return None
    policy: Document = {
        "name": role.name,
        "subGroupSize": partition.partition_size,
        "minSubGroups": partition.min_partitions,
        "labelSelector": {"matchLabels": {ROLE: role.name}},
        "matchLabelKeys": [PARTITION],
    }
    if partition.network_topology is not None:
        policy["networkTopology"] = partition.network_topology.to_manifest()
    return policy
