from pathlib import Path

import numpy as np
import pytest

from volcano_py.plugins.deviceshare.placement import POLICIES, PlacementPolicy, make_policy, typical_for
from volcano_py.plugins.deviceshare.placement.fragmentation import UsableRoom
from volcano_py.simulator.openb_reference import History, outcome, play
from volcano_py.simulator.openb_workload import Trace, read_trace, tuned_workload

OPENB = Path(__file__).parents[1] / "data" / "openb"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return read_trace(OPENB / "nodes.csv", OPENB / "pods.csv")


def policy(trace: Trace, name: str) -> PlacementPolicy:
    return make_policy(name, typical=typical_for(name, trace.counts()), seed=42, cards=trace.cards)


@pytest.mark.parametrize("name", POLICIES)
def test_scores_kept_until_a_node_changes_decide_as_fresh_ones(trace: Trace, name: str) -> None:
    workload = tuned_workload(trace, 42)
    kept = play(trace, workload, policy(trace, name))
    fresh = play(trace, workload, policy(trace, name), remember=False)
    assert kept.node.tolist() == fresh.node.tolist()
    assert kept.free.tolist() == fresh.free.tolist()


@pytest.mark.parametrize("name", POLICIES)
def test_no_node_gives_more_than_it_has(trace: Trace, name: str) -> None:
    workload = tuned_workload(trace, 7)
    history = play(trace, workload, policy(trace, name))
    taken = [(trace.asks[pod], row) for pod, row in zip(workload.arrivals, history.node, strict=True)]
    for row in range(len(trace.node_names)):
        asks = [ask for ask, node in taken if node == row]
        assert sum(ask.cpu_milli for ask in asks) <= trace.nodes.cpu_idle[row]
        assert sum(ask.memory for ask in asks) <= trace.nodes.memory_idle[row]
        last = history.free[history.node == row][-1] if asks else trace.nodes.free[row]
        assert last.max() <= 1000
        assert last.min() >= -1
        left = np.maximum(last, 0).sum() + sum(ask.total_milli for ask in asks)
        assert left == np.maximum(trace.nodes.free[row], 0).sum()
        assert all(ask.models is None or trace.nodes.model[row] in ask.models for ask in asks)


@pytest.mark.parametrize(
    ("name", "alloc", "unplaced"),
    [
        ("random", 88.39, 82),
        ("dot-product", 91.51, 91),
        ("clustering", 95.45, 81),
        ("packing", 94.15, 85),
        ("best-fit", 93.70, 84),
        ("fragmentation-gradient", 94.51, 85),
        ("expected-fill", 96.65, 79),
    ],
)
def test_figures_of_seed_42_stay(trace: Trace, name: str, alloc: float, unplaced: int) -> None:
    workload = tuned_workload(trace, 42)
    history = play(trace, workload, policy(trace, name))
    asks = typical_for("fragmentation-gradient", trace.counts())
    assert asks is not None
    figures = outcome(trace, workload, history, UsableRoom(asks))
    assert figures.alloc_pct[130] == pytest.approx(alloc, abs=0.005)
    assert figures.unplaced == unplaced
    assert sum(figures.placed.values()) + unplaced == len(workload.arrivals)


def test_buckets_and_fragments_by_hand(trace: Trace) -> None:
    workload = tuned_workload(trace, 42)
    nothing = np.full(len(workload.arrivals), -1)
    arrived = np.cumsum([trace.asks[pod].total_milli for pod in workload.arrivals])
    empty = History(
        arrived,
        np.zeros_like(arrived),
        nothing,
        nothing,
        np.full((len(nothing), 8), -1, np.int32),
        nothing.astype(np.int32),
    )
    asks = typical_for("fragmentation-gradient", trace.counts())
    assert asks is not None
    figures = outcome(trace, workload, empty, UsableRoom(asks))
    assert set(figures.alloc_pct.values()) == {0.0}
    assert max(figures.alloc_pct) == 130
    assert figures.unplaced == len(workload.arrivals)
    # An empty cluster is fragmented exactly as far as asks without cards go, and asks for other models.
    assert len({round(value, 9) for value in figures.frag_pct.values()}) == 1
    assert 0 < figures.frag_pct[130] < 60
