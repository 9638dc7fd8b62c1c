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
from volcano_py.scheduler.model.cards import CardSource, CardSpec, CardTable, NoCards, moved
from volcano_py.scheduler.model.classes import ClassTable
from volcano_py.scheduler.model.coupling import Coupling
from volcano_py.scheduler.model.groups import PENDING, GroupIntake
from volcano_py.scheduler.model.jobs import Job, JobTable
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem, not_text
from volcano_py.scheduler.model.kube.objects import Namespace, Node, Pod, PriorityClass
from volcano_py.scheduler.model.kube.request import node_allocatable
from volcano_py.scheduler.model.kube.selectors import node_taints
from volcano_py.scheduler.model.nodes import NodeTable
from volcano_py.scheduler.model.pods import PodIntake, by_class_and_status
from volcano_py.scheduler.model.ports import HostPorts
from volcano_py.scheduler.model.queue_tree import (
    DEFAULT_QUEUE,
    adopt_tree,
    drop_queue,
    imply_default_queue,
    plan_tree,
    put_queue,
)
from volcano_py.scheduler.model.queues import QueueTable
from volcano_py.scheduler.model.resources import Ints, Mask, Vocabulary
from volcano_py.scheduler.model.tasks import NOWHERE, Status, TaskTable
from volcano_py.scheduler.model.volumes import Volumes

BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


class ClusterState:
    """Tables, books and what is wrong with single objects.

    Attributes:
        problems: "Kind namespace/name" -> what is wrong; such an object counts as absent.
        doubts: the same key -> what was wrong but could be read some way; the object is used.
    """

    def __init__(
        self,
        scheduler_names: Iterable[str] = ("volcano-py", "volcano"),
        *,
        card_source: CardSource | None = None,
        tie_key: Callable[[str], object] | None = None,
    ) -> None:
        self.vocabulary = Vocabulary()
        self.tie_key: Callable[[str], object] = tie_key or (lambda name: name)
        self.tasks = TaskTable(self.vocabulary)
        self.nodes = NodeTable(self.vocabulary, self.tie_key)
        self.cards = CardTable()
        self.classes = ClassTable(self.vocabulary)
        self.jobs = JobTable(self.vocabulary)
        self.queues = QueueTable(self.vocabulary)
        self.accounts = Accounts(self.tasks, self.nodes, self.cards, self.classes, self.jobs, self.queues)
        self.card_source: CardSource = card_source or NoCards()
        for alias, name in self.card_source.aliases.items():
            self.vocabulary.alias(alias, name)
        self.coupling = Coupling(self.tasks, self.nodes, self.classes)
        self.ports = HostPorts(self.tasks, self.nodes)
        self.volumes = Volumes(self.tasks, self.nodes)
        self.accounts.observers += [self.coupling, self.ports, self.volumes]
        self.pods = PodIntake(self, frozenset(scheduler_names))
        self.groups = GroupIntake(self)
        self.priority_classes: dict[str, PriorityClass] = {}
        self.problems: dict[str, list[Problem]] = {}
        self.doubts: dict[str, list[Problem]] = {}
        self._total: tuple[int, Ints] | None = None
        imply_default_queue(self.queues)
        adopt_tree(self.queues, plan_tree(self.queues))

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
            self._delete_node(key)
        elif kind == "Queue":
            self._delete_queue(key)
        elif kind == "PriorityClass":
            self.priority_classes.pop(key, None)
            self._reprioritise()
        elif kind == "Namespace":
            self._put_namespace(key, None)
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
        nodes = self.nodes
        if (
            self._total is None
            or self._total[0] != nodes.static_epoch
            or len(self._total[1]) != self.vocabulary.width
        ):
            usable, apart = self.ordinary()
            total = nodes.allocatable[usable].sum(axis=0)
            total[apart] = nodes.allocatable[nodes.live & ~nodes.unschedulable].sum(axis=0)[apart]
            self._total = (nodes.static_epoch, total)
        return self._total[1]

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
            self._put_node(item)
        elif isinstance(item, PodGroup):
            self.groups.upsert(item)
        elif isinstance(item, QueueObject):
            self._put_queue(item)
        elif isinstance(item, PriorityClass):
            self.priority_classes[item.name] = item
            self._reprioritise()
        elif isinstance(item, Namespace):
            self._put_namespace(item.name, item.metadata.labels)
        else:
            self.volumes.upsert(item)

    def _put_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Namespace selectors may select other pods now."""
        self.pods.reclass_profiles(self.coupling.set_namespace(name, labels))

    def _put_node(self, node: Node) -> None:
        nodes = self.nodes
        node_taints(node)  # refuses a node whose taints mean nothing
        specs = self._cards_of(node)
        amounts = self.card_source.offers(node_allocatable(node), specs)
        row = nodes.row(node.name)
        known = nodes.objects[row]
        nodes.objects[row] = node
        if (
            known is not None
            and _same_for_placement(known, node)
            and tuple(specs) == self.cards.specs.get(row, ())
        ):
            return
        vector = self.vocabulary.vector(amounts)
        nodes.allocatable[row] = vector
        nodes.live[row] = True
        nodes.unschedulable[row] = node.spec.unschedulable
        nodes.tainted[row] = any(taint.effect in BLOCKING_EFFECTS for taint in node.spec.taints)
        nodes.touch_static(row)
        if tuple(specs) != self.cards.specs.get(row, ()):
            self._replace_cards(row, tuple(specs))

    def _cards_of(self, node: Node) -> tuple[CardSpec, ...]:
        """What *node* registers; a register that can't be read leaves a node without cards."""
        self.doubts.pop(f"Node {node.name}", None)
        try:
            return tuple(self.card_source.cards_of(node))
        except ObjectError as error:
            self.doubt("Node", node.name, error.problems)
            return ()

    def _replace_cards(self, row: int, specs: tuple[CardSpec, ...]) -> None:
        """New cards on node *row*: what its pods hold is read again from their records."""
        tasks = self.tasks
        held = [int(t) for t in np.flatnonzero(tasks.node[: tasks.size] == row) if tasks.klass[t] != NOWHERE]
        held = [t for t in held if self.classes[int(tasks.klass[t])].cards is not None]
        for task in held:
            self.accounts.book(self.accounts.batch([task]), -1)
        before = self.cards.specs.get(row, ())
        self.cards.set_cards(row, specs)
        for task in held:
            self._hold_again(task, before, specs)
            self.accounts.book(self.accounts.batch([task]), 1)
        if self.card_source.sees(int(self.cards.memory.max(initial=0))):
            with_cards = [k.row for k in self.classes.classes if k is not None and k.cards is not None]
            for task in np.flatnonzero(np.isin(tasks.klass[: tasks.size], with_cards)).tolist():
                self.pods.reclass(task)

    def _hold_again(self, task: int, before: tuple[CardSpec, ...], specs: tuple[CardSpec, ...]) -> None:
        """What *task* holds of the cards *specs* that replace *before* on its node."""
        pod, held = self.tasks.pods[task], self.tasks.slices.get(task)
        if pod is not None and pod.spec.node_name:
            held = self.card_source.recorded(pod, specs) or held
        elif held is not None:
            held = moved(held, before, specs)
        if held is not None:
            self.tasks.slices[task] = held
            self.doubt("Pod", self.tasks.keys[task], held.problems)

    def _delete_node(self, name: str) -> None:
        """Pods still said to be there keep their row, so that a node that comes back is not empty."""
        nodes = self.nodes
        row = nodes.index.get(name)
        if row is None:
            return
        nodes.live[row] = False
        nodes.objects[row] = None
        nodes.allocatable[row] = 0
        nodes.touch_static(row)
        self._replace_cards(row, ())

    def _put_queue(self, source: QueueObject) -> None:
        queue = put_queue(self.queues, source)
        self._relink([self.jobs[row] for row in sorted(queue.jobs)])

    def _delete_queue(self, name: str) -> None:
        queue = self.queues.named(name)
        if queue is None:
            return
        jobs = [self.jobs[row] for row in sorted(queue.jobs)]
        self._book(jobs, -1)
        drop_queue(self.queues, queue)
        for job in jobs:
            job.queue = -1
        if name == DEFAULT_QUEUE:
            imply_default_queue(self.queues)
        self._book(jobs, 1)
        self._relink(jobs)

    def _relink(self, jobs: list[Job]) -> None:
        """Work out the tree again; *jobs*, and those whose queue came or moved, are booked anew."""
        tree = plan_tree(self.queues)
        affected = {job.row: job for job in jobs}
        for queue in self.queues.live():
            if queue.path != tree[queue.row][0]:
                affected.update((row, self.jobs[row]) for row in queue.jobs)
        for row in self.jobs.homeless:
            if self.jobs[row].queue_name in self.queues.index:
                affected[row] = self.jobs[row]
        moved = [affected[row] for row in sorted(affected)]
        self._book(moved, -1)
        adopt_tree(self.queues, tree)
        for job in moved:
            self.groups.attach(job)
            for task in job.tasks:
                self.pods.resolve(task, job)
        self._book(moved, 1)

    def _book(self, jobs: list[Job], sign: int) -> None:
        for job in jobs:
            for batch in by_class_and_status(self, job.tasks):
                self.accounts.book(batch, sign)

    def _reprioritise(self) -> None:
        """Priority classes changed: jobs and pods that name one get its value anew."""
        for job in self.jobs.live():
            job.priority = self.priority_value(job.priority_class, 0)
            self.jobs.changed.add(job.row)
        for task in self.tasks.index.values():
            pod = self.tasks.pods[task]
            if pod is not None:
                self.tasks.priority[task] = self.pods.priority_of(pod)

    def _in(self, status: Status) -> list[int]:
        return [int(task) for task in self.tasks.index.values() if self.tasks.status[task] == status]


def _same_for_placement(old: Node, new: Node) -> bool:
    """Heartbeats change nothing that a predicate or score could read."""
    return (
        old.metadata.labels == new.metadata.labels
        and old.metadata.annotations == new.metadata.annotations
        and old.spec == new.spec
        and old.status.allocatable == new.status.allocatable
        and old.status.images == new.status.images
    )


def key_of(item: Any) -> str:
    """Key of an object: namespace and name with a slash, or its name where the kind has no namespace."""
    if isinstance(item, PodGroup):  # first: a pydantic model takes long to say that it has no key
        return f"{item.metadata.namespace or 'default'}/{item.metadata.name}"
    key = getattr(item, "key", None)
    if isinstance(key, str):
        return key
    return str(item.metadata.name)
