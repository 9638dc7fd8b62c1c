"""Asking the queue and job plugins: an open session over a small cluster, and claims in it."""

from __future__ import annotations

import numpy as np

from tests.clusters import Document, engine
from volcano_py.scheduler.framework.claim import Claim
from volcano_py.scheduler.framework.refusal import Room
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.queues import Queue
from volcano_py.scheduler.model.resources import Rows32

NOW = 1_767_225_600.0


def opened(plugins: str, *documents: Document) -> Session:
    """A session with *plugins* (a YAML list of one tier) over *documents*."""
    config = f"actions: enqueue, allocate\ntiers: [{{plugins: {plugins}}}]\n"
    return engine(*documents, config=config).open(NOW)


def job(session: Session, name: str) -> Job:
    """The job of PodGroup ml/*name*."""
    found = session.state.jobs.named(f"ml/{name}")
    assert found is not None
    return found


def queue(session: Session, name: str) -> Queue:
    """The queue *name*."""
    found = session.state.queues.named(name)
    assert found is not None
    return found


def rows(session: Session, *pods: str) -> Rows32:
    """Task rows of pods of namespace ml, in this order."""
    return np.array([session.state.tasks.index[f"ml/{pod}"] for pod in pods], np.int32)


def claim(session: Session, pod: str, action: str = "reclaim") -> Claim:
    """The claim of pending pod ml/*pod*."""
    state = session.state
    task = state.tasks.index[f"ml/{pod}"]
    owner = state.jobs[int(state.tasks.job[task])]
    return Claim(action, owner, state.queues[owner.queue], task, state.classes[int(state.tasks.klass[task])])


def room(session: Session, queue_name: str, pod: str, *, firm: bool = False, future: bool = False) -> Room:
    """The room queue *queue_name* has for more pods like ml/*pod*."""
    klass = session.state.classes[int(session.state.tasks.klass[session.state.tasks.index[f"ml/{pod}"]])]
    return session.room(queue(session, queue_name), klass, firm=firm, future=future)


def voted(session: Session, point: str, pod: str, *victims: str) -> list[bool]:
    """What the only plugin at *point* says about *victims* for the claim of *pod*."""
    action = "preempt" if point == "preemptable" else "reclaim"
    (entry,) = getattr(session.points, point)
    answer = entry.call(claim(session, pod, action), rows(session, *victims))
    mask = answer[0] if isinstance(answer, tuple) else answer
    return [bool(vote) for vote in mask]
