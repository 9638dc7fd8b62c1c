"""Nobody goes needlessly: whoever can be given back while the claimant still starts is given back.

The dearest first. Where only amounts matter, sums tell at once that a unit is needed (its node would be
short and nothing else has room) or is not; otherwise the claimant's gang is filled again without it: first
only its pods on the unit's nodes are placed anew, they or others in their stead, then, in a gang of several
classes, all of them. So with any victim back the claimant would not start as ``allocate`` starts jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from volcano_py.scheduler.framework.contract import lost_text, requests_of
from volcano_py.scheduler.framework.decision import EvictionCause
from volcano_py.scheduler.framework.filling import fill_gang
from volcano_py.scheduler.framework.ladder import capacity
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.queues import Queue
from volcano_py.scheduler.model.resources import Ints, Rows32

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.eviction.borrowed import Borrowed
    from volcano_py.scheduler.framework.session import Session


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
        self._placed = statement.placed()
        # Who is placed, and who could be in their stead: the same whoever is given back.
        self._members = np.array(self._placed + session.open_gates(job.pending), np.int32)
        self._kinds = self._classes(self._members.tolist())
        self._sums_tell = all(amounts_decide(session, klass) for klass in self._kinds)
        self._spare: dict[int, set[int]] = {}
        self._room: tuple[Ints, Ints] | None = None

    def thin(self, victims: Iterable[Taken]) -> bool:
        """Give back every one of *victims* that is not needed; whether anybody was."""
        returned = False
        for taken in sorted(victims, key=lambda one: one.cost, reverse=True):
            if self._superfluous(taken):
                returned = True
                self._placed = self.statement.placed()
                self._spare.clear()
                self._room = None
        return returned

    def _superfluous(self, taken: Taken) -> bool:
        """Give *taken* back if the claimant starts without it."""
        rows, free = self._free_without(taken)
        on = set(rows.tolist())
        if self._sums_tell:
            fits = bool((free >= 0).all())
            if fits and not taken.shared:
                self._undo(taken)
                return True
            if not fits and not self._could_fit(on, free, taken):
                return False
        if self._try_without(taken, self._to_move(on)):
            return True
        return self._sums_tell and len(self._kinds) > 1 and self._try_without(taken, self._placed)

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

    def _could_fit(self, rows: set[int], free: Ints, taken: Taken) -> bool:
        """Whether sums leave the claimant room without *taken*, whose nodes *rows* would have *free* left."""
        if len(self._kinds) == 1:
            klass = self._kinds[0]
            return bool(self._spare_rows(klass) - rows or capacity(free, klass.request).any())
        room, least = self._sums()
        table, state = self.session.state.tasks, self.session.state
        mine = {int(table.node[task]) for task in self._placed}
        back = [task for task in taken.tasks if int(table.node[task]) in mine]
        left = room - requests_of(state, np.array(back, np.int32)).sum(axis=0)
        return bool((left >= least)[least > 0].all())

    def _sums(self) -> tuple[Ints, Ints]:
        """(R,) all room there is for members wherever they go, victims gone; (R,) the least that they need.

        On nodes without members only what a whole member has room for counts.
        """
        if self._room is None:
            state = self.session.state
            nodes, node = state.nodes, state.tasks.node
            free = np.maximum(nodes.allocatable - nodes.used + nodes.releasing - nodes.pipelined, 0)
            placed = np.array(self._placed, np.int32)
            usable = np.zeros(free.shape, np.bool_)
            usable[node[placed]] = True
            for klass in self._kinds:
                spare = np.array(sorted(self._spare_rows(klass)), np.int32)
                usable[spare] |= klass.request > 0
            asked = np.sort(requests_of(state, self._members), axis=0)
            room = np.where(usable, free, 0).sum(axis=0) + requests_of(state, placed).sum(axis=0)
            self._room = room, asked[: len(placed)].sum(axis=0)
        return self._room

    def _spare_rows(self, klass: TaskClass) -> set[int]:
        known = self._spare.get(klass.row)
        if known is None:
            found = self.session.placer.future_rows(klass, anywhere=True)
            known = self._spare[klass.row] = set(found.tolist())
        return known

    def _classes(self, tasks: Iterable[int]) -> list[TaskClass]:
        state = self.session.state
        return [state.classes[row] for row in dict.fromkeys(int(state.tasks.klass[task]) for task in tasks)]

    def _to_move(self, rows: set[int]) -> list[int]:
        """What must be placed again without a unit on *rows*: pods there, and one of every class.

        The limits of the queue are the same for all pods of a class, so one of each tests them.
        """
        table, placed = self.session.state.tasks, self._placed
        moved = [task for task in placed if int(table.node[task]) in rows]
        seen = {int(table.klass[task]) for task in moved}
        for task in placed:
            if int(table.klass[task]) not in seen:
                seen.add(int(table.klass[task]))
                moved.append(task)
        return moved

    def _try_without(self, taken: Taken, moved: list[int]) -> bool:
        """Fill the gang without *moved* and with *taken* back; if that fails everything is as before."""
        statement, mark = self.statement, self.statement.mark()
        refusals = self.session.refusals
        told = {task: refusals[task] for task in self.job.pending if task in refusals}
        for task in moved:
            statement.unplace(np.array([task], np.int32))
        self._undo(taken)
        mark -= len(taken.tasks)
        if fill_gang(self.session, statement, self.job, self.queue) and self._borrows_idle():
            return True
        statement.rollback(mark)
        refusals.update(told)
        for task in taken.tasks:
            statement.evict(task, replace(taken.cause, lost=lost_text(self.session, task)))
        return False

    def _borrows_idle(self) -> bool:
        """The claimant takes nothing from those who still go but what it may."""
        gone = (op.before.tasks for op in self.statement.operations if op.cause is not None)
        return self.borrowed.is_idle(self.statement.placed(), (int(tasks[0]) for tasks in gone))

    def _undo(self, taken: Taken) -> None:
        for task in taken.tasks:
            self.statement.undo_eviction(task)
