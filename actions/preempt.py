"""preempt: who starts in place of less important work of its own queue.

Starving jobs claim room from other jobs of their queue, in queue and job order; then jobs still short
let their own pods of lower task priority go for higher ones. Who may be a victim, and that nobody goes
unless the claimant then starts, is decided in ``scheduler.framework.eviction``.
"""

from __future__ import annotations

from typing import ClassVar

from volcano_py.scheduler.framework.action import Action
from volcano_py.scheduler.framework.agenda import Agenda
from volcano_py.scheduler.framework.contract import PREEMPT
from volcano_py.scheduler.framework.eviction.desk import Desk, claimants
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import Job


class PreemptAction(Action):
    """See the module."""

    name: ClassVar = PREEMPT
    ARGUMENTS: ClassVar = {
        "enableTopologyAwarePreemption": "accepted; all nodes are always compared by simulation",
        "topologyAwarePreemptWorkerNum": "accepted; no workers are needed",
        "predicateErrorCacheEnable": "accepted; checks are kept by task class in any case",
        "minCandidateNodesPercentage": "accepted; all nodes are candidates",
        "minCandidateNodesAbsolute": "accepted; all nodes are candidates",
        "maxCandidateNodesAbsolute": "accepted; all nodes are candidates",
    }

    def run(self, session: Session) -> None:
        """Serve claims inside queues, in order."""
        jobs = claimants(session)
        if not jobs:
            return
        desk = Desk(session, self.name)
        unserved: list[Job] = []
        for _, job in Agenda(session, jobs).turns():
            while session.job_starving(job) and desk.serve(job):
                pass
            if session.job_starving(job):
                unserved.append(job)
        for job in unserved:
            while session.job_starving(job) and desk.serve_inside(job):
                pass
