"""What queues hold and are owed, under Volcano's names, as the latest cycle left it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from volcano_py.scheduler.framework.shares import QueueShares
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.queues import Queue
from volcano_py.scheduler.model.resources import UNLIMITED, Ints
from volcano_py.scheduler.run.metrics import Sample

_EVERY_S: Final = 2.0
_STEMS: Final = {
    "allocated": "what its pods hold",
    "request": "what its pods hold and wait for",
    "deserved": "its fair share",
    "capacity": "its limit",
    "entitlement": "what it may fill with work that may not be interrupted",
}
Figures = dict[str, list[tuple[tuple[str, ...], float]]]


class QueueFigures:
    """Taken after cycles, read when somebody asks for metrics."""

    def __init__(self) -> None:
        self._figures: Figures = {}
        self._taken_at = -_EVERY_S

    def take(self, state: ClusterState, shares: QueueShares | None) -> None:
        """Note how queues stand, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self._taken_at < _EVERY_S:
            return
        self._taken_at = now
        figures: Figures = {}
        awaited = state.awaited()
        for queue in state.queues.live():
            _note(figures, state, shares, queue, awaited[queue.row])
        self._figures = figures

    def samples(self) -> Iterable[Sample]:
        """For ``Metrics.watch``."""
        for name, values in self._figures.items():
            scalar = name.endswith("scalar_resources")
            labels = ("queue_name", "resource") if scalar else ("queue_name",)
            stem = name.removeprefix("volcano_queue_").partition("_")[0]
            yield name, f"Queues: {_STEMS.get(stem, stem)}.", labels, values


def _note(
    figures: Figures, state: ClusterState, shares: QueueShares | None, queue: Queue, awaited: Ints
) -> None:
    """Figures of *queue*, whose pods wait for *awaited* (R,)."""
    queues, row, name = state.queues, queue.row, queue.name
    held = queues.allocated[row]
    vectors: dict[str, Ints] = {"allocated": held, "request": held + awaited}
    over, share = 0.0, 0.0
    if shares is not None:
        vectors |= {
            "deserved": shares.deserved[row],
            "capacity": shares.limit[row],
            "entitlement": shares.entitlement[row],
        }
        over = float(shares.over(row, held).any())
        share = _largest_part(held, shares.deserved[row])
    for stem, vector in vectors.items():
        for metric, labels, value in _split(state, stem, name, vector):
            figures.setdefault(metric, []).append((labels, value))
    for metric, value in (
        ("volcano_queue_share", share),
        ("volcano_queue_weight", float(queues.weight[row])),
        ("volcano_queue_overused", over),
    ):
        figures.setdefault(metric, []).append(((name,), value))


def _split(
    state: ClusterState, stem: str, queue: str, vector: Ints
) -> Iterator[tuple[str, tuple[str, ...], float]]:
    for resource, amount in zip(state.vocabulary.names, vector.tolist(), strict=False):
        if amount >= UNLIMITED or (not amount and resource not in ("cpu", "memory")):
            continue
        if resource == "cpu":
            yield f"volcano_queue_{stem}_milli_cpu", (queue,), float(amount)
        elif resource == "memory":
            yield f"volcano_queue_{stem}_memory_bytes", (queue,), float(amount)
        else:
            yield f"volcano_queue_{stem}_scalar_resources", (queue, resource), float(amount)


def _largest_part(held: Ints, deserved: Ints) -> float:
    """The largest part of its share that a queue holds, over the resources it has a share of."""
    width = min(len(held), len(deserved))
    with_share = (deserved[:width] > 0) & (deserved[:width] < UNLIMITED)
    parts = held[:width][with_share] / deserved[:width][with_share]
    return float(np.max(parts, initial=0.0))
