"""Nodes as columns: what they offer, what is used, what is on its way out or promised.

``idle = allocatable - used`` may be negative (a node that shrank under its pods): that refuses only
those who ask for the column. ``future idle = idle + releasing - pipelined``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np

from volcano_py.scheduler.model.kube.objects import Node
from volcano_py.scheduler.model.resources import Ints, Mask, Rows32, Vocabulary
from volcano_py.scheduler.model.rows import Column, Rows


class NodeTable(Rows):
    """All nodes, including names that only pods mention so far (``live`` false).

    Attributes:
        live: (N,) a Node object exists and is sound.
        allocatable, used, releasing, pipelined: (N, R) int64 base units; ``used`` includes what is
            releasing, ``pipelined`` is promised to tasks that wait for a release.
        nonzero_cpu, nonzero_memory: (N,) used milli-CPU and bytes with kube-scheduler's defaults for
            pods that ask nothing, for scores only.
        unschedulable: (N,) cordoned.
        tainted: (N,) has a NoSchedule or NoExecute taint.
        version: (N,) changes whenever anything a predicate or score could read changed on the node.
        epoch: changes whenever any node's ``version`` does.
        static_epoch: changes when a node comes, goes, or its labels, taints or amounts change.
        names, index, objects: row -> name, name -> row, row -> Node (None where none is sound).
    """

    COLUMNS: ClassVar = {
        "live": Column(np.bool_),
        "allocatable": Column(np.int64, per_resource=True),
        "used": Column(np.int64, per_resource=True),
        "releasing": Column(np.int64, per_resource=True),
        "pipelined": Column(np.int64, per_resource=True),
        "nonzero_cpu": Column(np.int64),
        "nonzero_memory": Column(np.int64),
        "unschedulable": Column(np.bool_),
        "tainted": Column(np.bool_),
        "version": Column(np.int64),
    }
    live: Mask
    allocatable: Ints
    used: Ints
    releasing: Ints
    pipelined: Ints
    nonzero_cpu: Ints
    nonzero_memory: Ints
    unschedulable: Mask
    tainted: Mask
    version: Ints

    def __init__(self, vocabulary: Vocabulary, tie_key: Callable[[str], object] | None = None) -> None:
        super().__init__(vocabulary)
        self.tie_key: Callable[[str], object] = tie_key or (lambda name: name)
        self.names: list[str] = []
        self.objects: list[Node | None] = []
        self.index: dict[str, int] = {}
        self.epoch = 0
        self.static_epoch = 0
        self._order: Rows32 | None = None
        self.memo: dict[str, object] = {}
        self._label_codes: dict[str, tuple[int, Rows32, dict[str, int]]] = {}

    def row(self, name: str) -> int:
        """The row of *name*, taken if the name is new (a pod may be heard of before its node)."""
        row = self.index.get(name)
        if row is None:
            row = self.take_row()
            if row == len(self.names):
                self.names.append("")
                self.objects.append(None)
            self.names[row] = name
            self.index[name] = row
        return row

    @property
    def order(self) -> Rows32:
        """(n,) rows of the live nodes in tie order: the first of equals is chosen."""
        if self._order is None:
            rows = np.flatnonzero(self.live).tolist()
            names = [self.names[row] for row in rows]
            ordered = sorted(zip(map(self.tie_key, names), names, rows, strict=True))
            self._order = np.array([row for _, _, row in ordered], np.int32)
        return self._order

    def touch(self, rows: Rows32 | int) -> None:
        """Note that something on *rows* changed (each row at most once a call)."""
        self.version[rows] += 1
        self.epoch += 1

    def touch_static(self, row: int) -> None:
        """Note that *row*'s labels, taints, amounts or existence changed."""
        self.touch(row)
        self.static_epoch += 1
        self._order = None

    def labels(self, row: int) -> Mapping[str, str]:
        """Labels of the node at *row*; empty where no sound object is known."""
        node = self.objects[row]
        return node.metadata.labels if node is not None else {}

    def label_codes(self, key: str) -> tuple[Rows32, dict[str, int]]:
        """Label *key* over all nodes, as small integers.

        Returns:
            (capacity,) int32 code of each row's value, -1 where the label is missing, and the code of
            each value. Cached until nodes change.
        """
        cached = self._label_codes.get(key)
        if cached is not None and cached[0] == self.static_epoch:
            return cached[1], cached[2]
        codes = np.full(len(self.version), -1, np.int32)
        values: dict[str, int] = {}
        for row in self.order.tolist():
            value = self.labels(row).get(key)
            if value is not None:
                codes[row] = values.setdefault(value, len(values))
        self._label_codes[key] = (self.static_epoch, codes, values)
        return codes, values
