"""A claim: on whose behalf pods would have to go."""

from __future__ import annotations

from dataclasses import dataclass

from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.queues import Queue


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """Who asks for room that others hold.

    Attributes:
        action: ``preempt`` (inside a queue) or ``reclaim`` (across queues).
        job: the claimant.
        queue: its queue.
        task: one pending task of it (priorities inside a job are compared with it).
        klass: that task's class.
    """

    action: str
    job: Job
    queue: Queue
    task: int
    klass: TaskClass
