"""Who is next: queues in order, and the jobs of each in order, as shares change while placing.

Keys are computed when a job or queue is put on the agenda and checked again when it comes up: one
whose key has grown goes back to its place. Whoever puts something back after its key may have shrunk
(a discard) pushes it anew, so no stale order survives.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Generic, TypeVar

from volcano_py.scheduler.framework.points import Key
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.queues import Queue

T = TypeVar("T")


class Line(Generic[T]):
    """Items by key, smallest first, keys checked again when an item comes up."""

    def __init__(self, key: Callable[[T], tuple[Key, ...]]) -> None:
        self._key = key
        self._heap: list[tuple[tuple[Key, ...], int, T]] = []
        self._pushed = 0

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[T]:
        """The items, in no particular order."""
        return (item for _, _, item in self._heap)

    def push(self, item: T) -> None:
        """Put *item* in its place."""
        self._pushed += 1
        # Alone, it needs no key: the empty one goes before all others, and is checked when it comes up.
        key = self._key(item) if self._heap else ()
        heapq.heappush(self._heap, (key, self._pushed, item))

    def extend(self, items: Iterable[T]) -> None:
        """Put many *items* in their places."""
        for item in items:
            self._pushed += 1
            self._heap.append((self._key(item), self._pushed, item))
        heapq.heapify(self._heap)

    def pop(self) -> T | None:
        """The first item; None if nobody is left."""
        while self._heap:
            key, _, item = heapq.heappop(self._heap)
            if not self._heap:
                return item
            now = self._key(item)
            if now <= key or now <= self._heap[0][0]:
                return item
            self._pushed += 1
            heapq.heappush(self._heap, (now, self._pushed, item))
        return None


class Agenda:
    """Jobs by queue."""

    def __init__(self, session: Session, jobs: Iterable[Job]) -> None:
        self.session = session
        self._jobs: dict[int, Line[Job]] = {}
        by_queue: dict[int, list[Job]] = {}
        for job in jobs:
            by_queue.setdefault(job.queue, []).append(job)
        for queue, members in by_queue.items():
            line = self._jobs[queue] = Line[Job](session.job_order_key)
            line.extend(members)
        self._queues = Line[Queue](session.queue_order_key)
        self._queues.extend(session.state.queues[row] for row in by_queue)

    def turns(self, *, for_room: bool = False) -> Iterator[tuple[Queue, Job]]:
        """Whose turn it is, until nobody is left: a queue and its first job, both off the agenda.

        The queue comes back by itself while it has jobs; a job with more to do is pushed by who serves it.

        Args:
            for_room: turns are for room: jobs of a queue that gets nothing more (``overused``) have none
                and are told why.
        """
        while (queue := self.next_queue()) is not None:
            refusal = self.session.overused(queue) if for_room else None
            if refusal is not None:
                for waiting in self.rest(queue):
                    self.session.refuse(waiting.pending, refusal)
            elif (job := self.next_job(queue)) is not None:
                yield queue, job
                self.push_queue(queue)

    def next_queue(self) -> Queue | None:
        """The queue whose turn it is; it has left the agenda until ``push_queue``."""
        return self._queues.pop()

    def next_job(self, queue: Queue) -> Job | None:
        """The first job of *queue*; it has left the agenda until ``push``."""
        return self._jobs[queue.row].pop()

    def push(self, job: Job) -> None:
        """*job* has more to place."""
        self._jobs[job.queue].push(job)

    def push_queue(self, queue: Queue) -> None:
        """*queue* may have another turn."""
        if len(self._jobs[queue.row]):
            self._queues.push(queue)

    def left(self) -> Iterator[Job]:
        """The jobs on the agenda, in no particular order."""
        return chain.from_iterable(self._jobs.values())

    def rest(self, queue: Queue) -> list[Job]:
        """The jobs left in *queue*, taken off the agenda."""
        left = []
        while (job := self._jobs[queue.row].pop()) is not None:
            left.append(job)
        return left
