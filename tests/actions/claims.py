"""Claims in few words: a cluster, cycles, and who went for whom."""

from __future__ import annotations

from tests.clusters import Document, engine
from volcano_py.scheduler.engine import CycleResult, Engine

NOW = 1767225600.0
"""2026-01-01T00:00:00Z; pods of ``tests.clusters`` run for twelve hours by then."""
CONFIG = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf, enablePreemptable: false}, {name: predicates}, {name: SHARES}, {name: nodeorder}]
"""
LOW, MID, HIGH = "low", "mid", "high"
CLASSES: list[Document] = [
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }
    for name, value in ((LOW, 10), (MID, 50), (HIGH, 100))
]


def cluster(*documents: Document, shares: str = "proportion", config: str = CONFIG) -> Engine:
    """An engine with priority classes and *documents*."""
    return engine(*CLASSES, *documents, config=config.replace("SHARES", shares))


def evicted(result: CycleResult) -> list[str]:
    """Names of the pods that go, sorted."""
    return sorted(d.pod.removeprefix("ml/") for d in result.decisions if d.kind == "evict")


def promised(result: CycleResult) -> dict[str, str]:
    """Pod -> node of the room that is kept for it."""
    return {d.pod.removeprefix("ml/"): d.node for d in result.decisions if d.kind == "pipeline"}


def reason(result: CycleResult, name: str) -> str:
    """Why pod *name* waits."""
    return result.refusals[f"ml/{name}"].message
