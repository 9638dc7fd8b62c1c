"""Nobody goes needlessly: whoever can be given back while the claimant still starts is given back.

The dearest first. Where only amounts matter, sums tell at once that a unit is needed (its node would be
short and nothing else has room) or is not; otherwise the claimant's pods on its nodes are placed
again without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from volcano_py.scheduler.framework.contract import lost_text, requests_of
from volcano_py.scheduler.framework.decision import EvictionCause
from volcano_py.scheduler.framework.filling import place
from volcano_py.scheduler.framework.ladder import capacity
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.queues import Queue
from volcano_py.scheduler.model.resources import Ints, Rows32
from volcano_py.scheduler.model.tasks import Status

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.eviction.borrowed import Borrowed
    from volcano_py.scheduler.framework.session import Session

PLACED = (Status.ALLOCATED, Status.PIPELINED)


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """Tasks evicted in the claim's statement that come back together or not at all.

    Attributes:
        job: row of their job.
        cost: the dearer, the sooner it is given back.
        shared: taking it frees room under a limit of the claimant's queue or of an ancestor.
    """

    tasks: tuple[int, ...]
    job: int
    cause: EvictionCause
    cost: tuple[Any, ...]
    shared: bool


def placed_tasks(statement: Statement) -> list[int]:
    """Tasks that *statement* has placed, in the order they were."""
    status = statement.session.state.tasks.status
    tasks = (task for operation in statement.operations for task in operation.before.tasks.tolist())
    return [task for task in dict.fromkeys(tasks) if status[task] in PLACED]


def amounts_decide(session: Session, klass: TaskClass) -> bool:
    """Whether nothing but amounts stands between a pod of *klass* and a node it may use."""
    rules = session.placer.ladder(klass).rules
    return not (rules.local or rules.cluster) and klass.cards is None


class GiveBack:
    """Thins the victims of one claim."""

    def __init__(
        self, session: Session, statement: Statement, job: Job, queue: Queue, borrowed: Borrowed
    ) -> None:
        self.session, self.statement = session, statement
        self.job, self.queue, self.borrowed = job, queue, borrowed
        self._placed = placed_tasks(statement)
        self._spare: dict[int, set[int]] = {}
        self._simple: dict[int, bool] = {}

    def thin(self, victims: Iterable[Taken]) -> bool:
        """Give back every one of *victims* that is not needed; whether anybody was."""
        returned = False
        for taken in sorted(victims, key=lambda one: one.cost, reverse=True):
            if self._superfluous(taken):
                returned = True
                self._placed = placed_tasks(self.statement)
                self._spare.clear()
        return returned

    def _superfluous(self, taken: Taken) -> bool:
        """Give *taken* back if the claimant starts without it."""
        rows, free = self._free_without(taken)
        placed, on = self._placed, set(rows.tolist())
        if all(self._by_sums(klass) for klass in self._classes(placed)):
            fits = bool((free >= 0).all())
            if fits and not taken.shared:
                self._undo(taken)
                return True
            if not fits and not self._room_elsewhere(placed, on, free):
                return False
        return self._try_without(taken, self._to_move(placed, on))

    def _free_without(self, taken: Taken) -> tuple[Rows32, Ints]:
        """The n nodes of *taken*, and (n, R) what they have left with it back, beside what is promised.

        Columns of which *taken* holds nothing count as 0 where a node is overcommitted already.
        """
        state = self.session.state
        tasks = np.array(taken.tasks, np.int32)
        rows, where = np.unique(state.tasks.node[tasks], return_inverse=True)
        back = np.zeros((len(rows), state.vocabulary.width), np.int64)
        np.add.at(back, where, requests_of(state, tasks))
        nodes = state.nodes
        free = nodes.allocatable[rows] - nodes.used[rows] + nodes.releasing[rows] - nodes.pipelined[rows]
        return rows, np.where(back == 0, np.maximum(free, 0), free - back)

    def _room_elsewhere(self, placed: list[int], rows: set[int], free: Ints) -> bool:
        """Some pod of the claimant on *rows* (with *free* left) would find another place."""
        table = self.session.state.tasks
        classes = self._classes(task for task in placed if int(table.node[task]) in rows)
        return any(self._spare_rows(klass) - rows or capacity(free, klass.request).any() for klass in classes)

    def _spare_rows(self, klass: TaskClass) -> set[int]:
        known = self._spare.get(klass.row)
        if known is None:
            found = self.session.placer.future_rows(klass, anywhere=True)
            known = self._spare[klass.row] = set(found.tolist())
        return known

    def _classes(self, tasks: Iterable[int]) -> list[TaskClass]:
        state = self.session.state
        return [state.classes[row] for row in dict.fromkeys(int(state.tasks.klass[task]) for task in tasks)]

    def _by_sums(self, klass: TaskClass) -> bool:
        known = self._simple.get(klass.row)
        if known is None:
            known = self._simple[klass.row] = amounts_decide(self.session, klass)
        return known

    def _to_move(self, placed: list[int], rows: set[int]) -> list[int]:
        """What must be placed again without a unit on *rows*: pods there, and one of every class.

        The limits of the queue are the same for all pods of a class, so one of each tests them.
        """
        table = self.session.state.tasks
        moved = [task for task in placed if int(table.node[task]) in rows]
        seen = {int(table.klass[task]) for task in moved}
        for task in placed:
            if int(table.klass[task]) not in seen:
                seen.add(int(table.klass[task]))
                moved.append(task)
        return moved

    def _try_without(self, taken: Taken, moved: list[int]) -> bool:
        """Place *moved* again with *taken* back; if that fails everything is as before."""
        statement, mark = self.statement, self.statement.mark()
        for task in moved:
            statement.unplace(np.array([task], np.int32))
        self._undo(taken)
        mark -= len(taken.tasks)
        if not place(self.session, statement, self.job, self.queue, moved) and self._borrows_idle():
            return True
        statement.rollback(mark)
        for task in taken.tasks:
            statement.evict(task, replace(taken.cause, lost=lost_text(self.session, task)))
        return False

    def _borrows_idle(self) -> bool:
        """The claimant takes nothing from those who still go but what it may."""
        gone = (op.before.tasks for op in self.statement.operations if op.cause is not None)
        return self.borrowed.is_idle(placed_tasks(self.statement), (int(tasks[0]) for tasks in gone))

    def _undo(self, taken: Taken) -> None:
        for task in taken.tasks:
            self.statement.undo_eviction(task)
