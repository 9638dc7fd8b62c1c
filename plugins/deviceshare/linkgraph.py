"""The link graph of one node's cards: which of them, taken together, are linked best.

Cards are vertices, links edges, and an edge's score says how much two cards can exchange. Of the sets with
the highest sum of scores those are best that cut the least of the links to the cards left over, so that
whole islands stay whole. Where a node has few sets all are compared; of more, sets are grown from every card
and every island and improved until no exchange of one or two cards helps. Neighbours: ``picking`` (takes one
of the best), ``wiring`` (whose graph it is).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.model.resources import Ints, Mask

if TYPE_CHECKING:
    import networkx as nx

MOST_SETS: Final = comb(16, 8)
"""Sets of cards that are all compared: those of a node with 16 cards."""
MOST_CARDS: Final = 64
"""Of a node with more cards no links are looked at; no machine has as many."""
MOST_SCORE: Final = 10**6
"""No link counts more, whatever a node says; real ones stay below two thousand."""
_MOST_EXCHANGED: Final = 32
"""Of more cards than these only one at a time is exchanged."""
_MOST_KEPT: Final = 1 << 23
"""Bytes of answers that are kept of one graph; with more it begins anew. 8 cards never have so many."""


class LinkGraph:
    """The cards of one node and their links.

    Attributes:
        weights: (g, g) int64, score of each pair; symmetric, 0 without a link and on the diagonal.
        islands: sets of cards that hang together by links of some score at least, the best linked first.
    """

    def __init__(self, weights: Ints) -> None:
        self.weights = weights
        self.islands = _islands(_graph(weights))
        self._known: dict[tuple[int, bytes], Mask] = {}
        self._kept = 0

    def best(self, count: int, fit: Mask) -> Mask:
        """(s, g) the sets of *count* cards of *fit* (g,) that are best by their links, all equally good.

        At least one, for *fit* must have *count* cards. Of a node with very many sets it is one.
        """
        key = count, fit.tobytes()
        if key not in self._known:
            found = self._find(count, fit)
            if self._kept + found.nbytes > _MOST_KEPT:
                self._known, self._kept = {}, 0
            self._known[key] = found
            self._kept += found.nbytes
        return self._known[key]

    def _find(self, count: int, fit: Mask) -> Mask:
        places = np.flatnonzero(fit)
        weights = self.weights[np.ix_(places, places)]
        if comb(len(places), count) <= MOST_SETS:
            among = best_sets(weights, count)
        else:
            inside = [np.isin(places, list(island)) for island in self.islands]
            among = found_set(weights, count, inside)[None, :]
        sets = np.zeros((len(among), len(fit)), np.bool_)
        sets[:, places] = among
        return sets


def weights_of(cards: int, scores: Mapping[tuple[int, int], int]) -> Ints:
    """``LinkGraph.weights`` of *cards* cards with *scores* by pair of positions."""
    weights = np.zeros((cards, cards), np.int64)
    for (one, other), score in scores.items():
        weights[one, other] = weights[other, one] = min(score, MOST_SCORE)
    return weights


def best_sets(weights: Ints, count: int) -> Mask:
    """(s, g) all sets of *count* cards that no other is better than."""
    sets = _sets(len(weights), count)
    members = sets.astype(np.int64)
    inner = ((members @ weights) * members).sum(axis=1)
    outer = members @ weights.sum(axis=1) - inner
    most = inner == inner.max()
    best: Mask = sets[most & (outer == outer[most].min())]
    return best


@lru_cache
def _sets(positions: int, count: int) -> Mask:
    sets = np.zeros((comb(positions, count), positions), np.bool_)
    for at, members in enumerate(combinations(range(positions), count)):
        sets[at, list(members)] = True
    return sets


def found_set(weights: Ints, count: int, islands: list[Mask]) -> Mask:
    """(g,) a set of *count* cards with a high sum of links, found without comparing all."""
    starts = list(np.eye(len(weights), dtype=np.bool_))
    starts += [island for island in islands if island.any()]
    found = {_improved(weights, _resized(weights, count, start)).tobytes() for start in starts}
    sets = [np.frombuffer(chosen, np.bool_) for chosen in sorted(found, reverse=True)]
    return max(sets, key=lambda chosen: _worth(weights, chosen))


def _resized(weights: Ints, count: int, start: Mask) -> Mask:
    """*start* with the best linked cards added, or its worst linked ones taken away, until it has *count*."""
    chosen = start.copy()
    for _ in range(abs(count - int(start.sum()))):
        gain = weights @ chosen
        if chosen.sum() < count:
            chosen[np.where(chosen, -1, gain).argmax()] = True
        else:
            chosen[np.where(chosen, gain, gain.max() + 1).argmin()] = False
    return chosen


def _improved(weights: Ints, chosen: Mask) -> Mask:
    """*chosen* after the best exchanges of one or two cards for as many outside, as long as one helps."""
    chosen = chosen.copy()
    while not chosen.all():
        inside, outside = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        gone, come, gain = _exchange_one(weights, chosen, inside, outside)
        if gain <= 0 and min(len(inside), len(outside)) > 1 and len(chosen) <= _MOST_EXCHANGED:
            gone, come, gain = _exchange_two(weights, chosen, inside, outside)
        if gain <= 0:
            break
        chosen[gone], chosen[come] = False, True
    return chosen


def _exchange_one(weights: Ints, chosen: Mask, inside: Ints, outside: Ints) -> tuple[Ints, Ints, int]:
    """The card to give, the card to take instead, and how much more the links then are."""
    near = weights @ chosen
    swap = near[outside][None, :] - near[inside][:, None] - weights[np.ix_(inside, outside)]
    give, take = divmod(int(swap.argmax()), len(outside))
    return inside[[give]], outside[[take]], int(swap.max())


def _exchange_two(weights: Ints, chosen: Mask, inside: Ints, outside: Ints) -> tuple[Ints, Ints, int]:
    """As ``_exchange_one``, of two at once: those that are nothing alone may be linked to each other."""
    near = weights @ chosen
    gone, come = (np.array(list(combinations(side, 2)), np.int64) for side in (inside, outside))
    lost = near[gone].sum(axis=1) - weights[gone[:, 0], gone[:, 1]]
    won = near[come].sum(axis=1) + weights[come[:, 0], come[:, 1]]
    between = weights[np.ix_(gone.ravel(), come.ravel())].reshape(len(gone), 2, len(come), 2)
    swap = won[None, :] - lost[:, None] - between.sum(axis=(1, 3))
    give, take = divmod(int(swap.argmax()), len(come))
    return gone[give], come[take], int(swap.max())


def _worth(weights: Ints, chosen: Mask) -> tuple[int, int]:
    """How good a set is: the sum of its links, then how few it cuts."""
    gain = weights @ chosen
    inner = int(gain[chosen].sum())
    return inner, inner - int(weights[chosen].sum())


def _graph(weights: NDArray[np.int64]) -> nx.Graph:
    import networkx as nx  # noqa: PLC0415 - loads for a tenth of a second, which only linked cards are worth

    graph = nx.Graph()
    graph.add_nodes_from(range(len(weights)))
    for one, other in zip(*np.nonzero(np.triu(weights, 1)), strict=True):
        graph.add_edge(int(one), int(other), score=int(weights[one, other]))
    return graph


def _islands(graph: nx.Graph) -> tuple[frozenset[int], ...]:
    """What hangs together by links of a score or better, for every score that there is; no single cards."""
    import networkx as nx  # noqa: PLC0415 - see above

    tree = nx.maximum_spanning_tree(graph, weight="score")  # holds together what any level does
    edges = list(tree.edges(data="score"))
    found: dict[frozenset[int], None] = {}
    for level in sorted({score for _, _, score in edges}, reverse=True):
        strong = nx.Graph((one, other) for one, other, score in edges if score >= level)
        parts = sorted(map(frozenset, nx.connected_components(strong)), key=min)
        found.update(dict.fromkeys(parts))
    return tuple(found)
