"""Noticing that nobody who is left can start, without trying each of thousands alike.

What a pod is told depends on its queue, its class, on whether it may be interrupted, and on the books.
While the books stay as they are, jobs whose pods are all of kinds that found no place find none either.
"""

from __future__ import annotations

from collections.abc import Iterable

from volcano_py.scheduler.framework.points import first_refusal
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.framework.session import Session, as_rows
from volcano_py.scheduler.model.jobs import Job

Kind = tuple[int, int, bool]
"""Queue row, class row, firm."""


class Stalemate:
    """What found no place since the books last changed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._books = _books(session)
        self._failed: dict[Kind, Refusal] = {}
        self._failures = 0

    def reached(self, job: Job, left: Iterable[Job]) -> bool:
        """*job* has just been tried; will all jobs that are *left* be refused as its like were?

        The jobs left are gone through after the first, second, fourth, ... failure only.
        """
        now = _books(self._session)
        if now != self._books:
            self._books, self._failures = now, 0
            self._failed.clear()
            return False
        kind = self._kind(job)
        refusal = self._session.refusals.get(next(iter(job.pending), -1))
        if kind is None or refusal is None:
            return False
        self._failed[kind] = refusal
        self._failures += 1
        if self._failures & (self._failures - 1) or self._session.state.tasks.nominated:
            return False
        return all(self._kind(other) in self._failed for other in left)

    def refuse(self, left: Iterable[Job]) -> None:
        """Tell the jobs that are *left* why they wait."""
        session = self._session
        for job in left:
            kind = self._kind(job)
            if kind is not None:
                own = first_refusal(session.points.pre_predicate, session.state.classes[kind[1]], job)
                session.refuse(job.pending, own or self._failed[kind])

    def _kind(self, job: Job) -> Kind | None:
        """The kind of all pending tasks of *job*; None where they differ or not all are tried."""
        if job.gated or job.pending_best_effort or not job.pending:
            return None
        tasks = self._session.state.tasks
        first = next(iter(job.pending))
        klass, interruptible = tasks.klass[first], tasks.interruptible[first]
        if len(job.pending) > 1:
            rows = as_rows(job.pending)
            if (tasks.klass[rows] != klass).any() or (tasks.interruptible[rows] != interruptible).any():
                return None
        return job.queue, int(klass), not interruptible


def _books(session: Session) -> tuple[int, int]:
    state = session.state
    return state.nodes.epoch, state.queues.epoch
