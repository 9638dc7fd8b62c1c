"""End of a cycle: PodGroup phases, counts and conditions of the jobs that changed.

Phase rules are Volcano's (spec section 3) with decisions.md 14 and 16: a group with a member still
waiting is not Completed, whoever said so; a completed one stays Completed when its pods are collected; and
one whose pods are only on their way out keeps its phase. Jobs nobody touched and nobody refused are not
looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from volcano_py.scheduler.framework.points import first_refusal
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.model.groups import COMPLETED, INQUEUE, PENDING, RUNNING, UNKNOWN
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.tasks import SCHEDULED, Status

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session

UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULED_CONDITION: Final = "Scheduled"


@dataclass(frozen=True, slots=True)
class GroupCondition:
    """One condition of a PodGroup; the writer adds transition id and time."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """What a PodGroup's status should say."""

    phase: str
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: tuple[GroupCondition, ...] = ()


def close_jobs(session: Session) -> dict[str, GroupStatus]:
    """Statuses of the groups that differ from what was last said.

    A job that nobody touched and whose tasks are all told what they were told before waits as before.
    """
    state = session.state
    touched = set(state.jobs.changed)
    state.jobs.changed.clear()  # whose phase changes below is looked at again in the next cycle
    rows = touched.union(session.job_refusals)
    rows.update(int(state.tasks.job[task]) for task in session.refusals)
    rows.discard(-1)
    changed = {}
    for job in sorted((state.jobs[row] for row in rows), key=lambda job: job.key):
        if job.group is None:
            continue
        told = None if job.row in session.job_refusals else _one_refusal(session, job)
        if told is not None and job.row not in touched and job.told is not None and job.told[0] is told:
            session.job_refusals[job.row] = job.told[1]
            continue
        status = _status(session, job)
        whole = session.job_refusals.get(job.row)
        job.told = None if told is None or whole is None else (told, whole)
        if status.phase != job.phase:
            state.set_phase(job, status.phase)
        job.started = job.started or status.phase in (RUNNING, UNKNOWN)
        if status != job.said:
            job.said = status
            changed[job.key] = status
    return changed


def _one_refusal(session: Session, job: Job) -> Refusal | None:
    """What all pending tasks of *job* were told, if it is the very same thing."""
    only: Refusal | None = None
    for task in job.pending:
        refusal = session.refusals.get(task)
        if refusal is None or (only is not None and refusal is not only):
            return None
        only = refusal
    return only


def _status(session: Session, job: Job) -> GroupStatus:
    refusal = _refusal(session, job)
    return GroupStatus(
        _phase(session, job, refused=refusal is not None),
        job.count(Status.RUNNING),
        job.count(Status.SUCCEEDED),
        job.count(Status.FAILED),
        () if refusal is None and not _runs(job) else (_condition(refusal),),
    )


def _phase(session: Session, job: Job, *, refused: bool) -> str:
    """The phase by its pods; who waits at the gate or behind it stays there."""
    if job.phase == COMPLETED and _is_over(job):
        return COMPLETED
    scheduled = sum(job.counts[s] for s in SCHEDULED) + job.count(Status.RELEASING)
    if (scheduled and scheduled >= job.min_member) or (not job.tasks and job.min_member == 0):
        return _running_or_completed(job)
    if job.count(Status.RUNNING) and refused:
        return UNKNOWN
    if job.phase == INQUEUE or (not job.tasks and job.phase == PENDING):
        return job.phase
    if job.phase in (PENDING, UNKNOWN):
        return job.phase
    return PENDING if job.phase == COMPLETED else _fallen_behind(session, job)


def _is_over(job: Job) -> bool:
    """All its pods have finished, are gone, or about to go."""
    ended = (Status.SUCCEEDED, Status.FAILED, Status.RELEASING)
    return sum(map(job.count, ended)) == len(job.tasks)


def _fallen_behind(session: Session, job: Job) -> str:
    """A group that ran and is below its minimum now has to pass the gate again."""
    return PENDING if "enqueue" in session.config.actions else job.phase


def _running_or_completed(job: Job) -> str:
    finished = job.count(Status.SUCCEEDED) + job.count(Status.FAILED)
    return COMPLETED if finished and finished == len(job.tasks) else RUNNING


def _runs(job: Job) -> bool:
    return job.ready() >= max(job.min_member, 1)


def _refusal(session: Session, job: Job) -> Refusal | None:
    """Why *job* as a whole waits, if it does; what a plugin says of it is noted for ``job_refusals``."""
    if _runs(job) and not job.pending:
        return None
    whole = session.job_refusals.get(job.row)
    if whole is not None:
        return whole
    if _runs(job):
        return None
    refusals = session.refusals
    mine = {task: refusals[task] for task in sorted(job.pending) if task in refusals}
    if not mine:
        return None
    refusal = first_refusal(session.points.job_unready, job, mine)
    if refusal is None:
        return next(iter(mine.values()))
    session.job_refusals[job.row] = refusal
    return refusal


def _condition(refusal: Refusal | None) -> GroupCondition:
    if refusal is None:
        return GroupCondition(SCHEDULED_CONDITION, "True", "tasks in gang are ready to be scheduled", "")
    return GroupCondition(UNSCHEDULABLE, "True", "NotEnoughResources", refusal.message)
