"""reclaim: queues take back what others have borrowed.

Starving jobs, in queue and job order, claim room from queues that hold more than they are entitled to.
A queue that is served up to its share claims nothing. Who may be a victim, and that nobody goes unless
the claimant then starts, is decided in ``scheduler.framework.eviction``.
"""

from __future__ import annotations

from typing import ClassVar

from volcano_py.scheduler.framework.action import Action
from volcano_py.scheduler.framework.agenda import Agenda
from volcano_py.scheduler.framework.contract import RECLAIM
from volcano_py.scheduler.framework.eviction.desk import Desk, claimants
from volcano_py.scheduler.framework.session import Session


class ReclaimAction(Action):
    """See the module."""

    name: ClassVar = RECLAIM

    def run(self, session: Session) -> None:
        """Serve claims across queues, in order."""
        jobs = claimants(session)
        if not jobs:
            return
        desk = Desk(session, self.name)
        agenda = Agenda(session, jobs)
        while (queue := agenda.next_queue()) is not None:
            refusal = session.overused(queue)
            if refusal is not None:
                for other in agenda.rest(queue):
                    session.refuse(other.pending, refusal)
                continue
            job = agenda.next_job(queue)
            if job is not None:
                while session.job_starving(job) and desk.serve(job):
                    pass
            agenda.push_queue(queue)
