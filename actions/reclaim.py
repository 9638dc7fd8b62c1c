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
        for _, job in Agenda(session, jobs).turns(for_room=True):
            while session.job_starving(job) and desk.serve(job):
                pass
