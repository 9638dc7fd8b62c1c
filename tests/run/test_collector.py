"""Counting the garbage collector's time, which may begin wherever something is made."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from volcano_py.scheduler.run import collector
from volcano_py.scheduler.run.metrics import Metrics


@pytest.fixture(autouse=True)
def no_callbacks_left() -> Iterator[None]:
    before = list(gc.callbacks)
    yield
    gc.callbacks[:] = before


def test_a_collection_in_the_midst_of_a_metric_holds_nobody_up() -> None:
    metrics = Metrics()
    collector.watch(metrics)
    gc.collect()  # whatever is made with the first one is there
    with ExitStack() as held:
        for metric in dict.fromkeys(metrics.registry._names_to_collectors.values()):
            lock = getattr(metric, "_lock", None)
            if lock is not None:
                held.enter_context(lock)
        collecting = threading.Thread(target=gc.collect, daemon=True)
        collecting.start()
        collecting.join(60.0)
        assert not collecting.is_alive()


def test_its_time_is_counted_by_generation() -> None:
    metrics = Metrics()
    collector.watch(metrics)
    gc.collect()
    told = dict(line.rpartition(" ")[::2] for line in metrics.text().decode().splitlines())
    assert float(told['volcano_py_gc_seconds_total{generation="2"}']) > 0
    assert float(told['volcano_py_gc_collections_total{generation="2"}']) > 0
    assert 'volcano_py_gc_seconds_total{generation="0"}' in told
