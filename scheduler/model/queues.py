"""Queues: a tree with limits, and what every queue holds.

Columns are kept for every queue with its descendants' amounts included, so a limit at an ancestor is
one row to look at. A queue that is wrong (a circle, a missing parent) carries the problem as text and
takes no jobs; the others go on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from volcano_py.scheduler.model.resources import UNLIMITED, Ints, Vocabulary
from volcano_py.scheduler.model.rows import Column, Rows

ROOT: Final = "root"
DEFAULT_QUEUE: Final = "default"


@dataclass(eq=False, slots=True)
class Queue:
    """What a queue is told; amounts stand in the table's columns at ``row``.

    Attributes:
        spec_problem: why no job of this queue may be placed, or "".
        priority, parent, reclaimable, interruptible, lend_min, min_run_s: as its spec says.
        state: of its status; ``open`` only in state Open.
        created: epoch seconds.
        path: rows from this queue up to the outermost ancestor, itself first.
        children: rows of the queues directly below.
        jobs: rows of jobs that name the queue, finished ones too.
    """

    row: int
    name: str
    priority: int = 0
    parent: str = ""
    open: bool = True
    state: str = "Open"
    reclaimable: bool = True
    interruptible: bool | None = None
    lend_min: bool = False
    min_run_s: float = 0.0
    created: float = 0.0
    spec_problem: str = ""
    path: tuple[int, ...] = ()
    children: list[int] = field(default_factory=list)
    jobs: set[int] = field(default_factory=set)

    @property
    def leaf(self) -> bool:
        """Holds jobs rather than queues."""
        return not self.children


class QueueTable(Rows):
    """All queues.

    Attributes:
        guarantee: (Q, R) ``min``; 0 where nothing is said.
        capability: (Q, R) ``max``; ``UNLIMITED`` where nothing is said.
        deserved: (Q, R) as stated, -1 where nothing is said.
        allocated: (Q, R) charges of tasks that hold a node, terminating ones included.
        releasing: (Q, R) the terminating part of it.
        pipelined: (Q, R) charges of tasks promised room that is being released.
        firm: (Q, R) the part of allocated + pipelined that may not be interrupted.
        pending: (Q, R) charges of pending tasks of admitted and waiting jobs; sums beyond 64 bits wrap, so
            amounts are read with ``ClusterState.awaited``.
        weight: (Q,) as stated, else 1.
        epoch: changes with every booking and whenever the tree may have changed.
        default: name of the queue of whoever names none; it is there even where no object defines it.
    """

    COLUMNS: ClassVar = {
        "guarantee": Column(np.int64, per_resource=True),
        "capability": Column(np.int64, UNLIMITED, per_resource=True),
        "deserved": Column(np.int64, -1, per_resource=True),
        "allocated": Column(np.int64, per_resource=True),
        "releasing": Column(np.int64, per_resource=True),
        "pipelined": Column(np.int64, per_resource=True),
        "firm": Column(np.int64, per_resource=True),
        "pending": Column(np.int64, per_resource=True),
        "weight": Column(np.int64, 1),
    }
    guarantee: Ints
    capability: Ints
    deserved: Ints
    allocated: Ints
    releasing: Ints
    pipelined: Ints
    firm: Ints
    pending: Ints
    weight: Ints

    def __init__(self, vocabulary: Vocabulary, default: str = DEFAULT_QUEUE) -> None:
        super().__init__(vocabulary)
        self.default = default
        self.index: dict[str, int] = {}
        self.queues: list[Queue | None] = []
        self.epoch = 0

    def __getitem__(self, row: int) -> Queue:
        found = self.queues[row]
        if found is None:
            raise KeyError(row)
        return found

    def staying(self, row: int) -> Ints:
        """(R,) what queue *row* will hold once terminating pods are gone and promised ones are there."""
        amounts: Ints = self.allocated[row] - self.releasing[row] + self.pipelined[row]
        return amounts

    def named(self, name: str) -> Queue | None:
        """The queue called *name*, if there is one."""
        row = self.index.get(name)
        return None if row is None else self.queues[row]

    def live(self) -> list[Queue]:
        """All queues, by name."""
        return [self[self.index[name]] for name in sorted(self.index)]
