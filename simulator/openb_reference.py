"""A plain one-pod-at-a-time player of the OpenB experiment, to check policies without the engine.

Each pod goes to the best node that fits it, first in node order among equals, or is dropped for good;
nothing leaves. ``volcano-py simulate openb`` runs the same policies through the engine; this file is
the yardstick for it. Neighbours: ``openb_workload`` for the input, ``placement`` for the policies.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from volcano_py.plugins.deviceshare.placement import CardAsk, CardNodes, PlacementPolicy, fits
from volcano_py.plugins.deviceshare.placement.fragmentation import UsableRoom
from volcano_py.plugins.deviceshare.placement.state import Floats, Ints, Mask, Milli
from volcano_py.simulator.openb_workload import SIZE_CLASSES, Trace, Workload, size_class


@dataclass
class History:
    """What happened, pod by pod.

    Attributes:
        arrived: (A,) card room asked so far, milli of a card.
        allocated: (A,) card room placed so far.
        node: (A,) node row that took the pod; -1 where it was dropped.
        cpu: (A,) idle CPU left on that node.
        free: (A, G) room left on its cards.
        model: (A,) its card model.
    """

    arrived: Ints
    allocated: Ints
    node: Ints
    cpu: Ints
    free: Milli
    model: Milli


@dataclass
class Outcome:
    """Figures of one run.

    Attributes:
        alloc_pct: by arrived %, the cluster's card room that is allocated, %, mean within the bucket.
        frag_pct: by arrived %, fragmented card room as % of the cluster's.
        placed: pods placed, by size class.
        unplaced: pods dropped.
    """

    alloc_pct: dict[int, float]
    frag_pct: dict[int, float]
    placed: dict[str, int]
    unplaced: int


@dataclass
class _Known:
    """Scores of one ask over all nodes, brought up to date where nodes changed."""

    scores: Floats
    cards: Mask
    seen: int = 0


@dataclass
class Player:
    """A cluster that fills up, one pod at a time.

    Attributes:
        nodes: rows in node order; written to as pods are placed.
        policy: scores nodes.
        remember: keep scores until a node changes; False asks for all of them for every pod.
    """

    nodes: CardNodes
    policy: PlacementPolicy
    remember: bool = True
    _known: dict[CardAsk, _Known] = field(default_factory=dict)
    _changed: list[int] = field(default_factory=list)

    def place(self, ask: CardAsk, draw: int) -> int:
        """The position that takes *ask*, now charged for it; -1 when it fits nowhere."""
        known = self._known.get(ask)
        stale: NDArray[np.int64]
        if known is None or not self.remember or self.policy.per_pod:
            known = self._known[ask] = _Known(
                np.full(len(self.nodes.row), -np.inf), np.zeros(self.nodes.free.shape, dtype=np.bool_)
            )
            stale = np.arange(len(self.nodes.row))
        else:
            stale = np.array(sorted(set(self._changed[known.seen :])), dtype=np.int64)
        known.seen = len(self._changed)
        self._refresh(known, ask, stale, draw)
        best = int(known.scores.argmax())
        if known.scores[best] == -np.inf:
            return -1
        self._charge(ask, best, known.cards[best])
        return best

    def _refresh(self, known: _Known, ask: CardAsk, stale: Ints, draw: int) -> None:
        known.scores[stale] = -np.inf
        rows = stale[fits(ask, self.nodes.take(stale))]
        if len(rows):
            known.scores[rows], known.cards[rows] = self.policy.score(ask, self.nodes.take(rows), draw)

    def _charge(self, ask: CardAsk, position: int, cards: Mask) -> None:
        self.nodes.cpu_idle[position] -= ask.cpu_milli
        self.nodes.memory_idle[position] -= ask.memory
        self.nodes.free[position, cards] -= ask.milli
        self.nodes.kinds[position] |= ask.kind_bit
        self._changed.append(position)


def play(trace: Trace, workload: Workload, policy: PlacementPolicy, remember: bool = True) -> History:
    """Submit the whole workload to an empty cluster."""
    player = Player(trace.nodes.take(workload.node_order), policy, remember)
    nodes, pods = player.nodes, len(workload.arrivals)
    asked = np.array([trace.asks[pod].total_milli for pod in workload.arrivals], dtype=np.int64)
    took = np.full(pods, -1, dtype=np.int64)
    cpu = np.zeros(pods, dtype=np.int64)
    free = np.full((pods, nodes.free.shape[1]), -1, dtype=np.int32)
    for draw, pod in enumerate(workload.arrivals):
        position = player.place(trace.asks[pod], draw)
        if position >= 0:
            took[draw] = nodes.row[position]
            cpu[draw], free[draw] = nodes.cpu_idle[position], nodes.free[position]
    allocated = np.cumsum(np.where(took >= 0, asked, 0))
    model = np.where(took >= 0, trace.nodes.model[took], -1).astype(np.int32)
    return History(np.cumsum(asked), allocated, took, cpu, free, model)


def outcome(trace: Trace, workload: Workload, history: History, usable: UsableRoom) -> Outcome:
    """The published figures of a run; *usable* holds the asks against which fragmentation is measured."""
    bucket = np.rint(100 * history.arrived / trace.total_milli).astype(np.int64)
    asks = [trace.asks[pod] for pod in workload.arrivals]
    placed = Counter(size_class(ask) for ask, row in zip(asks, history.node, strict=True) if row >= 0)
    return Outcome(
        _bucket_means(bucket, 100 * history.allocated / trace.total_milli),
        _bucket_means(bucket, 100 * _fragmented(trace, history, usable) / trace.total_milli),
        {name: placed[name] for name in SIZE_CLASSES},
        int((history.node < 0).sum()),
    )


def _bucket_means(bucket: Ints, values: Floats) -> dict[int, float]:
    return {int(b): float(values[bucket == b].mean()) for b in np.unique(bucket)}


def _fragmented(trace: Trace, history: History, usable: UsableRoom) -> Floats:
    """(A,) float64: fragmented card room of the cluster after each arrival, milli of a card."""
    start = _fragments(usable, trace.nodes.model, trace.nodes.cpu_idle, trace.nodes.free)
    now = _fragments(usable, history.model, history.cpu, history.free)
    last = start.copy()
    change = np.zeros(len(now))
    for i in np.flatnonzero(history.node >= 0):
        row = history.node[i]
        change[i] = now[i] - last[row]
        last[row] = now[i]
    total: Floats = start.sum() + np.cumsum(change)
    return total


def _fragments(usable: UsableRoom, model: Milli, cpu: Ints, free: Milli) -> Floats:
    idle = np.maximum(free, 0).sum(axis=1)
    fragments: Floats = idle - usable.after(usable.weights(model, cpu), free) / usable.pods
    return fragments
