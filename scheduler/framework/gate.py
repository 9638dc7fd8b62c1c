"""What waits behind the gate: amounts that admitted groups will still ask for, and what can be taken back.

A group is booked with the part of its ``minResources`` that its pods don't hold yet; what it holds
beyond them is elastic and counts as free at the gate (decisions.md 3). The books are brought up to
date only when somebody asks, from the jobs touched since: an idle cycle costs nothing, and nothing is
booked before a group really is admitted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.groups import INQUEUE, RUNNING, UNKNOWN
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.resources import PODS, Ints, pad

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One job in the books.

    Attributes:
        job: whose it is; its row may by now belong to another.
        path: queue rows it counts in.
        coming: (R,) still to be asked for.
        elastic: (R,) held beyond the minimum and interruptible.
        firm: it may not be interrupted.
    """

    job: Job
    path: tuple[int, ...]
    coming: Ints
    elastic: Ints
    firm: bool


MANY: Final = 256
"""Touched jobs left for the next question; more are booked at the end of the cycle that touched them."""


class GateBooks:
    """Amounts at the gate by queue, ancestors included.

    Attributes:
        coming: (Q, R) what admitted groups will still ask for.
        coming_firm: (Q, R) the part of it that may not be interrupted.
        elastic: (Q, R) what can be taken back.
        coming_total: (R,) over all queues.
    """

    def __init__(self) -> None:
        self._session: Session | None = None
        self._state: ClusterState | None = None
        self._entries: dict[int, Entry] = {}
        self._stale: set[int] = set()
        self._seen_epoch = -1
        self.coming = self.coming_firm = self.elastic = np.zeros((0, 0), np.int64)
        self.coming_total: Ints = np.zeros(0, np.int64)

    def attach(self, session: Session) -> None:
        """Follow *session*'s cluster and who is admitted; at its end, remember who was touched.

        Every plugin that asks attaches; once a session is enough.
        """
        if self._session is session:
            return
        self._session = session
        state = session.state
        if self._state is not state:
            self._state = state
            self._entries.clear()
            self._stale = {job.row for job in state.jobs.live()}
        self._seen_epoch = -1
        session.points.closing.add("gate", self._remember)
        session.points.job_enqueued.add("gate", self.admitted)

    def refresh(self) -> None:
        """Bring the books up to date with everything that was booked."""
        state = self._cluster()
        if self._seen_epoch == state.queues.epoch:
            return
        self._fit_width(state)
        jobs = state.jobs.jobs
        gone = {row for row, entry in self._entries.items() if jobs[row] is not entry.job}
        self._rebook(state, self._stale | state.jobs.changed | gone)
        self._stale.clear()
        self._seen_epoch = state.queues.epoch

    def admitted(self, job: Job) -> None:
        """*job* has just been let in."""
        self.refresh()
        state = self._cluster()
        if job.allocated() or job.row in self._entries or not _counts(job):
            self._rebook(state, {job.row})
            return
        # Nothing held, all of the minimum to come: the usual case, met by thousands of jobs in a cycle.
        minimum = pad(_minimum(job), state.vocabulary.width)
        path = state.queues[job.queue].path
        self._enter([Entry(job, path, minimum, np.zeros_like(minimum), is_firm(state, job))])

    def _remember(self) -> None:
        """Keep who was touched; many at once are booked here, so that no later cycle pays for them."""
        self._stale |= self._cluster().jobs.changed
        if len(self._stale) > MANY:
            self._seen_epoch = -1
            self.refresh()

    def _cluster(self) -> ClusterState:
        if self._state is None:
            raise ValueError("the books follow no cluster yet: attach them to a session first")
        return self._state

    def _fit_width(self, state: ClusterState) -> None:
        """Give every array the tables' present shape."""
        width, rows = state.vocabulary.width, len(state.queues.weight)
        if self.coming.shape == (rows, width):
            return
        entries = list(self._entries.values())
        self.coming, self.coming_firm, self.elastic = (np.zeros((rows, width), np.int64) for _ in range(3))
        self.coming_total = np.zeros(width, np.int64)
        self._enter([replace(e, coming=pad(e.coming, width), elastic=pad(e.elastic, width)) for e in entries])

    def _rebook(self, state: ClusterState, rows: set[int]) -> None:
        self._add([self._entries.pop(row) for row in rows & self._entries.keys()], -1)
        self._enter(_entries(state, rows))

    def _enter(self, entries: list[Entry]) -> None:
        self._entries.update((entry.job.row, entry) for entry in entries)
        self._add(entries, 1)

    def _add(self, entries: list[Entry], sign: int) -> None:
        alike: dict[tuple[tuple[int, ...], bool], list[Entry]] = {}
        for entry in entries:
            alike.setdefault((entry.path, entry.firm), []).append(entry)
        for (path, firm), group in alike.items():
            coming = sign * _sum([entry.coming for entry in group])
            elastic = sign * _sum([entry.elastic for entry in group])
            for row in path:  # short: a loop beats an index array
                self.coming[row] += coming
                self.elastic[row] += elastic
                if firm:
                    self.coming_firm[row] += coming
            self.coming_total += coming


def _sum(amounts: list[Ints]) -> Ints:
    total: Ints = amounts[0] if len(amounts) == 1 else np.sum(amounts, axis=0)
    return total


def is_firm(state: ClusterState, job: Job) -> bool:
    """Whether *job* as a whole may not be interrupted, as its group or else its queue says."""
    said = job.interruptible
    if said is None and job.queue >= 0:
        said = state.queues[job.queue].interruptible
    return said is False


def _entries(state: ClusterState, rows: set[int]) -> list[Entry]:
    """What those of *rows* add to the books that hold more or less than their minimum."""
    table = state.jobs
    jobs = [job for row in rows if row < len(table.jobs) and (job := table.jobs[row]) and _counts(job)]
    if not jobs:
        return []
    held = table.allocated[[job.row for job in jobs]]
    asked = np.stack([pad(_minimum(job), held.shape[1]) for job in jobs])
    held[:, PODS] = np.minimum(held[:, PODS], asked[:, PODS])  # nobody's minimum counts pods
    more, spare = np.maximum(asked - held, 0), np.maximum(held - asked, 0)
    nothing = np.zeros(held.shape[1], np.int64)
    entries = []
    for place in np.flatnonzero((held != asked).any(axis=1)).tolist():
        job = jobs[place]
        firm = is_firm(state, job)
        coming = more[place].copy() if _still_asks(job) else nothing
        elastic = nothing if firm else spare[place].copy()
        entries.append(Entry(job, state.queues[job.queue].path, coming, elastic, firm))
    return entries


def _counts(job: Job) -> bool:
    """Admitted, with a minimum to measure by."""
    admitted = job.phase in (INQUEUE, RUNNING, UNKNOWN)
    return admitted and job.group is not None and job.queue >= 0 and job.min_resources is not None


def _minimum(job: Job) -> Ints:
    if job.min_resources is None:
        raise ValueError(f"PodGroup {job.key} has no minResources to measure by")
    return job.min_resources


def _still_asks(job: Job) -> bool:
    """Members are still to come: not admitted long enough to run, pods waiting, or pods not made yet.

    A group whose members have partly finished asks for nothing more, nor does one that is held, or whose pods
    somebody has deleted: if others are made in their stead, they count from then on.
    """
    if job.held or job.emptied:
        return False
    return job.phase == INQUEUE or bool(job.pending) or job.allocated() >= job.min_member
