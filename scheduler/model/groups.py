"""PodGroups into jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from volcano_py.crds.annotations import BOOST, COOLDOWN, HOLD, PREEMPTABLE
from volcano_py.crds.podgroup import PodGroup
from volcano_py.crds.quantity import whole_number
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.kube.errors import Problem, child
from volcano_py.scheduler.model.kube.request import amounts
from volcano_py.scheduler.model.notes import as_flag, as_seconds, doubts_about, said
from volcano_py.scheduler.model.pods import book_tasks

if TYPE_CHECKING:
    from volcano_py.scheduler.model.cluster import ClusterState

COMPLETED: Final = "Completed"
PENDING: Final = "Pending"
INQUEUE: Final = "Inqueue"
RUNNING: Final = "Running"
UNKNOWN: Final = "Unknown"
_QUOTA_NAMES: Final = ("count/", "requests.", "limits.")
"""Names of a ResourceQuota: PodGroups made for plain pods list amounts under these as well."""


class GroupIntake:
    """Applies PodGroup events to the state."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state

    def upsert(self, group: PodGroup) -> None:
        """Take in *group* as it is now; raises ``ObjectError`` on amounts beyond counting."""
        known = self.state.jobs.named(_key(group))
        if known is not None and _says_nothing_new(known, group):
            known.group = group
            return
        amounts = _min_resources(group.spec.min_resources)
        job = self.state.jobs.take(_key(group))
        book_tasks(self.state, job.tasks, -1)
        self._write(job, group, amounts)
        for task in job.tasks:
            self.state.pods.resolve(task, job)
        book_tasks(self.state, job.tasks, 1)
        self.state.jobs.changed.add(job.row)
        self.state.jobs.epoch += 1

    def remove(self, job: Job) -> None:
        """The PodGroup of *job* is gone; its pods, if any, wait for it."""
        state = self.state
        book_tasks(self.state, job.tasks, -1)
        if job.queue >= 0:
            state.queues[job.queue].jobs.discard(job.row)
        job.forget_group()
        for rows in (state.jobs.gate_waiting, state.jobs.homeless):
            rows.discard(job.row)
        for task in job.tasks:
            state.pods.resolve(task, job)
        book_tasks(self.state, job.tasks, 1)
        state.jobs.changed.add(job.row)
        state.jobs.epoch += 1
        if not job.tasks:
            state.forget_job(job)

    def attach(self, job: Job) -> None:
        """Point *job* at the queue it names; amounts must be out of the books."""
        queues = self.state.queues
        self.state.jobs.changed.add(job.row)
        if job.queue >= 0:
            queues[job.queue].jobs.discard(job.row)
        queue = queues.named(job.queue_name)
        job.queue = -1 if queue is None else queue.row
        if queue is not None:
            queue.jobs.add(job.row)
            self.state.jobs.homeless.discard(job.row)
        else:
            self.state.jobs.homeless.add(job.row)

    def _write(self, job: Job, group: PodGroup, amounts: dict[str, int] | None) -> None:
        state, spec, meta = self.state, group.spec, group.metadata
        new = job.group is None
        job.group, job.created = group, meta.created
        job.queue_name = spec.queue or state.queues.default
        job.min_member = spec.min_member
        job.min_task_member = dict(spec.min_task_member or {})
        job.priority_class = spec.priority_class_name or ""
        job.priority = state.priority_value(job.priority_class, 0)
        counted = None if amounts is None else state.card_source.at_gate(amounts)
        job.min_resources = None if counted is None else state.vocabulary.vector(counted)
        labels, annotations = meta.labels or {}, meta.annotations or {}
        job.interruptible = as_flag(said(labels, annotations, PREEMPTABLE))
        job.min_run_s = as_seconds(said(labels, annotations, COOLDOWN))
        job.held = bool(as_flag(annotations.get(HOLD)))
        state.doubts.pop(f"PodGroup {job.key}", None)
        state.doubt("PodGroup", job.key, doubts_about(labels, annotations))
        job.boost = _boost(state, job, annotations.get(BOOST))
        if new or (group.status is not None and group.status.phase):
            job.phase = (group.status.phase if group.status else "") or PENDING
        job.started = job.started or job.phase in (RUNNING, UNKNOWN)
        self.attach(job)
        state.set_phase(job, job.phase)


def _key(group: PodGroup) -> str:
    return f"{group.metadata.namespace or 'default'}/{group.metadata.name}"


def _says_nothing_new(job: Job, group: PodGroup) -> bool:
    """*group* is as it was but for what the engine itself decides or never reads: the usual echo."""
    old = job.group
    if old is None or old.metadata.uid != group.metadata.uid or old.spec != group.spec:
        return False
    meta, before = group.metadata, old.metadata
    if meta.labels != before.labels or meta.annotations != before.annotations:
        return False
    phase = group.status.phase if group.status else ""
    return (not phase or phase == job.phase) and meta.created == before.created


def _boost(state: ClusterState, job: Job, text: str | None) -> int:
    """The boost that *text* states; 0 where it states none that can be counted."""
    boost = 0 if text is None else whole_number(text)
    if boost is None:
        problem = Problem(child("metadata.annotations", BOOST), "is no 32-bit number; counts as 0")
        state.doubt("PodGroup", job.key, [problem])
    return boost or 0


def _min_resources(stated: Mapping[str, str] | None) -> dict[str, int] | None:
    """Base units of what is *stated*; None where the group asks for nothing at the gate.

    A gang of 5,000 pods may well ask for more than one object may hold; the gate counts that much of it.
    """
    if stated is None:
        return None
    counted = {name: text for name, text in stated.items() if not name.startswith(_QUOTA_NAMES)}
    return amounts(counted, "spec.minResources", of_many=True)
