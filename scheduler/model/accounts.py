"""The books: moving tasks between statuses and keeping node, card, job and queue amounts true.

Apart from a pod's event, which writes its row while it is out of the books (``pods``), this is the only
place that writes a task's ``status`` and ``node``. A move is its own undo: moving back restores every
amount exactly, since all of them are integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from volcano_py.scheduler.model.cards import CardChoice, CardTable
from volcano_py.scheduler.model.classes import ClassTable, TaskClass
from volcano_py.scheduler.model.jobs import Job, JobTable
from volcano_py.scheduler.model.nodes import NodeTable
from volcano_py.scheduler.model.queues import QueueTable
from volcano_py.scheduler.model.resources import Ints, Rows32, pad
from volcano_py.scheduler.model.tasks import ALLOCATED, HOLDS_NODE, NOWHERE, Status, TaskTable

_ALLOCATED: Final = tuple(bool(x) for x in ALLOCATED)
# Looking a member up on its enum costs as much as a small array operation; these are asked for every pod.
_STATUSES: Final = tuple(Status)
_PENDING, _PIPELINED, _BINDING, _RELEASING = (
    Status.PENDING,
    Status.PIPELINED,
    Status.BINDING,
    Status.RELEASING,
)


Choices = Sequence[CardChoice | None] | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Tasks of one job (or none), one class and one status.

    Attributes:
        tasks: (k,) task rows.
        nodes: (k,) node rows, ``NOWHERE`` where the status has none.
    """

    tasks: Rows32
    klass: TaskClass
    job: Job | None
    status: Status
    nodes: Rows32


class Observer(Protocol):
    """Someone who keeps further books (pods by selector, ports, volumes)."""

    def booked(self, batch: Batch, sign: int) -> None:
        """*batch* entered (sign 1) or left (-1) the accounts."""


class Accounts:
    """Every amount that follows from where tasks stand."""

    def __init__(
        self,
        tasks: TaskTable,
        nodes: NodeTable,
        cards: CardTable,
        classes: ClassTable,
        jobs: JobTable,
        queues: QueueTable,
    ) -> None:
        self.tasks, self.nodes, self.cards, self.classes = tasks, nodes, cards, classes
        self.jobs, self.queues = jobs, queues
        self.observers: list[Observer] = []

    def batch(self, tasks: Sequence[int] | Rows32) -> Batch:
        """*tasks* as one batch; they share job, class and status."""
        rows = np.asarray(tasks, np.int32)
        first = int(rows[0])
        job = int(self.tasks.job[first])
        return Batch(
            rows,
            self.classes[int(self.tasks.klass[first])],
            None if job == NOWHERE else self.jobs[job],
            _STATUSES[self.tasks.status[first]],
            self.tasks.node[rows],
        )

    def move(
        self,
        tasks: Sequence[int] | Rows32,
        status: Status,
        nodes: Rows32 | None,
        choices: Choices = None,
    ) -> tuple[Batch, Choices]:
        """Move *tasks* (one job, class and status) to *status* on *nodes* ((k,) or None: nowhere).

        Args:
            tasks: (k,) task rows.
            status: where they go.
            nodes: (k,) node rows; None takes them off their nodes.
            choices: (k,) cards of each task where the class asks for cards; None keeps what they
                hold, or drops it where *nodes* is None.

        Returns:
            The batch and its card choices as they stood before: what moves it back.
        """
        before = self.batch(tasks)
        held = self._choices(before)
        self.book(before, -1)
        where = np.full(len(before.tasks), NOWHERE, np.int32) if nodes is None else nodes
        self.tasks.status[before.tasks] = status
        self.tasks.node[before.tasks] = where
        if before.klass.cards is not None and (nodes is None or choices is not None):
            self._set_choices(before.tasks.tolist(), choices)
        self.book(Batch(before.tasks, before.klass, before.job, status, where), 1)
        return before, held

    def bind(self, tasks: Rows32) -> None:
        """Allocated *tasks* (one job) become ``BINDING``: no amount changes, only what they are called."""
        self._rename(
            tasks.tolist(), self.jobs[int(self.tasks.job[tasks[0]])], Status.ALLOCATED, Status.BINDING
        )

    def come_along(self, task: int, status: Status) -> None:
        """A task that stands on its node for good gets on to *status*, for good too, on the same node.

        Who is bound, and who runs, weighs the same: no amount changes, and no row of a ladder.
        """
        before = _STATUSES[self.tasks.status[task]]
        row = int(self.tasks.job[task])
        job = None if row == NOWHERE else self.jobs[row]
        self._rename([task], job, before, status)
        if job is not None:
            self.jobs.changed.add(job.row)

    def _rename(self, rows: list[int], job: Job | None, before: Status, status: Status) -> None:
        self.tasks.status[rows] = status
        if job is None:
            return
        for known, sign in ((before, -1), (status, 1)):
            job.counts[known] += sign * len(rows)
            self._book_roles(job, rows, known, sign)

    def start(self, job: Job, task: int, klass: TaskClass, sign: int) -> None:
        """Pending *task* of *job* is given a place still to be named (1), or not after all (-1).

        Job and queues are booked as for a bind, the node by ``arrive``. For pods that ask for something
        and for no cards.
        """
        queues, charge = self.queues, klass.charge * sign
        path = queues[job.queue].path
        self._count_start(job, task, sign)
        self.jobs.allocated[job.row] += charge
        _add(queues.pending, path, -charge)
        _add(queues.allocated, path, charge)
        if not self.tasks.interruptible[task]:
            _add(queues.firm, path, charge)
        queues.epoch += 1
        self.jobs.changed.add(job.row)

    def _count_start(self, job: Job, task: int, sign: int) -> None:
        job.standing += sign
        role = self.tasks.roles[task]
        for counts in (job.counts, job.role_counts[role]) if role else (job.counts,):
            counts[_PENDING] -= sign
            counts[_BINDING] += sign
        if sign < 0:
            job.pending.add(task)
            self.jobs.with_pending.add(job.row)
            return
        job.pending.remove(task)
        if not job.pending:
            self.jobs.with_pending.discard(job.row)

    def arrive(self, klass: TaskClass, tasks: Rows32, nodes: Rows32) -> None:
        """Book the nodes of started *tasks* (k,), of any jobs; they are ``BINDING`` from now on."""
        self.tasks.status[tasks] = _BINDING
        self.tasks.node[tasks] = nodes
        batch = Batch(tasks, klass, None, _BINDING, nodes)
        self._book_nodes(batch, 1)
        for observer in self.observers:
            observer.booked(batch, 1)

    def _choices(self, batch: Batch) -> Choices:
        if batch.klass.cards is None:
            return None
        return [self.tasks.slices.get(task) for task in batch.tasks.tolist()]

    def _set_choices(self, tasks: list[int], choices: Choices) -> None:
        for task, choice in zip(tasks, choices or [None] * len(tasks), strict=True):
            if choice is None:
                self.tasks.slices.pop(task, None)
            else:
                self.tasks.slices[task] = choice

    def book(self, batch: Batch, sign: int) -> None:
        """Add (1) or take away (-1) everything *batch* stands for."""
        if HOLDS_NODE[batch.status] or batch.status == _PIPELINED:
            self._book_nodes(batch, sign)
        if batch.job is not None:
            self._book_job(batch, batch.job, sign)
        for observer in self.observers:
            observer.booked(batch, sign)

    def _book_nodes(self, batch: Batch, sign: int) -> None:
        """Node amounts; ``used`` for whoever holds a node, ``pipelined`` for promises."""
        nodes = self.nodes
        rows: Rows32 | int
        times: Ints | int
        amount: Ints
        if len(batch.nodes) == 1:
            rows, times = int(batch.nodes[0]), sign
            amount = batch.klass.request if sign == 1 else -batch.klass.request
        else:
            rows, counts = np.unique(batch.nodes, return_counts=True)
            times = sign * counts
            amount = sign * counts[:, None] * batch.klass.request
        if batch.status == _PIPELINED:
            nodes.pipelined[rows] += amount
        else:
            nodes.used[rows] += amount
            cpu, memory = batch.klass.signature.nonzero
            nodes.nonzero_cpu[rows] += times * cpu
            nodes.nonzero_memory[rows] += times * memory
            if batch.status == _RELEASING:
                nodes.releasing[rows] += amount
        nodes.touch(rows)
        if batch.klass.cards is not None:
            self._book_cards(batch, sign)

    def _book_cards(self, batch: Batch, sign: int) -> None:
        for task, node in zip(batch.tasks.tolist(), batch.nodes.tolist(), strict=True):
            choice = self.tasks.slices.get(task)
            if choice is None:
                continue
            if batch.status == _PIPELINED:
                self.cards.book("promised", node, choice, sign)
                continue
            self.cards.book("used", node, choice, sign)
            if batch.status == _RELEASING:
                self.cards.book("leaving", node, choice, sign)

    def _book_job(self, batch: Batch, job: Job, sign: int) -> None:
        """Counts, pending sets and the charges of the job and its queues."""
        tasks = batch.tasks.tolist()
        status = batch.status
        count = sign * len(tasks)
        job.counts[status] += count
        if _ALLOCATED[status]:
            job.standing += count
        self._book_roles(job, tasks, status, sign)
        if status == _PENDING:
            self._book_pending(job, batch, tasks, sign)
        charge = self.charge_of(batch, sign)
        if _ALLOCATED[status]:
            self.jobs.allocated[job.row] += charge
        if job.queue >= 0:
            self._book_queue(batch, job, charge, sign)
        self.jobs.changed.add(job.row)

    def _book_roles(self, job: Job, tasks: list[int], status: Status, sign: int) -> None:
        roles = self.tasks.roles
        for task in tasks:
            role = roles[task]
            if role:
                counts = job.role_counts.get(role)
                if counts is None:
                    counts = job.role_counts[role] = [0] * len(job.counts)
                counts[status] += sign

    def _book_pending(self, job: Job, batch: Batch, tasks: list[int], sign: int) -> None:
        if sign > 0:
            job.pending.update(tasks)
            self.jobs.with_pending.add(job.row)
        else:
            job.pending.difference_update(tasks)
            if not job.pending:
                self.jobs.with_pending.discard(job.row)
        if sign > 0 or job.gated:
            job.gated += sign * int(np.count_nonzero(self.tasks.gated[batch.tasks]))
        if batch.klass.best_effort:
            job.pending_best_effort += sign * len(tasks)

    def _book_queue(self, batch: Batch, job: Job, charge: Ints, sign: int) -> None:
        queues = self.queues
        status = batch.status
        if status == _PENDING:
            columns = [queues.pending]
        elif HOLDS_NODE[status]:
            columns = [queues.allocated]
            if status == _RELEASING:
                columns.append(queues.releasing)
        elif status == _PIPELINED:
            columns = [queues.pipelined]
        else:
            return
        path = queues[job.queue].path
        for column in columns:
            _add(column, path, charge)
        if status not in (_PENDING, _RELEASING):
            firm = self._firm_charge(batch, charge, sign)
            if firm is not None:
                _add(queues.firm, path, firm)
        queues.epoch += 1

    def charge_of(self, batch: Batch, sign: int = 1) -> Ints:
        """(R,) what *batch* costs its queue and job, times *sign*; read only."""
        extra: list[Ints] = []
        if batch.klass.cards is not None:  # first, since a record may name resources that widen all vectors
            told = (self._card_charge(task, batch.klass) for task in batch.tasks.tolist())
            extra = [more for more in told if more is not None]
        times = sign * len(batch.tasks)
        total: Ints = batch.klass.charge if times == 1 else batch.klass.charge * times
        for more in extra:
            total = total + sign * pad(more, len(total))
        return total

    def charge_of_task(self, task: int) -> Ints:
        """(R,) what *task* costs its queue and job."""
        klass = self.classes[int(self.tasks.klass[task])]
        if klass.cards is None:
            return klass.charge
        extra = self._card_charge(task, klass)  # first, as above
        return klass.charge if extra is None else klass.charge + extra

    def charges_of(self, tasks: Rows32) -> Ints:
        """(T, R) what each of *tasks* (T,) costs its queue and job."""
        if len(tasks) == 0:
            return np.zeros((0, self.nodes.vocabulary.width), np.int64)
        classes, where = np.unique(self.tasks.klass[tasks], return_inverse=True)
        kinds = [self.classes[row] for row in classes.tolist()]
        charges: Ints = np.stack([kind.charge for kind in kinds])[where]
        for position, kind in enumerate(kinds):
            if kind.cards is not None:
                for at in np.flatnonzero(where == position).tolist():
                    charges[at] = self.charge_of_task(int(tasks[at]))
        return charges

    def _card_charge(self, task: int, klass: TaskClass) -> Ints | None:
        """How far the chosen cards' charge differs from the class's; None: not at all."""
        choice = self.tasks.slices.get(task)
        if choice is None or choice.charge is None:
            return None
        vocabulary = self.nodes.vocabulary
        return vocabulary.vector(dict(choice.charge)) - klass.charge

    def _firm_charge(self, batch: Batch, charge: Ints, sign: int) -> Ints | None:
        """The part of *charge* (already signed) of tasks that may not be interrupted."""
        if len(batch.tasks) == 1:
            return None if self.tasks.interruptible[batch.tasks[0]] else charge
        firm = ~self.tasks.interruptible[batch.tasks]
        count = int(np.count_nonzero(firm))
        if count == 0:
            return None
        if count == len(batch.tasks):
            return charge
        total = np.zeros_like(charge)
        for task in batch.tasks[firm].tolist():
            total = total + self.charge_of_task(task)
        return total * sign


def _add(column: Ints, path: tuple[int, ...], amount: Ints) -> None:
    """Add *amount* (R,) to every queue of *path*; paths are short: a loop beats an index array."""
    for row in path:
        column[row] += amount
