"""Several cards at once by their links, zones and pairs, against trying all sets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.deviceshare.test_linkgraph import graph_of
from volcano_py.plugins.deviceshare.asks import CardRequest
from volcano_py.plugins.deviceshare.linkgraph import LinkGraph
from volcano_py.plugins.deviceshare.picking import pick
from volcano_py.plugins.deviceshare.wiring import Wiring
from volcano_py.scheduler.model.resources import Ints, Mask

LINKED = CardRequest((), linked=True)
PLAIN = CardRequest(())


def random_links(rng: np.random.Generator, rows: int, cards: int) -> Ints:
    half = np.triu(rng.integers(0, 6, (rows, cards, cards)) * 10, 1)
    return half + half.transpose(0, 2, 1)


def worth(links: Ints, chosen: Mask) -> int:
    at = np.flatnonzero(chosen)
    return int(sum(links[one, other] for one, other in itertools.combinations(at, 2)))


def linked_wiring(links: Ints) -> Wiring:
    return Wiring(np.zeros(links.shape[:2], np.int64), graphs=tuple(map(LinkGraph, links)))


@pytest.mark.parametrize("count", [2, 3, 4, 7, 8])
def test_the_best_linked_set(count: int) -> None:
    rng = np.random.default_rng(count)
    links, fit = random_links(rng, 40, 8), rng.random((40, 8)) < 0.85
    key = rng.integers(0, 100, (40, 8))
    chosen, ok = pick(LINKED, count, fit, key, linked_wiring(links))
    for row in range(40):
        fitting = np.flatnonzero(fit[row])
        assert ok[row] == (len(fitting) >= count)
        if not ok[row]:
            continue
        assert not (chosen[row] & ~fit[row]).any()
        sets = itertools.combinations(fitting, count)
        best = max(sum(links[row][a, b] for a, b in itertools.combinations(each, 2)) for each in sets)
        assert worth(links[row], chosen[row]) == best


def test_an_island_of_a_large_node() -> None:
    """16 cards in two groups that are linked well inside: eight of one group, and the same again."""
    links = np.full((3, 16, 16), 10, np.int64)
    links[:, :8, :8] = links[:, 8:, 8:] = 50
    links[:, range(16), range(16)] = 0
    fit, key = np.ones((3, 16), np.bool_), np.tile(np.arange(16)[::-1], (3, 1))
    fit[1, 9] = False
    wiring = linked_wiring(links)
    chosen, ok = pick(LINKED, 8, fit, key, wiring)
    assert ok.all()
    assert [np.flatnonzero(row).tolist() for row in chosen] == [
        list(range(8, 16)),
        list(range(8)),
        list(range(8, 16)),
    ]
    again, _ = pick(LINKED, 8, fit, key, wiring)
    assert (again == chosen).all()


def test_a_node_without_links_goes_by_the_key() -> None:
    links = np.zeros((2, 3, 3), np.int64)
    links[1, 1, 2] = links[1, 2, 1] = 100
    wiring = Wiring(np.zeros((2, 3), np.int64), graphs=(None, LinkGraph(links[1])))
    key = np.tile(np.arange(3), (2, 1))
    chosen, _ = pick(LINKED, 2, np.ones((2, 3), np.bool_), key, wiring)
    assert [np.flatnonzero(row).tolist() for row in chosen] == [[0, 1], [1, 2]]


def test_nodes_with_fewer_cards_than_others() -> None:
    """The second node has two cards of the three positions that the first one fills."""
    graphs = (graph_of(3, {(0, 2): 50}), graph_of(2, {(0, 1): 10}))
    fit = np.array([[1, 1, 1], [1, 1, 0]], np.bool_)
    wiring = Wiring(np.zeros((2, 3), np.int64), graphs=graphs)
    chosen, ok = pick(LINKED, 2, fit, np.zeros((2, 3), np.int64), wiring)
    assert ok.all()
    assert [np.flatnonzero(row).tolist() for row in chosen] == [[0, 2], [0, 1]]


def test_one_card_leaves_the_others_their_links() -> None:
    wiring = Wiring(np.zeros((1, 3), np.int64), graphs=(graph_of(3, {(0, 1): 100, (0, 2): 10}),))
    chosen, _ = pick(LINKED, 1, np.ones((1, 3), np.bool_), np.zeros((1, 3), np.int64), wiring)
    assert np.flatnonzero(chosen[0]).tolist() == [2]


@pytest.mark.parametrize(
    ("zone", "fit", "count", "expected"),
    [
        ([0, 0, 1, 1, 1], [1, 1, 1, 1, 1], 2, [0, 1]),  # the smaller zone is enough
        ([0, 0, 1, 1, 1], [1, 1, 1, 1, 1], 3, [2, 3, 4]),
        ([0, 0, 1, 1, 1], [1, 0, 1, 1, 1], 2, [2, 3]),
        ([0, 0, 1, 1, 1], [1, 1, 1, 1, 1], 4, [0, 2, 3, 4]),  # none is enough: the largest first
        ([-1, -2, 5, -4, 5], [1, 1, 1, 1, 1], 2, [2, 4]),  # without a zone each is alone
    ],
)
def test_cards_of_one_zone(zone: list[int], fit: list[int], count: int, expected: list[int]) -> None:
    wiring = Wiring(np.zeros((1, 5), np.int64), zone=np.array([zone]))
    key = np.arange(5)[None, :]
    chosen, ok = pick(PLAIN, count, np.array([fit], np.bool_), key, wiring)
    assert ok[0]
    assert np.flatnonzero(chosen[0]).tolist() == expected


def test_pairs_stay_together() -> None:
    pair = np.array([[0, 0, 1, 1, 2, 2]])
    fit = np.array([[1, 0, 1, 1, 1, 1]], np.bool_)
    key = np.array([[0, 0, 9, 1, 5, 5]])
    wiring = Wiring(np.zeros((1, 6), np.int64), pair=pair)
    chosen, ok = pick(PLAIN, 2, fit, key, wiring)
    assert ok[0]
    assert np.flatnonzero(chosen[0]).tolist() == [2, 3]
    assert pick(PLAIN, 4, fit, key, wiring)[1][0]
    assert not pick(PLAIN, 6, fit, key, wiring)[1][0]
