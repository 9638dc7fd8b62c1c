"""The garbage collector, set for a process that holds a large cluster for weeks.

Most of what is held are structs that the collector does not track, but dictionaries, jobs and classes remain,
and each full collection walks through all of them. After the first sync they are moved out of its sight
(``gc.freeze``); what is freed is freed by its reference count all the same. Younger generations are collected
less often, since a cycle makes thousands of short-lived containers and no cycles among them.
"""

from __future__ import annotations

import gc
import time
from typing import Any, Final

from volcano_py.scheduler.run.metrics import Metrics

THRESHOLDS: Final = (20_000, 20, 50)


def settle() -> None:
    """Everything long-lived is there: collect once, and leave it alone from now on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def watch(metrics: Metrics) -> None:
    """Count the time that collections take."""
    began: list[float] = [0.0]

    def seen(phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            began[0] = time.perf_counter()
        else:
            metrics.gc_s.labels(str(info["generation"])).inc(time.perf_counter() - began[0])

    gc.callbacks.append(seen)
