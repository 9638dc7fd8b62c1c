"""allocate: who starts on what is idle.

Who was promised room in an earlier cycle goes first. Then queues take turns in queue order, jobs in job
order. A gang is placed whole or not at all; once it is whole, further members come one a turn, so that
others have theirs in between. A gang that would be whole with room that is being released keeps that
reservation (``session.held``); nothing of it starts.

Evictions are left to preempt and reclaim, pods without requests of whole gangs to backfill.
"""

from __future__ import annotations

from itertools import chain
from typing import ClassVar

from volcano_py.scheduler.framework.action import Action
from volcano_py.scheduler.framework.agenda import Agenda
from volcano_py.scheduler.framework.decision import standing
from volcano_py.scheduler.framework.filling import Worksheet, place, take_members, worksheet
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.singles import Singles
from volcano_py.scheduler.framework.stalemate import Stalemate
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.queues import Queue


class AllocateAction(Action):
    """See the module."""

    name: ClassVar = "allocate"

    def run(self, session: Session) -> None:
        """Place what fits, in order."""
        waiting = candidates(session)
        if not waiting:
            return
        sheets: dict[int, Worksheet] = {}
        agenda = Agenda(session, self._promised_first(session, waiting, sheets))
        singles = Singles(session, self.name)
        stalemate = Stalemate(session)
        for queue, job in agenda.turns(for_room=True):
            sheet = sheets.get(job.row)
            if sheet is None:
                session.reservations.release(job)
                sheet = sheets[job.row] = worksheet(session, job)
            if singles.turn(job, queue, sheet):
                more = bool(sheet.waiting)
            else:
                more = attempt(session, job, queue, sheet, self.name)
            if more:
                agenda.push(job)
            elif stalemate.reached(job, agenda.left()):
                stalemate.refuse(agenda.left())
                return
        singles.finish()

    def _promised_first(self, session: Session, jobs: list[Job], sheets: dict[int, Worksheet]) -> list[Job]:
        """Place what was promised room before others change what it was promised for.

        By name, in waves; whom another one of them has to be there for is tried again after it.

        Returns:
            Those of *jobs* that have something to place after that.
        """
        promised = session.reservations.jobs()
        left = [job for job in jobs if job.row not in promised]
        waves = session.reservations.waves(session, (job for job in jobs if job.row in promised))
        for job in chain.from_iterable(waves[1:]):
            session.reservations.release(job)
        for number, wave in enumerate(waves):
            for job in wave if number else ():
                session.reservations.restore(session, job)
            self._keep_promises(session, wave, sheets, left)
        return left

    def _keep_promises(
        self, session: Session, first: list[Job], sheets: dict[int, Worksheet], left: list[Job]
    ) -> None:
        while first:
            stuck = [job for job in first if not self._keep_promise(session, job, sheets, left)]
            if len(stuck) == len(first):
                break
            first = stuck

    def _keep_promise(
        self, session: Session, job: Job, sheets: dict[int, Worksheet], left: list[Job]
    ) -> bool:
        """Whether *job* starts or still waits for its room; in *left* if it has more to place."""
        queue = session.state.queues[job.queue]
        if session.overused(queue) is not None:
            left.append(job)
            return True
        session.reservations.release(job)
        sheet = sheets[job.row] = worksheet(session, job)
        if attempt(session, job, queue, sheet, self.name):
            left.append(job)
        return session.job_ready(job) or (job.waiting() > 0 and job.row not in session.reservations.jobs())


def candidates(session: Session) -> list[Job]:
    """Jobs with tasks to place; those that can't be looked at are told why they wait."""
    state = session.state
    ready = []
    for row in sorted(state.jobs.with_pending | session.reservations.jobs()):
        job = state.jobs[row]
        problem = session.job_problem(job)
        if problem is not None:
            session.job_refusals[row] = problem
        elif not session.waits_at_gate(job):
            ready.append(job)
    return ready


def attempt(session: Session, job: Job, queue: Queue, sheet: Worksheet, action: str) -> bool:
    """Place the next members of *job*: all that the gang lacks, or one more of a whole gang.

    Returns:
        Whether the job has more to place in this cycle.
    """
    statement = session.statement(action)
    placed = 0
    while members := take_members(session, job, sheet):
        left = place(session, statement, job, queue, members)
        sheet.fail(session, left)
        placed += len(members) - len(left)
        if placed and session.job_ready(job):
            statement.commit(standing(job))
            return sheet.has_more(session)
    if placed and session.job_pipelined(job):
        session.held.append(statement)
    else:
        statement.discard()
        session.fitted[job.row] = placed
        session.reservations.restore(session, job)
    return False
