"""enqueue: who is let through the gate.

Decides which waiting PodGroups become Inqueue (their pods may then exist and be placed). Queues take
turns in queue order, jobs in job order; a job that is refused does not stop those behind it. Room at
the gate is judged by the plugins (overcommit, proportion, capacity), booked only for who is admitted.
"""

from __future__ import annotations

from typing import ClassVar

from volcano_py.scheduler.framework.action import Action
from volcano_py.scheduler.framework.agenda import Agenda
from volcano_py.scheduler.framework.points import Vote
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import Job


class EnqueueAction(Action):
    """See the module."""

    name: ClassVar = "enqueue"

    def run(self, session: Session) -> None:
        """Admit what fits, in order."""
        jobs = session.state.jobs
        if not jobs.gate_waiting:
            return
        agenda = Agenda(session, _sound(session, [jobs[row] for row in sorted(jobs.gate_waiting)]))
        for _, job in agenda.turns():
            refusal = gate(session, job)
            if refusal is None:
                session.admit(job)
            else:
                session.job_refusals[job.row] = refusal


def _sound(session: Session, jobs: list[Job]) -> list[Job]:
    """Jobs of open, sound queues; the others are told why they wait."""
    sound = []
    for job in jobs:
        problem = session.queue_problem(job)
        if problem is None:
            sound.append(job)
        else:
            session.job_refusals[job.row] = problem
    return sound


def gate(session: Session, job: Job) -> Refusal | None:
    """Why *job* is not let in: the first rejection; a permit ends the asking after its tier."""
    if job.min_resources is None:
        return None
    for tier in session.points.job_enqueueable.tiers():
        permitted = False
        for entry in tier:
            answer = entry.call(job)
            if isinstance(answer, Refusal):
                return answer
            permitted |= answer == Vote.PERMIT
        if permitted:
            return None
    return None
