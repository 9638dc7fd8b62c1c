"""Days of work leave nothing behind: what has ended is forgotten everywhere."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import pytest

from tests.clusters import Document, group, node, pod, queue
from tests.run.lives import change_of, deletion_of
from tests.run.test_journal import wait_for_beginning
from volcano_py.scheduler.cluster.feed import Change
from volcano_py.scheduler.cluster.orders import BindDone, BindOrder, EvictDone, EvictOrder, Outcome
from volcano_py.scheduler.run.carry import Carrier, EvictionStyle
from volcano_py.scheduler.run.journal import Journal
from volcano_py.scheduler.run.metrics import Metrics
from volcano_py.scheduler.run.reload import read_config
from volcano_py.scheduler.run.triggers import Triggers
from volcano_py.scheduler.run.worker import Given, Worker

CONFIG = """\
actions: enqueue, allocate, preempt, reclaim, backfill
tiers:
- plugins: [{name: gang}, {name: priority}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack}]
"""
HIGH: Document = {
    "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9,
}  # fmt: skip
GANGS, MEMBERS = 6, 4
KEPT_BYTES = 64 << 10
"""What caches and counters may take besides; one pod kept of each gang is more."""


class Days:
    """A scheduler whose cluster is empty again at the end of each round.

    Attributes:
        bound, evicted: pods so far.
    """

    def __init__(self, folder: Path) -> None:
        carrier, self._journal = Carrier(EvictionStyle(), "me"), Journal(folder, 1 << 20)
        self._worker = Worker(
            read_config(CONFIG), ("volcano-py",), carrier, Triggers(1.0), Metrics(), self._journal
        )
        self._now = 1_767_225_600.0
        self._pods: dict[str, Document] = {}
        self.bound = self.evicted = 0
        self._turn(
            *(change_of(node(f"n{i}", cpu="4")) for i in range(5)), change_of(HIGH), change_of(queue("q"))
        )

    def rest(self) -> None:
        """Nothing goes on any more beside what calls this."""
        wait_for_beginning(self._journal)

    def end(self) -> None:
        """The scheduler stops."""
        self._worker.close()

    def round(self, number: int) -> None:
        """Gangs of a size of their own come, one too large, and one that takes room from others; all end."""
        made = [group(f"r{number}-{i}", MEMBERS, "q") for i in range(GANGS)]
        cpu = f"{900 + number % 97}m"
        pods = [
            pod(f"r{number}-{i}-{j}", f"r{number}-{i}", cpu, labels={"round": str(number)})
            for i in range(GANGS)
            for j in range(MEMBERS)
        ]
        first = group(f"u{number}", 2, "q", priorityClassName="high")
        urgent = [
            pod(f"u{number}-{j}", f"u{number}", "2", priority=9, priorityClassName="high") for j in range(2)
        ]
        for documents in ([*made, *pods], [first, *urgent], []):
            self._come(documents)
            self._turn()
        keys = [("Pod", key) for key in self._pods] + [
            ("PodGroup", f"ml/{one['metadata']['name']}") for one in [*made, first]
        ]
        self._pods.clear()
        self._turn(*(deletion_of(key) for key in keys))
        self._turn()

    def _come(self, documents: list[Document]) -> None:
        for each in documents:
            if each["kind"] == "Pod":
                self._pods[f"ml/{each['metadata']['name']}"] = each
        self._turn(*(change_of(each) for each in documents))

    def _turn(self, *changes: Change, outcomes: tuple[Outcome, ...] = ()) -> None:
        """One turn, and what it orders is carried out."""
        self._now += 2.0
        given = Given(self._now, list(changes), list(outcomes), may_cycle=True, leads=True)
        echoes: list[Change] = []
        done: list[Outcome] = []
        for order in self._worker.turn(given).orders:
            if isinstance(order, BindOrder):
                self.bound += 1
                echoes.append(change_of(self._runs(order)))
                done.append(BindDone(order.key, order.uid, order.node, order.group, 0.01))
            elif isinstance(order, EvictOrder):
                self.evicted += 1
                del self._pods[order.key]
                echoes.append(deletion_of(("Pod", order.key)))
                done.append(EvictDone(order.key, order.uid, order.for_whom))
        if echoes:
            self._turn(*echoes, outcomes=tuple(done))

    def _runs(self, order: BindOrder) -> Document:
        found = self._pods[order.key]
        runs = {**found, "spec": {**found["spec"], "nodeName": order.node}, "status": {"phase": "Running"}}
        self._pods[order.key] = runs
        return runs


def kept_after(days: Days, rounds: range) -> int:
    """Bytes in use after *rounds*."""
    for number in rounds:
        days.round(number)
    days.rest()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def grown(folder: Path, rounds: int) -> tuple[int, Days]:
    """Bytes that *rounds* left, after as many to warm up."""
    days = Days(folder)
    tracemalloc.start()
    try:
        before = kept_after(days, range(rounds))
        return kept_after(days, range(rounds, 2 * rounds)) - before, days
    finally:
        tracemalloc.stop()
        days.end()


def test_what_has_ended_is_forgotten(tmp_path: Path) -> None:
    bytes_kept, days = grown(tmp_path, 12)
    assert days.bound > 24 * 15
    assert days.evicted >= 24
    assert bytes_kept < KEPT_BYTES


@pytest.mark.long
def test_a_day_of_work_leaves_nothing(tmp_path: Path) -> None:
    bytes_kept, days = grown(tmp_path, 600)
    assert days.bound > 1200 * 15
    assert bytes_kept < KEPT_BYTES
