"""gang: a job starts with ``minMember`` of its pods or not at all.

Decides when a job is sound, whole, whole once promised room is free, and short enough to take room
from others. Wholeness of victims (surplus one by one, below the minimum the gang as one) is kept by the
choice of victims itself; this plugin agrees to all victims, or, with ``gang.wholeGangVictims: false``,
only to members above the minimum and protects the others.

Members without requests count when they are placed (decisions.md 11). Succeeded members keep their
seat in the run they belong to (14). A gang that ran and lost a member goes before those that never
started (15).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from volcano_py.crds.annotations import JOB_VERSION
from volcano_py.crds.arguments import Arguments
from volcano_py.scheduler.framework.claim import Claim
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.points import Vote
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.resources import Mask, Rows32
from volcano_py.scheduler.model.tasks import ALLOCATED, NOWHERE, Status

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session

WHOLE_GANG_VICTIMS: Final = "gang.wholeGangVictims"
AT_MINIMUM: Final = f"its gang is at its minimum ({WHOLE_GANG_VICTIMS}: false)"
_SUCCEEDED: Final = int(Status.SUCCEEDED)
_PIPELINED: Final = int(Status.PIPELINED)
_STANDING: Final = (Status.BINDING, Status.BOUND, Status.RUNNING)
_SHOWN: Final = 3


class Rank(IntEnum):
    """Order of jobs, first to last."""

    BROKEN = 0
    WAITING = 1
    WHOLE = 2


class GangPlugin(Plugin):
    """See the module."""

    name: ClassVar = "gang"
    ARGUMENTS: ClassVar = {
        WHOLE_GANG_VICTIMS: "a gang at its minimum may be evicted as a whole; default true, false: never",
    }

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.whole_gang_victims = arguments.get_bool(WHOLE_GANG_VICTIMS, True)
        self._earlier: dict[int, Counter[str]] = {}

    def open(self, session: Session) -> None:
        """Hang everything about wholeness."""
        self._session, self._state = session, session.state
        self._earlier.clear()
        points = session.points
        points.job_valid.add(self.name, self.invalid)
        points.job_ready.add(self.name, self.is_whole)
        points.job_pipelined.add(self.name, self.will_be_whole)
        points.job_starving.add(self.name, self.is_starving)
        points.job_unready.add(self.name, self.gang_refusal)
        points.job_order.add(self.name, self.rank)
        points.preemptable.add(self.name, self.agrees)
        points.reclaimable.add(self.name, self.agrees)
        if not self.whole_gang_victims:
            points.protects.add(self.name, self.needed)

    def invalid(self, job: Job) -> Refusal | None:
        """Why *job* can't be whole whatever room there is: too few pods, or too few of a role."""
        pods = self._valid(job, None)
        if pods < job.min_member:
            return Refusal("NotEnoughTasks", f"the gang needs {job.min_member} pods and has {pods}")
        if job.roles_enforced:
            for role, least in sorted(job.min_task_member.items()):
                pods = self._valid(job, role)
                if pods < least:
                    message = f"the gang needs {least} pods of role {role!r} and has {pods}"
                    return Refusal("NotEnoughPodsOfTask", message)
        return None

    def is_whole(self, job: Job) -> bool:
        """Enough members are placed."""
        return self._reaches(job, waiting=False)

    def will_be_whole(self, job: Job) -> Vote:
        """Enough members are placed or promised room."""
        return Vote.PERMIT if self._reaches(job, waiting=True) else Vote.REJECT

    def is_starving(self, job: Job) -> bool:
        """Too few members are placed or promised room."""
        return not self._reaches(job, waiting=True)

    def rank(self, job: Job) -> Rank:
        """Gangs that ran and are below their minimum, then those that wait, then whole ones."""
        if self.is_whole(job):
            return Rank.WHOLE
        stands = job.started or any(job.counts[status] for status in _STANDING)
        return Rank.BROKEN if stands else Rank.WAITING

    def gang_refusal(self, job: Job, refusals: Mapping[int, Refusal]) -> Refusal | None:
        """Why the gang *job* waits as a whole: how many members lack a place, and what stops them.

        Args:
            job: a job below its minimum.
            refusals: its pending tasks -> why each found no place.
        """
        if self.is_whole(job) or not refusals:
            return None
        counts = Counter(refusal.message for refusal in refusals.values())
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        shown = "; ".join(f"{count} x {message}" for message, count in ordered[:_SHOWN])
        more = f"; and {len(ordered) - _SHOWN} other reasons" if len(ordered) > _SHOWN else ""
        first = next(r for r in refusals.values() if r.message == ordered[0][0])
        ready = self._seats(job, None, waiting=False)
        message = (
            f"{len(job.tasks) - ready}/{len(job.tasks)} tasks in gang unschedulable: the gang needs "
            f"{job.min_member} and has {ready}{self._fitted(job)} {shown}{more}"
        )
        return Refusal("GangIncomplete", message, first.nodes, first.failed, first.missing, first.nearest)

    def _fitted(self, job: Job) -> str:
        """How far the gang came before it was given up; what its other members were told is beside those."""
        fitted = self._session.fitted.get(job.row, 0)
        return f", {fitted} more would fit now; beside those:" if fitted else ";"

    def agrees(self, claim: Claim, victims: Rows32) -> Mask:
        """(V,) who may go: all, or those their gang can spare if taken in this order."""
        del claim
        if self.whole_gang_victims:
            return np.ones(len(victims), np.bool_)
        return self.spare(victims)

    def needed(self, claim: Claim, victims: Rows32) -> tuple[Mask, str]:
        """(V,) True where the gang would fall below its minimum, taking *victims* in this order."""
        del claim
        return ~self.spare(victims), AT_MINIMUM

    def spare(self, victims: Rows32) -> Mask:
        """(V,) whose gang stays at its minimum when they go, one after another."""
        tasks, jobs = self._state.tasks, self._state.jobs
        left: dict[int, int] = {}
        spare = np.ones(len(victims), np.bool_)
        for position, (task, row) in enumerate(
            zip(victims.tolist(), tasks.job[victims].tolist(), strict=True)
        ):
            if row == NOWHERE or not ALLOCATED[tasks.status[task]]:
                continue
            job = jobs[row]
            surplus = left.setdefault(row, job.ready() - job.min_member)
            spare[position] = surplus > 0
            left[row] = surplus - 1
        return spare

    def _reaches(self, job: Job, *, waiting: bool) -> bool:
        """The minimum, and every role's where they hold, is met by placed (and *waiting*) members."""
        counts = job.counts
        if not counts[_SUCCEEDED] and not job.min_task_member:  # most jobs, asked several times a turn
            return job.standing + (counts[_PIPELINED] if waiting else 0) >= job.min_member
        if self._seats(job, None, waiting=waiting) < job.min_member:
            return False
        return not job.roles_enforced or all(
            self._seats(job, role, waiting=waiting) >= least for role, least in job.min_task_member.items()
        )

    def _seats(self, job: Job, role: str | None, *, waiting: bool) -> int:
        """Members that hold a place in this run (or, *waiting*, are promised one)."""
        seats = job.ready(role) + (job.waiting(role) if waiting else 0)
        if job.counts[Status.SUCCEEDED]:
            earlier = self._of_earlier_runs(job)
            seats -= earlier.total() if role is None else earlier[role]
        return seats

    def _valid(self, job: Job, role: str | None) -> int:
        """Members that are, have been, or could be placed."""
        return self._seats(job, role, waiting=True) + job.count(Status.PENDING, role)

    def _of_earlier_runs(self, job: Job) -> Counter[str]:
        """Succeeded members by role that belong to a run before the newest one (same all cycle)."""
        known = self._earlier.get(job.row)
        if known is None:
            tasks = self._state.tasks
            versions = {task: self._version(task) for task in job.tasks}
            newest = max(versions.values())
            known = self._earlier[job.row] = Counter(
                tasks.roles[task]
                for task, version in versions.items()
                if version < newest and tasks.status[task] == Status.SUCCEEDED
            )
        return known

    def _version(self, task: int) -> int:
        pod = self._state.tasks.pods[task]
        text = "" if pod is None else pod.metadata.annotations.get(JOB_VERSION, "")
        return int(text) if text.isascii() and text.isdigit() else 0
