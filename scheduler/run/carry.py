"""What a cycle decided, as orders for the writer; only what is new is said again.

Decides nothing. Reads the engine after a cycle, in the engine's own thread, and returns plain orders, which
the writer carries out in another. What is on an object already is not ordered (``cluster/sayings``), and what
was said neither (``book``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from volcano_py.crds.annotations import GROUP_QUEUE, JOB_QUEUE
from volcano_py.crds.podgroup import PodGroup
from volcano_py.scheduler.cluster import sayings
from volcano_py.scheduler.cluster.notices import sentence
from volcano_py.scheduler.cluster.orders import (
    BindOrder,
    EvictOrder,
    Order,
    ProblemOrder,
    RefusalOrder,
    Subject,
)
from volcano_py.scheduler.cluster.problems import VALID, validity
from volcano_py.scheduler.engine import CycleResult
from volcano_py.scheduler.framework.close import GroupStatus
from volcano_py.scheduler.framework.decision import Decision
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.kube.errors import Problem
from volcano_py.scheduler.model.kube.objects import Pod
from volcano_py.scheduler.model.tasks import NOWHERE
from volcano_py.scheduler.run.book import Book, Holding
from volcano_py.scheduler.run.claims import Claims
from volcano_py.scheduler.run.owner import Known, Owner

QUEUES_EVERY_S: Final = 1.0
"""Between two rounds of queue statuses, at most: what a queue holds changes with every bind."""


@dataclass(frozen=True, slots=True)
class EvictionStyle:
    """How evictions are carried out.

    Attributes:
        notice_s: seconds between telling a pod and evicting it.
        delete: by plain delete, which no disruption budget can refuse, as Volcano does.
    """

    notice_s: float = 0.0
    delete: bool = False


class Carrier:
    """See the module. One for the life of the process.

    Args:
        style: of evictions.
        instance: names this process in transition ids.
        period_s: the next cycle after one that left something to be told comes so much later; queue statuses
            may wait no longer, since there may be no other.
    """

    def __init__(self, style: EvictionStyle, instance: str, period_s: float = QUEUES_EVERY_S) -> None:
        self._style, self._instance = style, instance
        self._queues_every_s = min(QUEUES_EVERY_S, period_s)
        self._book = Book()
        self._queues_at = -QUEUES_EVERY_S
        self._begins = False

    def orders(self, owner: Owner, result: CycleResult, number: int, now: float) -> list[Order]:
        """Everything to be done after cycle *number*, most pressing first.

        Args:
            owner: of the engine, as it stands after the cycle.
            result: what the cycle decided.
            number: of the cycle.
            now: its clock, epoch seconds.
        """
        state = owner.engine.state
        return [
            *self._binds(state, result.decisions, owner.claims, now),
            *self._evictions(state, result.decisions),
            *self._nominations(state),
            *self._groups(state, self._statuses(state, result), number, now),
            *self._refusals(state, result),
            *self._queues(state, owner.known, now),
        ]

    def problems(self, state: ClusterState, known: Known) -> list[Order]:
        """What is wrong with objects, and with which no more."""
        wrong: dict[str, ProblemOrder] = {}
        for name, found in state.doubts.items():
            _note(wrong, _problem(state, known, name, found, used=True))
        for name, found in state.problems.items():
            _note(wrong, _problem(state, known, name, found, used=False))
        return [*self._book.problems(wrong, known)]

    def begin(self, known: Known) -> None:
        """We lead from now on: what was said stands on the objects, whoever said it."""
        self._book.read(known)
        self._begins = True

    def forget(self, pods: Iterable[str]) -> None:
        """These *pods* are gone."""
        for key in pods:
            self._book.forget(key)

    # -- pods -----------------------------------------------------------------------------------

    def _binds(
        self, state: ClusterState, decisions: Iterable[Decision], claims: Claims, now: float
    ) -> Iterator[Order]:
        for decision in decisions:
            if decision.kind != "bind":
                continue
            pod, task = _pod_of(state, decision.pod)
            yield BindOrder(
                pod.metadata.namespace,
                pod.metadata.name,
                pod.metadata.uid,
                decision.node,
                _record(state, pod, task, decision, now),
                _group_of(state, task),
                claims.get(decision.pod, ()),
            )

    def _evictions(self, state: ClusterState, decisions: Iterable[Decision]) -> Iterator[Order]:
        for decision in decisions:
            if decision.kind == "evict":
                pod, task = _pod_of(state, decision.pod)
                order = EvictOrder(
                    pod.metadata.namespace,
                    pod.metadata.name,
                    pod.metadata.uid,
                    reason=decision.reason,
                    for_whom=decision.for_whom,
                    lost=decision.lost,
                    action=decision.action,
                    notice_s=self._style.notice_s,
                    delete=self._style.delete,
                    group=_group_subject(state, task),
                )
                claimant = state.jobs.named(decision.for_whom)
                yield order if claimant is None else _in_words(order, claimant.made_for)

    def _nominations(self, state: ClusterState) -> Iterator[Order]:
        """Where room is kept, and where none is kept any more."""
        tasks, nodes = state.tasks, state.nodes
        kept = {tasks.keys[task]: nodes.names[row] for task, row in tasks.nominated.items()}
        for key, told in self._book.nominations(kept):
            task = tasks.index.get(key)
            pod = None if task is None else tasks.pods[task]
            if pod is not None:
                order = sayings.nomination(pod, kept.get(key, ""), told)
                if order is not None:
                    yield order

    def _refusals(self, state: ClusterState, result: CycleResult) -> Iterator[Order]:
        """Why pods wait: their own refusal, else that of their group."""
        refused = dict(result.refusals)
        for key, refusal in result.job_refusals.items():
            job = state.jobs.named(key)
            for task in () if job is None else job.pending:
                refused.setdefault(state.tasks.keys[task], refusal)
        events: Counter[tuple[int, str]] = Counter()
        for key, refusal, told in self._book.refusals(refused):
            order = self._refusal(state, key, refusal, told, events)
            if order is not None:
                yield order

    def _refusal(
        self,
        state: ClusterState,
        key: str,
        refusal: Refusal,
        told: Refusal | None,
        events: Counter[tuple[int, str]],
    ) -> RefusalOrder | None:
        task = state.tasks.index.get(key)
        pod = None if task is None else state.tasks.pods[task]
        if task is None or pod is None or pod.spec.node_name:
            return None
        of = (int(state.tasks.job[task]), refusal.message)
        events[of] += 1
        loud = events[of] <= sayings.MOST_EVENTS
        last = None if told is None else (sayings.waits_for(told.reason, told.nodes), told.message)
        return sayings.refusal(
            pod, refusal.message, refusal.reason, nodes=refusal.nodes, event=loud, told=last
        )

    # -- groups and queues ----------------------------------------------------------------------

    def _statuses(self, state: ClusterState, result: CycleResult) -> Mapping[str, GroupStatus]:
        """What is to be said of groups: what is new, and at the begin of a lead of all that there are."""
        if not self._begins:
            return result.pod_groups
        self._begins = False
        return {job.key: job.said for job in state.jobs.live() if isinstance(job.said, GroupStatus)}

    def _groups(
        self, state: ClusterState, changed: Mapping[str, GroupStatus], number: int, now: float
    ) -> Iterator[Order]:
        for key, status in changed.items():
            job = state.jobs.named(key)
            if job is None or job.group is None:
                continue
            conditions = [sayings.Said(c.type, c.status, c.reason, c.message) for c in status.conditions]
            conditions += self._validity(job.group, key)
            counts = (status.running, status.succeeded, status.failed)
            transition = f"{self._instance}-{number}"
            order = sayings.group_status(job.group, status.phase, counts, conditions, transition, now)
            if order is not None:
                yield order

    def _validity(self, group: PodGroup, key: str) -> list[sayings.Said]:
        """What is said of *group* besides, since its conditions are written as a whole."""
        wrong = self._book.problem_of("PodGroup", key)
        stated = group.status is not None and any(each.type == VALID for each in group.status.conditions)
        return [validity(wrong)] if stated or wrong is not None else []

    def _queues(self, state: ClusterState, known: Known, now: float) -> Iterator[Order]:
        """What queues hold, of those whose holdings have changed since it was last said, now and then."""
        if 0 <= now - self._queues_at < self._queues_every_s:
            return
        self._queues_at = now
        sources = {name: change.item for name, change in known.get("Queue", {}).items() if change.item}
        held = [
            Holding(queue.name, sources[queue.name].metadata.uid, state.queues.allocated[queue.row].copy())
            for queue in state.queues.live()
            if queue.name in sources
        ]
        for each in self._book.holdings(held):
            order = sayings.queue_status(sources[each.name], state.vocabulary.text(each.amounts))
            if order is not None:
                yield order


def _pod_of(state: ClusterState, key: str) -> tuple[Pod, int]:
    """Pod and task called *key*, which has just been decided on."""
    task = state.tasks.index[key]
    pod = state.tasks.pods[task]
    if pod is None:
        raise KeyError(key)
    return pod, task


def _group_of(state: ClusterState, task: int) -> str:
    row = int(state.tasks.job[task])
    return "" if row == NOWHERE else state.jobs[row].key


def _in_words(order: EvictOrder, claimant: str) -> EvictOrder:
    """*order* with the claimant under the name that people know: groups of plain pods are called by a UID."""
    if not claimant:
        return order
    named = replace(order, for_whom=f"{order.for_whom} ({claimant})")
    return replace(order, message=sentence(named))


def _group_subject(state: ClusterState, task: int) -> Subject | None:
    row = int(state.tasks.job[task])
    group = None if row == NOWHERE else state.jobs[row].group
    if group is None:
        return None
    return Subject("PodGroup", state.jobs[row].namespace, state.jobs[row].name, group.metadata.uid)


def _record(state: ClusterState, pod: Pod, task: int, decision: Decision, now: float) -> Mapping[str, str]:
    """The cards of *pod*, and whose queue they are of: the node's agent reads pods, not PodGroups."""
    if not decision.slices:
        return {}
    cards = state.cards.specs.get(state.nodes.index[decision.node], ())
    record = state.card_source.record(pod, decision.slices, decision.node, cards, now)
    row = int(state.tasks.job[task])
    if row == NOWHERE or not pod.metadata.annotations.keys().isdisjoint((GROUP_QUEUE, JOB_QUEUE)):
        return record
    return {**record, GROUP_QUEUE: state.jobs[row].queue_name}


# -- objects with faults --------------------------------------------------------------------------


def _note(wrong: dict[str, ProblemOrder], order: ProblemOrder | None) -> None:
    if order is not None:
        wrong[f"{order.subject.kind} {order.subject.key}"] = order


def _problem(
    state: ClusterState, known: Known, name: str, problems: Iterable[Problem], *, used: bool
) -> ProblemOrder | None:
    """What to say of the object *name* ("Kind namespace/name"); None where it is not known any more."""
    kind, _, key = name.partition(" ")
    change = known.get(kind, {}).get(key)
    if change is None:
        return None
    namespace, _, short = key.rpartition("/")
    said = tuple(f"{one.field}: {one.message}" if one.field else one.message for one in problems)
    item = change.item
    waits = not used and isinstance(item, Pod) and state.pods.is_ours(item) and not item.spec.node_name
    return ProblemOrder(Subject(kind, namespace, short, change.uid), said, used=used, waits=waits)
