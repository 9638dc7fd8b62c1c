"""Queue objects into queue rows: amounts, parents, and what is wrong with the tree.

Who is wrong is marked and takes no jobs; everybody else goes on (decisions.md 8).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from volcano_py.crds.quantity import QuantityError, to_base
from volcano_py.crds.queue import Queue as QueueObject
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem
from volcano_py.scheduler.model.pods import book_tasks
from volcano_py.scheduler.model.queues import ROOT, Queue, QueueTable
from volcano_py.scheduler.model.resources import UNLIMITED
from volcano_py.scheduler.model.rows import put_at

if TYPE_CHECKING:
    from volcano_py.scheduler.model.cluster import ClusterState


class QueueIntake:
    """Applies queue events to the state."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self._read: dict[str, tuple[object, ...]] = {}
        imply_default_queue(state.queues)
        adopt_tree(state.queues, plan_tree(state.queues))

    def upsert(self, source: QueueObject) -> None:
        """Take in *source* as it is now; raises ``ObjectError`` on amounts beyond counting.

        What we and the controllers write of its holdings is no news, and comes after every cycle.
        """
        name, state = source.metadata.name, source.status.state if source.status else ""
        read = (source.metadata.uid, source.metadata.created, source.spec, state)
        if self._read.get(name) == read:
            return
        queue = put_queue(self.state.queues, source)
        self._read[name] = read
        self._relink(self._jobs_of(queue))

    def remove(self, name: str) -> None:
        """Queue *name* is gone; its jobs wait for a queue of that name."""
        queues = self.state.queues
        self._read.pop(name, None)
        queue = queues.named(name)
        if queue is None:
            return
        jobs = self._jobs_of(queue)
        self._book(jobs, -1)
        drop_queue(queues, queue)
        for job in jobs:
            job.queue = -1
        if name == queues.default:
            imply_default_queue(queues)
        self._book(jobs, 1)
        self._relink(jobs)

    def _relink(self, jobs: list[Job]) -> None:
        """Work out the tree again; *jobs*, and those whose queue came or moved, are booked anew."""
        state, queues = self.state, self.state.queues
        tree = plan_tree(queues)
        affected = {job.row: job for job in jobs}
        for queue in queues.live():
            if queue.path != tree[queue.row][0]:
                affected.update((row, state.jobs[row]) for row in queue.jobs)
        for row in state.jobs.homeless:
            if state.jobs[row].queue_name in queues.index:
                affected[row] = state.jobs[row]
        moved = [affected[row] for row in sorted(affected)]
        self._book(moved, -1)
        adopt_tree(queues, tree)
        for job in moved:
            state.groups.attach(job)
            for task in job.tasks:
                state.pods.resolve(task, job)
        self._book(moved, 1)

    def _jobs_of(self, queue: Queue) -> list[Job]:
        return [self.state.jobs[row] for row in sorted(queue.jobs)]

    def _book(self, jobs: list[Job], sign: int) -> None:
        for job in jobs:
            book_tasks(self.state, job.tasks, sign)


def put_queue(table: QueueTable, source: QueueObject) -> Queue:
    """Write *source* into its row, new or known; raises ``ObjectError`` on amounts beyond counting."""
    name = source.metadata.name
    spec = source.spec
    guarantee = _amounts(spec.guarantee_resources, "spec.guarantee.resource")
    capability = _amounts(spec.max_resources, "spec.capability")
    deserved = _amounts(spec.deserved or {}, "spec.deserved")
    if spec.lending_paused:  # held like a min; deserved is at least the min wherever both are stated
        guarantee = {**guarantee, **deserved}
    queue = table.named(name) or _new(table, name)
    queue.priority, queue.parent = spec.priority or 0, spec.parent or ""
    queue.reclaimable = spec.reclaimable is not False
    queue.interruptible = spec.interruptible
    queue.lend_min = bool(spec.lend_min) and not spec.lending_paused
    queue.min_run_s = spec.min_run_time_s
    queue.created = source.metadata.created
    queue.state = (source.status.state if source.status else "") or "Open"
    queue.open = queue.state == "Open"
    vocabulary = table.vocabulary
    table.weight[queue.row] = spec.weight
    for column, amounts, unset in (
        ("guarantee", guarantee, 0),
        ("capability", capability, UNLIMITED),
        ("deserved", deserved, -1),
    ):
        columns = {vocabulary.column(resource): amount for resource, amount in amounts.items()}
        array = getattr(table, column)  # after the columns: a new resource makes another array
        array[queue.row] = unset
        for index, amount in columns.items():
            array[queue.row, index] = amount
    table.epoch += 1
    return queue


def imply_default_queue(table: QueueTable) -> None:
    """Make the default queue, which is there even where no object defines it."""
    _new(table, table.default)


def drop_queue(table: QueueTable, queue: Queue) -> None:
    """Forget *queue*; its jobs wait for a queue of that name."""
    del table.index[queue.name]
    table.queues[queue.row] = None
    table.give_back(queue.row)
    table.epoch += 1


Tree = dict[int, tuple[tuple[int, ...], str]]
"""Queue row -> (rows from it outwards, what is wrong with it)."""


def plan_tree(table: QueueTable) -> Tree:
    """Paths and problems of every queue as its objects now say; nothing is changed."""
    return {queue.row: _path(table, queue) for queue in table.live()}


def adopt_tree(table: QueueTable, tree: Tree) -> None:
    """Make *tree* the one in force; jobs of queues whose path changes must be out of the books."""
    queues = table.live()
    for queue in queues:
        queue.children.clear()
    for queue in queues:
        queue.path, queue.spec_problem = tree[queue.row]
        if len(queue.path) > 1:
            table[queue.path[1]].children.append(queue.row)
    table.epoch += 1


def _new(table: QueueTable, name: str) -> Queue:
    row = table.take_row()
    queue = Queue(row, name, path=(row,))
    put_at(table.queues, row, queue)
    table.index[name] = row
    return queue


def _path(table: QueueTable, queue: Queue) -> tuple[tuple[int, ...], str]:
    """Rows from *queue* outwards and what is wrong; a wrong queue's path is itself only."""
    path = [queue.row]
    seen = [queue.name]
    here = queue
    while name := _parent(table, here):
        if name in seen:
            circle = " -> ".join([*seen[seen.index(name) :], name])
            return (queue.row,), f"queue {queue.name}: parents form a circle: {circle}"
        above = table.named(name)
        if above is None:
            if name == ROOT:
                break
            return (queue.row,), f"queue {queue.name}: parent queue {name} does not exist"
        path.append(above.row)
        seen.append(above.name)
        here = above
    return tuple(path), ""


def _parent(table: QueueTable, queue: Queue) -> str:
    """The parent *queue* names; one that names none stands under the root, where there is one."""
    if queue.parent or queue.name == ROOT or ROOT not in table.index:
        return queue.parent
    return ROOT


def _amounts(amounts: Mapping[str, str] | None, field: str) -> dict[str, int]:
    """Base units of *amounts*."""
    problems = []
    result = {}
    for resource, text in (amounts or {}).items():
        try:
            result[resource] = to_base(resource, text)
        except QuantityError as error:
            problems.append(Problem(f"{field}.{resource}", str(error)))
    if problems:
        raise ObjectError(*problems)
    return result
