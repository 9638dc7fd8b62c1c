"""The best linked sets of a node's cards against trying all of them, and graphs that are kept."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.crds.cards.scores import encode_scores
from volcano_py.plugins.deviceshare import linkgraph
from volcano_py.plugins.deviceshare.linkgraph import MOST_SCORE, LinkGraph, weights_of
from volcano_py.plugins.deviceshare.wiring import Graphs
from volcano_py.scheduler.model.resources import Ints, Mask

SCORES = st.sampled_from([0, 10, 20, 40, 60, 100, 160, 260, 460, 1260])
"""What a pair of real cards gets: by its way over the board, and a hundred a bridge."""
LEAST_OF_BEST = 0.95
"""What is found without comparing all sets has at least this part of the best sum of links."""


def graph_of(cards: int, scores: Mapping[tuple[int, int], int]) -> LinkGraph:
    """The graph of *cards* cards with *scores* by pair of positions."""
    return LinkGraph(weights_of(cards, scores))


@st.composite
def graphs(draw: Any, most: int) -> tuple[LinkGraph, int, Mask]:
    """A graph with up to *most* cards, how many are asked for, and which of them are free."""
    cards = draw(st.integers(2, most))
    pairs = list(itertools.combinations(range(cards), 2))
    graph = graph_of(cards, dict(zip(pairs, draw(st.tuples(*[SCORES] * len(pairs))), strict=True)))
    count = draw(st.integers(1, cards))
    free = draw(st.sets(st.integers(0, cards - 1), min_size=count))
    return graph, count, np.isin(np.arange(cards), list(free))


def worth(weights: Ints, members: tuple[int, ...], fit: Mask) -> tuple[int, int]:
    """The slow twin: sum of links inside, then the least lost to free cards outside."""
    inner = sum(int(weights[a, b]) for a, b in itertools.combinations(members, 2))
    rest = [at for at in np.flatnonzero(fit).tolist() if at not in members]
    return inner, -sum(int(weights[a, b]) for a in members for b in rest)


def brute(graph: LinkGraph, count: int, fit: Mask) -> tuple[tuple[int, int], set[tuple[int, ...]]]:
    sets = list(itertools.combinations(np.flatnonzero(fit).tolist(), count))
    best = max(worth(graph.weights, members, fit) for members in sets)
    return best, {members for members in sets if worth(graph.weights, members, fit) == best}


def members_of(chosen: Mask) -> tuple[int, ...]:
    return tuple(np.flatnonzero(chosen).tolist())


@given(graphs(8))
def test_all_best_sets_and_no_other(case: tuple[LinkGraph, int, Mask]) -> None:
    graph, count, fit = case
    _, expected = brute(graph, count, fit)
    assert {members_of(row) for row in graph.best(count, fit)} == expected


@given(graphs(10))
def test_what_is_found_is_nearly_the_best(case: tuple[LinkGraph, int, Mask]) -> None:
    """The way of nodes with too many sets to compare, on nodes where they can be compared."""
    graph, count, fit = case
    (best, _), _ = brute(graph, count, fit)
    places = np.flatnonzero(fit)
    islands = [np.isin(places, list(island)) for island in graph.islands]
    found = linkgraph.found_set(graph.weights[np.ix_(places, places)], count, islands)
    members = tuple(places[found].tolist())
    assert len(members) == count
    assert worth(graph.weights, members, fit)[0] >= LEAST_OF_BEST * best


def test_very_large_nodes_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """24 cards in three islands of eight: comparing 735,471 sets is not tried, and an island is found."""
    monkeypatch.setattr(linkgraph, "best_sets", None)
    pairs = itertools.combinations(range(24), 2)
    graph = graph_of(24, {(a, b): 200 if a % 3 == b % 3 else 10 for a, b in pairs})
    fit = np.ones(24, np.bool_)
    fit[0] = False
    [chosen] = graph.best(8, fit)
    assert members_of(chosen) == tuple(range(1, 24, 3))


def test_pairs_of_a_broken_island_go_first() -> None:
    """Two islands of four, of one of which half is in use: two cards come from that one."""
    pairs = itertools.combinations(range(8), 2)
    graph = graph_of(8, {(a, b): 400 if a // 4 == b // 4 else 20 for a, b in pairs})
    fit = np.array([1, 1, 1, 1, 0, 0, 1, 1], np.bool_)
    [chosen] = graph.best(2, fit)
    assert members_of(chosen) == (6, 7)


def test_islands_from_the_strongest_links_on() -> None:
    graph = graph_of(5, {(0, 1): 300, (2, 3): 300, (1, 2): 40})
    assert graph.islands == (frozenset({0, 1}), frozenset({2, 3}), frozenset({0, 1, 2, 3}))


def test_pairs_that_only_count_together() -> None:
    """Two far pairs have the best links of all; each card alone has better links elsewhere."""
    pairs = {(a, b): 10 for a in range(4) for b in range(4, 8)}
    graph = graph_of(8, {**pairs, (0, 1): 500, (2, 3): 400})
    assert members_of(linkgraph.found_set(graph.weights, 4, [])) == (0, 1, 2, 3)


def test_absurd_numbers_of_cards_have_no_links() -> None:
    uuids = tuple(f"g{at:03}" for at in range(65))
    assert Graphs().of(0, encode_scores({("g000", "g001"): 10}), uuids) is None
    assert Graphs().of(0, encode_scores({("g000", "g001"): 10}), uuids[:64]) is not None


def test_absurd_scores_count_as_the_most() -> None:
    graph = graph_of(2, {(0, 1): 2**80})
    assert graph.weights[0, 1] == MOST_SCORE


def test_graphs_are_made_once_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer costs no graph work while the node says the same; nodes that are alike share one graph."""
    made: list[Ints] = []
    original = linkgraph._graph

    def counted(weights: Ints) -> Any:
        made.append(weights)
        return original(weights)

    monkeypatch.setattr(linkgraph, "_graph", counted)
    graphs, first, second = Graphs(), ("a", "b"), ("c", "d")
    text, other = encode_scores({("a", "b"): 50}), encode_scores({("c", "d"): 50})
    one = graphs.of(0, text, first)
    assert graphs.of(0, text, first) is one
    assert len(made) == 1
    assert graphs.of(1, other, second) is one
    assert len(made) == 1
    changed = graphs.of(0, encode_scores({("a", "b"): 60}), first)
    assert changed is not None
    assert changed.weights[0, 1] == 60
    assert graphs.of(0, "what", first) is None


def test_what_is_kept_of_answers_is_bounded_by_its_size() -> None:
    """On 16 cards that are all linked alike every one of up to 12,870 sets is as good as the others."""
    graph = graph_of(16, dict.fromkeys(itertools.combinations(range(16), 2), 200))
    asked = 0
    for away in itertools.combinations(range(16), 3):
        asked += graph.best(6, np.isin(np.arange(16), away, invert=True)).nbytes
    assert 0 < sum(sets.nbytes for sets in graph._known.values()) <= linkgraph._MOST_KEPT < asked
