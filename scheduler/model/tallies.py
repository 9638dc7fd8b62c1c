"""Counts per node of pods that somebody's selector, port or claim looks at.

A ``Tally`` keeps apart who is there, who of these is leaving and who is promised, so that it answers for
now and for the time after the releases. Many tallies concern few nodes: those are kept as a dict, and
as a column only when they grow.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from volcano_py.scheduler.model.resources import Ints, Rows32
from volcano_py.scheduler.model.tasks import HOLDS_NODE, Status

_FEW: Final = 64
"""Nodes up to which a dict is kept; a lookup of all of them then costs about 10 us."""


class NodeCounts:
    """An integer for every node row, 0 unless said otherwise."""

    __slots__ = ("_few", "_many")

    def __init__(self) -> None:
        self._few: dict[int, int] = {}
        self._many: Ints | None = None

    def add(self, row: int, amount: int) -> None:
        """Add *amount* at *row*."""
        if self._many is None:
            left = self._few.get(row, 0) + amount
            if left:
                self._few[row] = left
                if len(self._few) > _FEW:
                    self._spread(0)
            else:
                self._few.pop(row, None)
            return
        if row >= len(self._many):
            self._spread(row)
        self._many[row] += amount

    def add_rows(self, rows: Rows32, amounts: Ints) -> None:
        """Add *amounts* (k,) at the distinct *rows* (k,)."""
        if self._many is None and len(rows) <= _FEW:
            for row, amount in zip(rows.tolist(), amounts.tolist(), strict=True):
                self.add(row, amount)
            return
        self._spread(int(rows.max()))[rows] += amounts

    def array(self, capacity: int) -> Ints:
        """(capacity,) int64, row by row; may be the column itself, so do not write to it."""
        if self._many is not None and len(self._many) >= capacity:
            return self._many[:capacity]
        out = np.zeros(capacity, np.int64)
        if self._many is not None:
            out[: len(self._many)] = self._many
            return out
        for row, amount in self._few.items():
            if row < capacity:
                out[row] = amount
        return out

    def at(self, row: int) -> int:
        """The amount at *row*."""
        if self._many is None:
            return self._few.get(row, 0)
        return int(self._many[row]) if row < len(self._many) else 0

    def rows(self) -> list[int]:
        """Rows with an amount other than 0, ascending."""
        if self._many is None:
            return sorted(self._few)
        found: list[int] = np.flatnonzero(self._many).tolist()
        return found

    def __bool__(self) -> bool:
        return bool(self._few) if self._many is None else bool(self._many.any())

    def _spread(self, row: int) -> Ints:
        """The column, with room for *row*."""
        needed = max(row, *self._few, 0) + 1
        if self._many is None:
            self._many = np.zeros(2 * needed, np.int64)
            for known, amount in self._few.items():
                self._many[known] = amount
            self._few = {}
        elif needed > len(self._many):
            self._many = np.concatenate([self._many, np.zeros(2 * needed - len(self._many), np.int64)])
        return self._many


class Tally:
    """Pods on nodes (or their summed weights), by whether they stay.

    Attributes:
        holding: on the node, those on their way out included.
        leaving: of these, on their way out.
        promised: placed on room that is still being released.
    """

    __slots__ = ("holding", "leaving", "promised")

    def __init__(self) -> None:
        self.holding = NodeCounts()
        self.leaving = NodeCounts()
        self.promised = NodeCounts()

    def add(self, status: Status, rows: Rows32, amounts: Ints) -> None:
        """Add *amounts* (k,) at the distinct *rows* (k,) for pods of *status*, if it holds a node."""
        for counts in self._books(status):
            if len(rows) == 1:
                counts.add(int(rows[0]), int(amounts[0]))
            else:
                counts.add_rows(rows, amounts)

    def present(self, capacity: int, *, future: bool = False, ignore_terminating: bool = False) -> Ints:
        """(capacity,) how many count on each node row; do not write to it.

        Args:
            capacity: rows wanted.
            future: when who leaves is gone and who is promised is there.
            ignore_terminating: who leaves does not count now either.
        """
        counts = self.holding.array(capacity)
        if (future or ignore_terminating) and self.leaving:
            counts = counts - self.leaving.array(capacity)
        if future and self.promised:
            counts = counts + self.promised.array(capacity)
        return counts

    def taken(self, capacity: int, *, future: bool) -> Ints:
        """(capacity,) as ``present``, and now too who is promised a place: nobody may slip in between."""
        counts = self.present(capacity, future=future)
        return counts if future or not self.promised else counts + self.promised.array(capacity)

    def at(self, row: int, *, future: bool = False) -> int:
        """How many count on node *row*."""
        here = self.holding.at(row)
        return here - self.leaving.at(row) + self.promised.at(row) if future else here

    def __bool__(self) -> bool:
        return bool(self.holding) or bool(self.promised)

    def _books(self, status: Status) -> tuple[NodeCounts, ...]:
        if status == Status.PIPELINED:
            return (self.promised,)
        if not HOLDS_NODE[status]:
            return ()
        return (self.holding, self.leaving) if status == Status.RELEASING else (self.holding,)


def by_node(nodes: Rows32) -> tuple[Rows32, Ints]:
    """Distinct rows of *nodes* (k,) and how often each occurs."""
    if len(nodes) == 1:
        return nodes, np.ones(1, np.int64)
    rows, counts = np.unique(nodes, return_counts=True)
    return rows, counts.astype(np.int64, copy=False)
