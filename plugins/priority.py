"""priority: more important jobs and tasks first.

Decides order inside queues (boosted jobs first) and jobs, and who may push out whom inside a queue: a
strictly lower job priority, or inside one job a strictly lower task priority. Has no say across queues
(reclaim): there shares decide. Neighbours: ``gang`` (wholeness), ``conformance`` (critical pods).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from volcano_py.scheduler.framework.claim import Claim
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.resources import Ints, Mask, Rows32
from volcano_py.scheduler.model.tasks import NOWHERE

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session


class PriorityPlugin(Plugin):
    """See the module."""

    name: ClassVar = "priority"

    def open(self, session: Session) -> None:
        """Hang orders and the vote on victims."""
        self._state = session.state
        points = session.points
        points.job_order.add(self.name, job_rank)
        points.task_order.add(self.name, self.task_rank)
        points.preemptable.add(self.name, self.less_important)
        points.job_starving.add(self.name, wants_more)

    def task_rank(self, task: int) -> int:
        """Higher priority first."""
        return -int(self._state.tasks.priority[task])

    def less_important(self, claim: Claim, victims: Rows32) -> Mask:
        """(V,) those of strictly lower priority than who asks."""
        tasks = self._state.tasks
        own_job = tasks.job[victims] == claim.job.row
        below_task: Mask = tasks.priority[victims] < tasks.priority[claim.task]
        return np.where(own_job, below_task, job_priorities(self._state, victims) < claim.job.priority)


def job_rank(job: Job) -> int:
    """Boosted jobs first, then higher priority; a boost makes nobody a victim.

    Priorities have 32 bits, so one number orders by both; every job's place in the line asks for it.
    """
    return -(job.boost << 32) - job.priority


def wants_more(job: Job) -> bool:
    """Some task is neither placed nor promised a place."""
    return job.ready() + job.waiting() < len(job.tasks)


def job_priorities(state: ClusterState, tasks: Rows32) -> Ints:
    """(T,) priority of each task's job; of a pod without a job its own."""
    jobs = state.tasks.job[tasks]
    of_jobs = state.jobs.each(jobs, lambda job: job.priority, 0)
    return np.where(jobs == NOWHERE, state.tasks.priority[tasks], of_jobs)
