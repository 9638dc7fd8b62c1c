"""Pods into tasks: what a pod asks, where it stands, to whom it belongs, what may be done to it.

A pod event is applied by taking the task out of the books, writing its row anew and booking it again,
so its cost does not depend on the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from volcano_py.crds.annotations import CHECKPOINT, COOLDOWN, GROUP, PREEMPTABLE, ROLE, TASK_PRIORITY
from volcano_py.crds.quantity import whole_number
from volcano_py.scheduler.model.cards import CardChoice
from volcano_py.scheduler.model.classes import Signature
from volcano_py.scheduler.model.echoes import only_moved
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.kube.errors import Problem, child
from volcano_py.scheduler.model.kube.objects import Pod
from volcano_py.scheduler.model.kube.podspec import PodConstraints, pod_constraints
from volcano_py.scheduler.model.kube.request import nonzero_request, pod_request
from volcano_py.scheduler.model.kube.times import parse_time
from volcano_py.scheduler.model.notes import as_flag, as_seconds, doubts_about, said
from volcano_py.scheduler.model.resources import POD_UNIT
from volcano_py.scheduler.model.tasks import HOLDS_NODE, NOWHERE, Status

if TYPE_CHECKING:
    from volcano_py.scheduler.model.cluster import ClusterState

CRITICAL_CLASSES: Final = frozenset({"system-cluster-critical", "system-node-critical"})
SYSTEM_NAMESPACE: Final = "kube-system"
CRITICAL_PRIORITY: Final = 2_000_000_000
DEFAULT_PRIORITY: Final = 1

_NO_PRIORITY: Final = Problem(
    child("metadata.annotations", TASK_PRIORITY), "is no 32-bit number; the pod's own priority counts"
)

_STANDING: Final = (Status.BINDING, Status.BOUND, Status.RUNNING)
"""Statuses between which a pod gets on without a change of any amount."""
_STAYS: Final = (Status.BOUND, Status.RUNNING, Status.UNKNOWN)
"""What pods say of themselves that are on a node and not on their way out."""
_BY_PHASE: Final = {
    "Running": Status.RUNNING,
    "Succeeded": Status.SUCCEEDED,
    "Failed": Status.FAILED,
    "Unknown": Status.UNKNOWN,
}


def status_of(pod: Pod) -> Status:
    """The task status of *pod* (spec of Volcano, section 1)."""
    phase = pod.status.phase or "Pending"
    if pod.metadata.deletion_timestamp is not None and phase in ("Running", "Pending"):
        return Status.RELEASING
    if phase == "Pending":
        return Status.BOUND if pod.spec.node_name else Status.PENDING
    return _BY_PHASE.get(phase, Status.UNKNOWN)


def stated_priority(pod: Pod) -> int | None:
    """The task priority that *pod* states itself; None where nothing (or no 32-bit number) is said."""
    return whole_number(pod.metadata.annotations.get(TASK_PRIORITY, ""))


class PodIntake:
    """Applies pod events to the state.

    Attributes:
        renoted: pods so far whose annotations changed in what only a third party's policy may read.
    """

    def __init__(self, state: ClusterState, scheduler_names: frozenset[str]) -> None:
        self.state = state
        self.scheduler_names = scheduler_names
        self.renoted = 0
        self._unbooked: dict[tuple[int, int, int], list[int]] = {}

    def is_ours(self, pod: Pod) -> bool:
        """Pods that name one of our schedulers, or a group and no scheduler (decisions.md 18)."""
        name = pod.spec.scheduler_name
        return name in self.scheduler_names or (not name and GROUP in pod.metadata.annotations)

    def upsert(self, pod: Pod) -> None:
        """Take in *pod* as it is now; raises ``ObjectError`` on garbage, the pod is then unknown.

        Its amounts are in the books after ``flush``: many pods that come together are booked as
        batches, at a fraction of the cost of one at a time.
        """
        known = self.state.tasks.index.get(pod.key)
        if known is not None and only_moved(self.state, known, pod):
            self._move(known, pod)
            return
        self.state.doubts.pop(f"Pod {pod.key}", None)
        assumed = held = kept = None
        if known is not None:
            assumed = self._assumed(known, pod)
            kept = self._kept_room(known, pod)
            held = self.state.tasks.slices.get(known)
            self.remove(known)
        status = status_of(pod)
        ours = self.is_ours(pod)
        if self._is_irrelevant(pod, status, ours):
            return
        if ours:
            self.state.doubt("Pod", pod.key, doubts_about(pod.metadata.labels, pod.metadata.annotations))
        signature, profile = self._signature(pod)
        task = self._write(pod, signature, status, ours, profile)
        if assumed is not None:
            self._stand(task, assumed)
        self._nominate(task, pod, kept)
        self._enter(task, None if assumed is None else held)

    def _move(self, task: int, pod: Pod) -> None:
        """Note how far *pod* has come; its place, class and cards are as before."""
        self.flush()
        tasks, status = self.state.tasks, status_of(pod)
        if self._is_irrelevant(pod, status, self.is_ours(pod)):
            self.remove(task)
            return
        old = tasks.pods[task]
        if old is not None and old.metadata.annotations != pod.metadata.annotations:
            self.renoted += 1
        tasks.pods[task] = pod
        if not tasks.started[task]:
            tasks.started[task] = pod.status.start_time or 0.0
        if status == tasks.status[task]:
            pass
        elif status in _STANDING and tasks.status[task] in _STANDING and pod.spec.node_name:
            self.state.accounts.come_along(task, status)
        elif self._assumed(task, pod) is None:
            nodes = tasks.node[task : task + 1].copy() if pod.spec.node_name else None
            self.state.accounts.move([task], status, nodes)
        self._nominate(task, pod, tasks.nominated.get(task))

    def flush(self) -> None:
        """Book what ``upsert`` has written."""
        accounts = self.state.accounts
        for tasks in self._unbooked.values():
            accounts.book(accounts.batch(tasks), 1)
        self._unbooked.clear()

    def remove(self, task: int) -> None:
        """Take *task* out of the books and forget it."""
        self.flush()
        state = self.state
        batch = state.accounts.batch([task])
        state.accounts.book(batch, -1)
        job = batch.job
        state.classes.leave(batch.klass)
        state.tasks.drop(task)
        if job is not None:
            job.tasks.discard(task)
            job.emptied = not job.tasks
            state.jobs.changed.add(job.row)
            if job.group is None and not job.tasks:
                state.forget_job(job)

    def reclass(self, task: int) -> None:
        """Intern *task* again after the selectors that look at it changed."""
        state = self.state
        pod = state.tasks.pods[task]
        if pod is None:
            return
        state.accounts.book(state.accounts.batch([task]), -1)
        old = state.classes[int(state.tasks.klass[task])]
        signature, _ = self._signature(pod)
        state.tasks.klass[task] = state.classes.intern(signature).row
        state.classes.leave(old)
        state.accounts.book(state.accounts.batch([task]), 1)

    def resolve(self, task: int, job: Job | None) -> None:
        """Write what pod, PodGroup and queue together say of interrupting *task* (decisions.md 19)."""
        tasks = self.state.tasks
        pod = tasks.pods[task]
        if pod is None:
            return
        meta = pod.metadata
        queue = None if job is None or job.queue < 0 else self.state.queues[job.queue]
        flag = as_flag(said(meta.labels, meta.annotations, PREEMPTABLE))
        if flag is None and job is not None:
            flag = job.interruptible
        if flag is None and queue is not None:
            flag = queue.interruptible
        seconds = as_seconds(said(meta.labels, meta.annotations, COOLDOWN))
        if seconds is None and job is not None:
            seconds = job.min_run_s
        if seconds is None:
            seconds = queue.min_run_s if queue is not None else 0.0
        critical = bool(tasks.critical[task])
        tasks.interruptible[task] = flag is not False and not critical
        tasks.min_run_s[task] = seconds

    def _assumed(self, task: int, pod: Pod) -> tuple[Status, int] | None:
        """What we decided for *task* and the cluster has not confirmed yet: a bind, or an eviction.

        A bind holds until the pod has a node, an eviction until it is on its way out or has ended; else
        until the order failed (``outcomes``).
        """
        tasks = self.state.tasks
        if tasks.uids[task] != pod.uid:
            return None
        decided, told, node = tasks.status[task], status_of(pod), int(tasks.node[task])
        if decided == Status.BINDING and told == Status.PENDING:
            return Status.BINDING, node
        if decided == Status.RELEASING and pod.spec.node_name and told in _STAYS:
            return Status.RELEASING, node
        return None

    def _kept_room(self, task: int, pod: Pod) -> int | None:
        """The node row where room is kept for *task*, if the event is about the same pod."""
        tasks = self.state.tasks
        return tasks.nominated.get(task) if tasks.uids[task] == pod.uid else None

    def _nominate(self, task: int, pod: Pod, kept: int | None) -> None:
        """A waiting pod keeps its reservation; after a restart the pod's own status tells of it."""
        name = pod.status.nominated_node_name
        if (kept is None and not name) or self.state.tasks.status[task] != Status.PENDING:
            return
        self.state.tasks.nominated[task] = self.state.nodes.row(name) if kept is None else kept

    def _is_irrelevant(self, pod: Pod, status: Status, ours: bool) -> bool:
        """Pods that neither hold room nor wait for us; who runs nowhere holds no room."""
        placed = bool(pod.spec.node_name)
        if ours:
            return HOLDS_NODE[status] and not placed
        return not placed or status in (Status.SUCCEEDED, Status.FAILED)

    def _signature(self, pod: Pod) -> tuple[Signature, int]:
        state = self.state
        shape = state.card_source.shape(pod, pod_request(pod))
        state.doubt("Pod", pod.key, shape.problems)
        constraints: PodConstraints = pod_constraints(pod)
        self._look_at(constraints)
        profile = state.coupling.profile(pod.metadata.namespace, pod.metadata.labels)
        signature = Signature(
            _with_pod(shape.request),
            _with_pod(shape.charge),
            nonzero_request(pod),
            constraints,
            shape.cards,
            state.coupling.matched_terms(profile),
        )
        return signature, profile

    def _look_at(self, constraints: PodConstraints) -> None:
        """Pods that *constraints*' selectors look at for the first time get classes of their own."""
        coupling = self.state.coupling
        terms = coupling.register(constraints)
        if terms:
            self.flush()
        for term in terms:
            self.reclass_profiles(coupling.profiles_matching(term))

    def reclass_profiles(self, profiles: Collection[int]) -> None:
        """Other selectors look at pods of *profiles* than did before: intern them again."""
        if not profiles:
            return
        tasks = self.state.tasks
        seen = np.isin(tasks.profile[: tasks.size], np.array(sorted(profiles), np.int32))
        for task in np.flatnonzero(seen).tolist():
            self.reclass(task)

    def _write(self, pod: Pod, signature: Signature, status: Status, ours: bool, profile: int) -> int:
        state, meta = self.state, pod.metadata
        tasks = state.tasks
        task = tasks.take(pod.key, pod.uid, said(meta.labels, meta.annotations, ROLE) or "")
        tasks.pods[task] = pod
        tasks.profile[task] = profile
        klass = state.classes.intern(signature)
        tasks.klass[task] = klass.row
        tasks.best_effort[task] = klass.best_effort
        tasks.created[task] = meta.creation_timestamp
        tasks.started[task] = pod.status.start_time or 0.0
        tasks.checkpoint[task] = _time(meta.annotations.get(CHECKPOINT))
        tasks.gated[task] = bool(pod.spec.scheduling_gates) or state.holds.is_held(pod.uid)
        tasks.priority[task] = self.priority_of(pod)
        tasks.critical[task] = self._is_critical(pod)
        tasks.system[task] = meta.namespace == SYSTEM_NAMESPACE
        if TASK_PRIORITY in meta.annotations and stated_priority(pod) is None:
            state.doubt("Pod", pod.key, [_NO_PRIORITY])
        job = self._job_of(pod) if ours else None
        if job is not None:
            tasks.job[task] = job.row
            job.tasks.add(task)
            job.emptied = False
        self._stand(task, (status, state.nodes.row(pod.spec.node_name) if pod.spec.node_name else NOWHERE))
        self.resolve(task, job)
        return task

    def _stand(self, task: int, where: tuple[Status, int]) -> None:
        tasks = self.state.tasks
        tasks.status[task], tasks.node[task] = where

    def _enter(self, task: int, decided: CardChoice | None) -> None:
        """Note a new row for the books; its cards are those *decided*, else what the record says."""
        state = self.state
        tasks = state.tasks
        kind = (int(tasks.job[task]), int(tasks.klass[task]), int(tasks.status[task]))
        node, pod = int(tasks.node[task]), tasks.pods[task]
        klass = state.classes[kind[1]]
        if node != NOWHERE and pod is not None and klass.cards is not None:
            choice = decided or state.card_source.recorded(pod, state.cards.specs.get(node, ()))
            if choice is not None:
                state.tasks.slices[task] = choice
                state.doubt("Pod", pod.key, choice.problems)
        self._unbooked.setdefault(kind, []).append(task)

    def _job_of(self, pod: Pod) -> Job | None:
        group = pod.metadata.annotations.get(GROUP)
        return None if not group else self.state.jobs.take(f"{pod.metadata.namespace}/{group}")

    def priority_of(self, pod: Pod) -> int:
        """The pod's priority as admission would resolve it, unless Volcano's annotation says otherwise."""
        stated = stated_priority(pod)
        if stated is not None:
            return stated
        if pod.spec.priority is not None:
            return pod.spec.priority
        return self.state.priority_value(pod.spec.priority_class_name, DEFAULT_PRIORITY)

    def _is_critical(self, pod: Pod) -> bool:
        return (
            pod.spec.priority_class_name in CRITICAL_CLASSES or (pod.spec.priority or 0) >= CRITICAL_PRIORITY
        )


def _with_pod(amounts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """*amounts* without zeros and with the pod itself, sorted."""
    return tuple(sorted([(k, v) for k, v in amounts.items() if v and k != "pods"] + [("pods", POD_UNIT)]))


def _time(text: str | None) -> float:
    try:
        return parse_time(text) if text else 0.0
    except ValueError:
        return 0.0


def book_tasks(state: ClusterState, tasks: set[int], sign: int) -> None:
    """Put *tasks* of one job into the books (1) or take them out (-1)."""
    groups: dict[tuple[int, int], list[int]] = {}
    for task in sorted(tasks):
        groups.setdefault((int(state.tasks.klass[task]), int(state.tasks.status[task])), []).append(task)
    for group in groups.values():
        state.accounts.book(state.accounts.batch(group), sign)
