"""The cluster state: everything the engine knows, changed only by events and by accounts.

One owner: the scheduling loop. Events are applied between cycles; inside a cycle only a ``Statement``
moves tasks. Objects may arrive in any order (a pod before its node, group or queue), and equal
objects give equal state whatever the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from volcano_py.crds.podgroup import PodGroup
from volcano_py.crds.queue import Queue as QueueObject
from volcano_py.scheduler.model.accounts import Accounts
from volcano_py.scheduler.model.cards import CardSource, CardTable, NoCards
from volcano_py.scheduler.model.classes import ClassTable
from volcano_py.scheduler.model.coupling import Coupling
from volcano_py.scheduler.model.groups import PENDING, GroupIntake
from volcano_py.scheduler.model.holds import Holds
from volcano_py.scheduler.model.jobs import Job, JobTable
from volcano_py.scheduler.model.kept import kept
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem, not_text
from volcano_py.scheduler.model.kube.objects import ConfigMap, Namespace, Node, Pod, PriorityClass
from volcano_py.scheduler.model.node_intake import NodeIntake
from volcano_py.scheduler.model.nodes import NodeTable
from volcano_py.scheduler.model.pods import PodIntake
from volcano_py.scheduler.model.ports import HostPorts
from volcano_py.scheduler.model.queue_tree import QueueIntake
from volcano_py.scheduler.model.queues import DEFAULT_QUEUE, QueueTable
from volcano_py.scheduler.model.resources import UNLIMITED, Ints, Mask, Scores, Vocabulary, summed
from volcano_py.scheduler.model.tasks import Status, TaskTable
from volcano_py.scheduler.model.volumes import Volumes


class ClusterState:
    """Tables, books and what is wrong with single objects.

    Attributes:
        vocabulary: which resource is which column.
        tasks, nodes, cards, classes, jobs, queues: the tables.
        accounts: moves tasks and keeps the amounts of all tables true.
        coupling, ports, volumes: further books, as observers of the accounts.
        holds: pods that the cluster would not let us bind or evict.
        pods, groups, node_intake, queue_intake: write events of their kind into the tables.
        card_source: what the configured device plugin reads from objects.
        tie_key: what equals are ordered by, from a name.
        priority_classes: by name.
        problems: "Kind namespace/name" -> what is wrong; such an object counts as absent.
        doubts: the same key -> what was wrong but could be read some way; the object is used.
    """

    def __init__(
        self,
        scheduler_names: Iterable[str],
        *,
        card_source: CardSource | None = None,
        tie_key: Callable[[str], object] | None = None,
        default_queue: str = DEFAULT_QUEUE,
    ) -> None:
        self.vocabulary = Vocabulary()
        self.tie_key: Callable[[str], object] = tie_key or (lambda name: name)
        self.tasks = TaskTable(self.vocabulary)
        self.nodes = NodeTable(self.vocabulary, self.tie_key)
        self.cards = CardTable()
        self.classes = ClassTable(self.vocabulary)
        self.jobs = JobTable(self.vocabulary)
        self.queues = QueueTable(self.vocabulary, default_queue)
        self.accounts = Accounts(self.tasks, self.nodes, self.cards, self.classes, self.jobs, self.queues)
        self.card_source: CardSource = card_source or NoCards()
        for alias, name in self.card_source.aliases.items():
            self.vocabulary.alias(alias, name)
        self.coupling = Coupling(self.tasks, self.nodes)
        self.ports = HostPorts(self.nodes)
        self.volumes = Volumes(self.tasks, self.nodes)
        self.holds = Holds(self)
        self.accounts.observers += [self.coupling, self.ports, self.volumes]
        self.pods = PodIntake(self, frozenset(scheduler_names))
        self.groups = GroupIntake(self)
        self.node_intake = NodeIntake(self)
        self.queue_intake = QueueIntake(self)
        self.priority_classes: dict[str, PriorityClass] = {}
        self.problems: dict[str, list[Problem]] = {}
        self.doubts: dict[str, list[Problem]] = {}
        self._memo: dict[str, object] = {}

    # -- events ---------------------------------------------------------------------------------

    def upsert(self, item: Any) -> list[Problem]:
        """Take in a decoded object as it is now.

        Returns:
            What is wrong with it; the object is then treated as absent and listed in ``problems``.
        """
        problems = self._upsert(item)
        self.pods.flush()
        return problems

    def upsert_all(self, items: Iterable[Any]) -> dict[str, list[Problem]]:
        """As ``upsert`` for many, in order; pods that come together are booked together.

        Returns:
            What is wrong, by "Kind namespace/name".
        """
        wrong = {}
        for item in items:
            if not isinstance(item, Pod):
                self.pods.flush()
            problems = self._upsert(item)
            if problems:
                wrong[f"{type(item).__name__} {key_of(item)}"] = problems
        self.pods.flush()
        return wrong

    def _upsert(self, item: Any) -> list[Problem]:
        kind, key = type(item).__name__, key_of(item)
        try:
            self._apply(item)
        except (ObjectError, UnicodeEncodeError) as error:
            self.delete(kind, key)
            wrong = error.problems if isinstance(error, ObjectError) else (not_text(error),)
            return self.mark(kind, key, list(wrong))
        self.problems.pop(f"{kind} {key}", None)
        return []

    def mark(self, kind: str, key: str, problems: list[Problem]) -> list[Problem]:
        """Note what is wrong with an object."""
        self.problems[f"{kind} {key}"] = problems
        return problems

    def doubt(self, kind: str, key: str, problems: Iterable[Problem]) -> None:
        """Note what is doubtful about an object that is used all the same."""
        for problem in problems:
            noted = self.doubts.setdefault(f"{kind} {key}", [])
            if problem not in noted:
                noted.append(problem)

    def delete(self, kind: str, key: str) -> None:
        """The object is gone; unknown ones are fine."""
        self.problems.pop(f"{kind} {key}", None)
        self.doubts.pop(f"{kind} {key}", None)
        if kind == "Pod":
            task = self.tasks.index.get(key)
            if task is not None:
                self.pods.remove(task)
        elif kind == "PodGroup":
            job = self.jobs.named(key)
            if job is not None:
                self.groups.remove(job)
        elif kind == "Node":
            self.node_intake.remove(key)
        elif kind == "Queue":
            self.queue_intake.remove(key)
        elif kind == "PriorityClass":
            self.priority_classes.pop(key, None)
            self._reprioritise()
        elif kind == "Namespace":
            self._put_namespace(key, None)
        elif kind == "ConfigMap":
            self._configure_cards(key, None)
        else:
            self.volumes.delete(kind, key)

    def settle(self, now: float) -> None:
        """Let time pass as a healthy cluster would: bound pods run, pods on their way out are gone."""
        tasks = self.tasks
        for task in self._in(Status.RELEASING):
            self.pods.remove(task)
        for status in (Status.BINDING, Status.BOUND):
            for task in self._in(status):
                if tasks.started[task] == 0.0:
                    tasks.started[task] = now
                self.accounts.move([task], Status.RUNNING, tasks.node[task : task + 1].copy())

    # -- questions ------------------------------------------------------------------------------

    def total(self) -> Ints:
        """(R,) what ordinary pods can have of the cluster: live nodes, neither cordoned nor tainted.

        A resource that only tainted nodes have (cards on nodes set apart for them) counts there.
        """
        return kept(self._memo, "total", (self.nodes.static_epoch, self.vocabulary.width), self._sum_total)

    def awaited(self) -> Ints:
        """(Q, R) what pending tasks ask of each queue; ``UNLIMITED`` where that is more than can be counted.

        The column ``queues.pending`` is exact as long as its sums stay inside 64 bits, which one user with
        thousands of absurd pods can bring them out of. Read only.
        """
        if self.classes.charged < UNLIMITED:
            return self.queues.pending
        roughly = np.zeros(self.queues.pending.shape)
        for row in self.jobs.with_pending:
            job = self.jobs[row]
            if job.queue >= 0:
                roughly[list(self.queues[job.queue].path)] += self._asked_by(job)
        return np.where(roughly < UNLIMITED, self.queues.pending, np.int64(UNLIMITED))

    def ordinary(self) -> tuple[Mask, Mask]:
        """Where ``total`` is counted.

        Returns:
            (N,) nodes for ordinary pods, and (R,) resources that none of them has: those count on
            every live node that is not cordoned.
        """
        nodes = self.nodes
        usable: Mask = nodes.live & ~nodes.unschedulable & ~nodes.tainted
        apart: Mask = (nodes.allocatable[usable] > 0).sum(axis=0) == 0
        return usable, apart

    def priority_value(self, name: str, otherwise: int) -> int:
        """The value of priority class *name*; unnamed: the global default, else *otherwise*."""
        if name:
            found = self.priority_classes.get(name)
            return found.value if found is not None else 0
        defaults = [c.value for c in self.priority_classes.values() if c.global_default]
        return max(defaults) if defaults else otherwise

    def _asked_by(self, job: Job) -> Scores:
        """(R,) what *job*'s pending tasks ask, roughly."""
        rows, counts = np.unique(self.tasks.klass[list(job.pending)], return_counts=True)
        charges = np.array([self.classes[row].charge for row in rows.tolist()], np.float64)
        asked: Scores = (charges * counts[:, None]).sum(axis=0)
        return asked

    def _sum_total(self) -> Ints:
        nodes = self.nodes
        usable, apart = self.ordinary()
        total = summed(nodes.allocatable[usable])
        total[apart] = summed(nodes.allocatable[nodes.live & ~nodes.unschedulable])[apart]
        return total

    # -- helpers of the intakes -----------------------------------------------------------------

    def set_phase(self, job: Job, phase: str) -> None:
        """Set *job*'s PodGroup phase and keep the set that follows from it."""
        job.phase = phase
        waits = job.group is not None and phase == PENDING
        (self.jobs.gate_waiting.add if waits else self.jobs.gate_waiting.discard)(job.row)
        self.jobs.changed.add(job.row)

    def forget_job(self, job: Job) -> None:
        """Drop *job*, which has neither PodGroup nor tasks."""
        if job.queue >= 0:
            self.queues[job.queue].jobs.discard(job.row)
        self.jobs.drop(job)

    # -- single kinds ---------------------------------------------------------------------------

    def _apply(self, item: Any) -> None:
        if isinstance(item, Pod):
            self.pods.upsert(item)
        elif isinstance(item, Node):
            self.node_intake.upsert(item)
        elif isinstance(item, PodGroup):
            self.groups.upsert(item)
        elif isinstance(item, QueueObject):
            self.queue_intake.upsert(item)
        elif isinstance(item, PriorityClass):
            self.priority_classes[item.name] = item
            self._reprioritise()
        elif isinstance(item, Namespace):
            self._put_namespace(item.name, item.metadata.labels)
        elif isinstance(item, ConfigMap):
            self._configure_cards(key_of(item), item.data)
        else:
            self.volumes.upsert(item)

    def _configure_cards(self, name: str, data: Mapping[str, str] | None) -> None:
        """Cards may be called, cut and asked for in other ways now; of garbage the last good one stays."""
        self.doubts.pop(f"ConfigMap {name}", None)
        try:
            changed = self.card_source.configure(name, data)
        except ObjectError as error:
            self.doubt("ConfigMap", name, error.problems)
            return
        if changed:
            self.pods.flush()
            self.node_intake.read_cards_again()

    def _put_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Namespace selectors may select other pods now."""
        self.pods.reclass_profiles(self.coupling.set_namespace(name, labels))

    def _reprioritise(self) -> None:
        """Priority classes changed: jobs and pods that name one get its value anew."""
        self.jobs.epoch += 1
        for job in self.jobs.live():
            job.priority = self.priority_value(job.priority_class, 0)
            self.jobs.changed.add(job.row)
        for task in self.tasks.index.values():
            pod = self.tasks.pods[task]
            if pod is not None:
                self.tasks.priority[task] = self.pods.priority_of(pod)

    def _in(self, status: Status) -> list[int]:
        return [int(task) for task in self.tasks.index.values() if self.tasks.status[task] == status]


def key_of(item: Any) -> str:
    """Key of an object: namespace and name with a slash, or its name where the kind has no namespace."""
    if isinstance(item, PodGroup):  # first: a pydantic model takes long to say that it has no key
        return f"{item.metadata.namespace or 'default'}/{item.metadata.name}"
    key = getattr(item, "key", None)
    if isinstance(key, str):
        return key
    return str(item.metadata.name)
