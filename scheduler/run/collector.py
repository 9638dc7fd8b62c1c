"""The garbage collector, set for a process that holds a large cluster for weeks.

Most of what is held are structs that the collector does not track, but dictionaries, jobs and classes remain,
and each full collection walks through all of them. After the first sync they are moved out of its sight
(``gc.freeze``); what is freed is freed by its reference count all the same. Younger generations are collected
less often, since a cycle makes thousands of short-lived containers and no cycles among them.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from volcano_py.scheduler.run.metrics import Metrics, Sample

THRESHOLDS: Final = (50_000, 20, 50)


def settle() -> None:
    """Everything long-lived is there: collect once, and leave it alone from now on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def watch(metrics: Metrics) -> None:
    """Count how often generations are collected, and for how long.

    A collection begins wherever something is made, in the midst of a metric too: its end is written into
    plain numbers, since whoever took a lock here would wait for himself.
    """
    seconds = [0.0] * len(gc.get_stats())
    began = 0.0

    def seen(phase: str, info: dict[str, Any]) -> None:
        nonlocal began
        if phase == "start":
            began = time.perf_counter()
        else:
            seconds[info["generation"]] += time.perf_counter() - began

    def samples() -> Iterator[Sample]:
        runs = [float(one["collections"]) for one in gc.get_stats()]
        yield "volcano_py_gc_collections_total", "Runs of the garbage collector.", _BY, _each(runs)
        yield "volcano_py_gc_seconds_total", "Time in the garbage collector.", _BY, _each(seconds)

    gc.callbacks.append(seen)
    metrics.watch(samples)


_BY: Final = ("generation",)


def _each(figures: Iterable[float]) -> list[tuple[tuple[str, ...], float]]:
    return [((str(generation),), figure) for generation, figure in enumerate(figures)]
