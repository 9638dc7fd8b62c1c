"""backfill: pods that ask for nothing.

Places the request-less pods of admitted jobs, one at a time, each wherever its checks allow. A job's
other pods are allocate's; a gang starts only whole, so pods of a gang below its minimum wait here too
unless they complete it.
"""

from __future__ import annotations

from typing import ClassVar

from volcano_py.actions.allocate import candidates
from volcano_py.scheduler.framework.action import Action
from volcano_py.scheduler.framework.decision import standing
from volcano_py.scheduler.framework.filling import place, worksheet
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import Job


class BackfillAction(Action):
    """See the module."""

    name: ClassVar = "backfill"

    def run(self, session: Session) -> None:
        """Place request-less pods, jobs in order."""
        jobs = [job for job in candidates(session) if job.pending_best_effort]
        queues = session.state.queues
        jobs.sort(key=lambda j: (session.queue_order_key(queues[j.queue]), session.job_order_key(j)))
        for job in jobs:
            self._fill(session, job)

    def _fill(self, session: Session, job: Job) -> None:
        """One statement a pod, so that one pod's bad luck is its own; a gang's last pods together."""
        best_effort = session.state.tasks.best_effort
        queue = session.state.queues[job.queue]
        waiting = [task for task in worksheet(session, job).waiting if best_effort[task]]
        statement = session.statement(self.name)
        for task in waiting:
            place(session, statement, job, queue, [task])
            if session.job_ready(job):
                statement.commit(standing(job))
        statement.discard()
