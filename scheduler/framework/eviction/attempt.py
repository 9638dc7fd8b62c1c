"""One claim in the making: members placed, room taken for the others, all of it kept or undone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from volcano_py.scheduler.framework.claim import Claim
from volcano_py.scheduler.framework.contract import RECLAIM, lost_text, may_take
from volcano_py.scheduler.framework.decision import EvictionCause, standing
from volcano_py.scheduler.framework.eviction.borrowed import Borrowed
from volcano_py.scheduler.framework.eviction.giveback import GiveBack, Taken
from volcano_py.scheduler.framework.eviction.search import Plan, Search
from volcano_py.scheduler.framework.eviction.victims import Unit, leaves_whole, still_agreed
from volcano_py.scheduler.framework.excess import of_the_gang
from volcano_py.scheduler.framework.filling import Run, place, runs
from volcano_py.scheduler.framework.points import first_refusal
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.framework.reservations import WAITS
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.queues import Queue
from volcano_py.scheduler.model.tasks import Status

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.eviction.desk import Desk

NEVER: Final = "Never"
"""``preemptionPolicy`` of pods that take nothing from others."""


class Attempt:
    """One claim in the making."""

    def __init__(self, desk: Desk, job: Job, *, own_job: bool) -> None:
        self.desk, self.session, self.job, self.own_job = desk, desk.session, job, own_job
        self.queue: Queue = desk.session.state.queues[job.queue]
        self.statement: Statement = desk.session.statement(desk.action)
        self._members: list[int] = []
        self._taken: list[Taken] = []
        self._borrowed = Borrowed(desk.session)

    def place(self, members: list[int]) -> list[int]:
        """Place *members*, taking room from others where needed; returns those that found none."""
        self._members = members
        left = place(self.session, self.statement, self.job, self.queue, members)
        unserved: list[int] = []
        for run in runs(self.session, left):
            unserved += self._make_room(run)
        return unserved

    def succeeded(self) -> bool:
        """Something was placed, and the gang is whole or will be."""
        session = self.session
        whole = session.job_ready(self.job) or session.job_pipelined(self.job)
        return whole and bool(self.statement.placed())

    def carry_out(self) -> None:
        """Give back whom the claimant does not need, then make it final."""
        thinner = GiveBack(self.session, self.statement, self.job, self.queue, self._borrowed)
        if thinner.thin(self._taken):
            self.desk.forget_searches()
        tasks = self.statement.placed()
        if not self.session.job_ready(self.job):
            self._promise_all(tasks)
        status, node = self.session.state.tasks.status, self.session.state.tasks.node
        for task in tasks:
            self.session.refusals.pop(task, None)
            if status[task] == Status.PIPELINED:
                name = self.session.state.nodes.names[int(node[task])]
                self.session.refuse([task], Refusal("Waiting", f"room on {name} is promised; {WAITS}"))
        self.statement.commit(standing(self.job), WAITS)
        self.desk.carried_out += 1

    def give_up(self) -> None:
        """Leave everything as it was."""
        self.statement.discard()
        if self._taken:
            self.desk.forget_searches()

    def _promise_all(self, tasks: list[int]) -> None:
        """Nothing of a gang that has to wait starts now, on idle room neither."""
        table = self.session.state.tasks
        for task in tasks:
            if table.status[task] == Status.ALLOCATED:
                rows, where = np.array([task], np.int32), table.node[task : task + 1].copy()
                choice = table.slices.get(task)
                self.statement.unplace(rows)
                self.statement.pipeline(rows, where, None if choice is None else [choice])

    def _make_room(self, run: Run) -> list[int]:
        """Take room for *run*; returns the tasks that found none, each with its refusal noted."""
        left = [task for task in run.tasks if self.desk.may_claim(task)]
        never = [task for task in run.tasks if not self.desk.may_claim(task)]
        self.desk.refuse(never, f"preemptionPolicy is {NEVER}")
        if not left:
            return never
        search = self._search(run, left)
        while left:
            rest = self._step(search, run, left)
            if rest is None:
                break
            left = rest
            search = self._search(run, left) if left else search
        if left and not self._is_beyond_help(run):
            self.desk.refuse(left, self._why(search, run, left))
        return never + left

    def _is_beyond_help(self, run: Run) -> bool:
        """No node would do if it were empty, and that was said: who could not go is beside the point."""
        if any(task not in self.session.refusals for task in run.tasks):
            return False
        rows = self.session.state.nodes.order
        return bool(self.session.placer.unresolvable(run.klass, rows).all())

    def _search(self, run: Run, tasks: list[int]) -> Search:
        claim = Claim(self.desk.action, self.job, self.queue, tasks[0], run.klass)
        allowed = may_take(self.session, claim, run.klass.charge * len(tasks), firm=run.firm)
        self._borrowed.note(run.klass, allowed)
        return self.desk.search(claim, allowed, firm=run.firm, own_job=self.own_job)

    def _step(self, search: Search, run: Run, left: list[int]) -> list[int] | None:
        """Serve some of *left*; returns the others, None if nothing more can be done."""
        session, klass = self.session, run.klass
        if self._room(run) < 1 and len(session.placer.future_rows(klass, anywhere=True)):
            if not self._free_limit(search, run):
                return None
            rest = self._place_beside(left)
            return rest if len(rest) < len(left) else None
        plan = search.next_plan()
        if plan is None:
            return None
        if not self._follow(search, plan, run, left[0]):
            return left
        search.again(plan.row)
        left = left[1:]
        if left and any(len(unit.tasks) > 1 for unit in plan.units):
            left = self._place_beside(left)
        return left

    def _place_beside(self, tasks: list[int]) -> list[int]:
        """Place *tasks* without further victims; returns those left, all if some took what is not idle."""
        mark = self.statement.mark()
        left = place(self.session, self.statement, self.job, self.queue, tasks)
        if not self._borrowed.is_idle((task for task in tasks if task not in left), self._gone()):
            self.statement.rollback(mark)
            return tasks
        return left

    def _gone(self) -> Iterator[int]:
        return (task for one in self._taken for task in one.tasks)

    def _follow(self, search: Search, plan: Plan, run: Run, task: int) -> bool:
        """Take the plan's victims and promise *task* its node; if it does not work out, undo."""
        stale = search.made_at != self.desk.carried_out
        if stale and not still_agreed(self.session, search.claim, plan.units):
            self.desk.forget_searches()
            return False
        mark, taken = self.statement.mark(), list(self._taken)
        if not (
            all(self._evict(search, unit) for unit in plan.units)
            and self._fits(search, plan.row, run)
            and (self._room(run) >= 1 or self._free_limit(search, run))
        ):
            self._undo(mark, taken)
            return False
        cards = self.session.placer.cards(run.klass, plan.row, future=True)
        self.statement.pipeline(np.array([task], np.int32), np.array([plan.row], np.int32), cards)
        if not self._borrowed.is_idle([task], self._gone()):
            self._undo(mark, taken)
            return False
        search.took(plan.row, plan.units)
        return True

    def _fits(self, search: Search, row: int, run: Run) -> bool:
        """The placer agrees with node *row*, if need be after further victims there."""
        where = np.array([row], np.int32)
        others = search.more(row)
        while not self.session.placer.fits_future(run.klass, where)[0]:
            unit = None if search.sums_suffice else next(others, None)
            if unit is None or not self._evict(search, unit):
                return False
        return True

    def _free_limit(self, search: Search, run: Run) -> bool:
        """Take victims until the queue's limits leave room for one more; whether they do."""
        mark, taken = self.statement.mark(), list(self._taken)
        if search.could_free_limit(firm=run.firm):
            for unit in search.anywhere():
                if not self._evict(search, unit):
                    break
                if self._room(run) >= 1:
                    return True
        self._undo(mark, taken)
        return False

    def _room(self, run: Run) -> int:
        return self.session.room(self.queue, run.klass, firm=run.firm, future=True).count

    def _evict(self, search: Search, unit: Unit) -> bool:
        """Take *unit*; whatever was taken of a gang that now goes whole comes back with it or not at all.

        Returns:
            False, with nothing done, if its gang has changed since the search was made.
        """
        tasks = [*unit.tasks, *(t for spare in unit.spares if search.stands(spare) for t in spare.tasks)]
        if not self.own_job and not leaves_whole(self.session, unit, len(tasks)):
            self.desk.forget_searches()
            return False
        cause = EvictionCause(self.job.key, self._rule(search, unit))
        cost, shared = search.cost_of(unit), search.shares_limit(unit)
        for task in tasks:
            self.statement.evict(task, replace(cause, lost=lost_text(self.session, task)))
        if unit.whole:
            tasks += [task for one in self._taken if one.job == unit.job for task in one.tasks]
            self._taken = [one for one in self._taken if one.job != unit.job]
        self._taken.append(Taken(tuple(tasks), unit.job, cause, cost, shared))
        return True

    def _undo(self, mark: int, taken: list[Taken]) -> None:
        self.statement.rollback(mark)
        self._taken = taken

    def _rule(self, search: Search, unit: Unit) -> str:
        """The rule that lets *unit* be evicted, in numbers."""
        state = self.session.state
        if self.desk.action == RECLAIM:
            return f"reclaim: {search.bounds.over_text(unit.queue)}; queue {self.queue.name} claims its own"
        if self.own_job:
            pair = f"{unit.level[1]} gives way to {int(state.tasks.priority[search.claim.task])}"
            return f"preempt: inside {self.job.key} pod priority {pair}"
        other = state.jobs[unit.job]
        mine, theirs = _called(self.job), _called(other)
        return f"preempt: {mine} goes before {theirs} in queue {self.queue.name}"

    def _why(self, search: Search, run: Run, left: list[int]) -> str:
        """Why *left* of *run* get no room."""
        if self.desk.action == RECLAIM:
            need = run.klass.charge * len(left)
            refusal = first_refusal(self.session.points.preemptive, self.queue, need, run.firm)
            if refusal is not None:
                return of_the_gang(refusal, self.statement, self._members).message
        kept_off = self.session.placer.kept_off(run.klass) if search.offer.units else {}
        away = ", ".join(f"{nodes} {text}" for text, nodes in kept_off.items())
        others = f"; pods on other nodes are not evicted, where they are why {away}" if away else ""
        return search.offer.refusal() + others


def _called(job: Job) -> str:
    """*job* with its priority, and whom it was made for: groups of plain pods are called by a UID."""
    made_for = f"{job.made_for}, " if job.made_for else ""
    return f"{job.key} ({made_for}priority {job.priority})"
