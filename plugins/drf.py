"""drf: the job with the smaller dominant share goes first.

A job's share is the largest part it holds of any resource of the cluster. Orders jobs inside their
queue; as a vote on victims it lets a job push out another only while the other stays at least as large
as the newcomer becomes. Shares of queues are not looked at here (``proportion``, ``capacity``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from volcano_py.scheduler.framework.claim import Claim
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.resources import Ints, Mask, Rows32, Scores
from volcano_py.scheduler.model.tasks import NOWHERE

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session

EQUAL: Final = 1e-6
"""Shares closer than this count as equal (Volcano's ``shareDelta``)."""


class DrfPlugin(Plugin):
    """See the module."""

    name: ClassVar = "drf"
    UNAVAILABLE: ClassVar = {
        "enableHierarchy": "hierarchical drf is not available; plugin capacity has a tree of queues",
    }

    def open(self, session: Session) -> None:
        """Hang order and vote."""
        self._state = session.state
        total = session.state.total()
        self._parts: Scores = np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0)
        session.points.job_order.add(self.name, self.share)
        session.points.preemptable.add(self.name, self.larger)

    def share(self, job: Job) -> float:
        """The dominant share of *job*: the largest part of the cluster that it holds."""
        return self.share_of(self._state.jobs.allocated[job.row]) if job.allocated() else 0.0

    def share_of(self, amounts: Ints) -> float:
        """The largest part of the cluster in *amounts* (R,)."""
        return float((amounts * self._parts).max())

    def larger(self, claim: Claim, victims: Rows32) -> Mask:
        """(V,) whose job, without them, would still hold as much as the claimant with one more task.

        Victims of one job are taken in this order, each counted against the next.
        """
        state = self._state
        mine = self.share_of(state.jobs.allocated[claim.job.row] + claim.klass.charge)
        left: dict[int, Ints] = {}
        larger = np.zeros(len(victims), np.bool_)
        for position, (task, job) in enumerate(
            zip(victims.tolist(), state.tasks.job[victims].tolist(), strict=True)
        ):
            if job == NOWHERE:
                continue
            rest = left.get(job, state.jobs.allocated[job]) - state.accounts.charge_of_task(task)
            left[job] = rest
            theirs = self.share_of(rest)
            larger[position] = mine < theirs or abs(mine - theirs) <= EQUAL
        return larger
