"""Turns of one pod each, taken by thousands of jobs: booked on their nodes together.

A turn of a whole gang, or of a job of one pod, places one pod and cannot have to be taken back: the job is
whole before or with it. So it needs no statement. While turn follows turn with pods of one class, job and
queue are booked at once (orders and limits read those), the ladder climbs, and the nodes are booked when
the run ends: at the first turn that is anything else. The decisions are those of one statement a turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from volcano_py.scheduler.framework.decision import bind
from volcano_py.scheduler.framework.filling import Worksheet
from volcano_py.scheduler.framework.ladder import Ladder
from volcano_py.scheduler.framework.points import first_refusal
from volcano_py.scheduler.framework.session import Session, as_rows
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.queues import Queue


@dataclass(slots=True)
class _Run:
    """Pods placed since the nodes were last booked.

    Attributes:
        queue, room: whose limits were asked last, and how many more pods they let in.
        tasks, positions, reasons: of every pod, its place in the ladder and why it starts.
    """

    klass: TaskClass
    firm: bool
    ladder: Ladder
    queue: int = -1
    room: int = 0
    tasks: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


class Singles:
    """The runs of one action."""

    def __init__(self, session: Session, action: str) -> None:
        self._session, self._action = session, action
        self._run: _Run | None = None
        # Who is told of every batch, or picks nodes by himself, is served one statement at a time.
        self._usable = not (session.points.booked or session.points.best_node)

    def turn(self, job: Job, queue: Queue, sheet: Worksheet) -> bool:
        """Place the next pod of *job*.

        Returns:
            False if this turn is more than that, or the pod finds no place: nothing is done then but
            that all books are complete.
        """
        task = self._next(job, sheet)
        if task is not None and self._place(job, queue, task):
            sheet.waiting.popleft()
            return True
        self.finish()
        return False

    def finish(self) -> None:
        """End the run: book its nodes and hand over its decisions."""
        run, self._run = self._run, None
        if run is None or not run.tasks:
            return
        session, state = self._session, self._session.state
        state.accounts.arrive(run.klass, as_rows(run.tasks), run.ladder.order[np.array(run.positions)])
        run.ladder.applied(state, run.positions)
        pairs = zip(run.tasks, run.reasons, strict=True)
        session.decided([bind(state, task, self._action, reason) for task, reason in pairs])

    def _next(self, job: Job, sheet: Worksheet) -> int | None:
        """The pod this turn is about, if it is about one pod that has no history in this cycle."""
        if not self._usable or not sheet.waiting or sheet.failed or sheet.again:
            return None
        if job.ready() + 1 < job.min_member:
            return None
        task, tasks = sheet.waiting[0], self._session.state.tasks
        return None if task in tasks.nominated or tasks.best_effort[task] else task

    def _place(self, job: Job, queue: Queue, task: int) -> bool:
        session, state = self._session, self._session.state
        run = self._run_of(task)
        if run is None or first_refusal(session.points.pre_predicate, run.klass, job) is not None:
            return False
        if run.queue != queue.row:
            run.queue, run.room = queue.row, session.room(queue, run.klass, firm=run.firm).count
        if run.room < 1 or run.ladder.is_full:
            return False
        state.accounts.start(job, task, run.klass, 1)
        if not session.job_ready(job):
            state.accounts.start(job, task, run.klass, -1)
            return False
        run.room -= 1
        run.tasks.append(task)
        run.positions += run.ladder.take(state, 1)
        run.reasons.append(f"fits; {job.ready()} of {job.min_member} members stand")
        return True

    def _run_of(self, task: int) -> _Run | None:
        """The run that *task* goes on with, or a new one; None if its class is placed pod by pod."""
        tasks, run = self._session.state.tasks, self._run
        klass, firm = int(tasks.klass[task]), not tasks.interruptible[task]
        if run is not None and run.klass.row == klass and run.firm == firm:
            return run
        self.finish()
        kind = self._session.state.classes[klass]
        ladder = self._session.placer.climbable(kind)
        if ladder is not None:
            self._run = _Run(kind, firm, ladder)
        return self._run
