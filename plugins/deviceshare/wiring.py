"""How the cards of some nodes are linked: NUMA nodes, zones, pairs, and scores of pairs.

Neighbours: ``picking``, which takes cards by it; ``linkgraph`` (one node's links); ``crds.cards.scores`` for
the annotation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final
from weakref import WeakValueDictionary

import numpy as np

from volcano_py.crds.cards.errors import WireError
from volcano_py.crds.cards.scores import SCORES, decode_scores
from volcano_py.plugins.deviceshare.asks import CardRequest
from volcano_py.plugins.deviceshare.backend import Chip
from volcano_py.plugins.deviceshare.facts import CardFacts
from volcano_py.plugins.deviceshare.linkgraph import MOST_CARDS, LinkGraph, weights_of
from volcano_py.scheduler.model.kube.objects import Node
from volcano_py.scheduler.model.resources import Ints, Mask, Rows32

_MACHINE: Final = "node.kubernetes.io/instance-type"
_RINGS: Final = "inf"
"""In the type of AWS's machines whose Neuron devices stand in a ring."""


@dataclass(frozen=True, slots=True, eq=False)
class Wiring:
    """(n, G) arrays of the cards of n nodes.

    Attributes:
        numa: NUMA node, -1 unknown.
        zone: cards with the same number are linked better than others; each its own where nothing is known.
            None where no node tells of zones.
        pair: cards with the same number are handed out together, -1 one by one. None without pairs.
        row: cards of one container are neighbours by this number, -1 for those that need not be. None where
            there are no such cards.
        ring: (n,) such a row may begin anywhere, else only at multiples of its length.
        graphs: (n,) the link graph of each node, None where nothing is known. None unless asked for.
    """

    numa: Ints
    zone: Ints | None = None
    pair: Ints | None = None
    row: Ints | None = None
    ring: Mask | None = None
    graphs: tuple[LinkGraph | None, ...] | None = None

    @property
    def links(self) -> Ints:
        """(n, G, G) score of the link of two cards, the higher the better."""
        links = np.zeros((*self.numa.shape, self.numa.shape[1]), np.int64)
        for at, graph in enumerate(self.graphs or ()):
            if graph is not None:
                cards = len(graph.weights)
                links[at, :cards, :cards] = graph.weights
        return links


class Graphs:
    """The link graph of each node, made when its annotation changes; nodes that are alike share one."""

    def __init__(self) -> None:
        self._by_row: dict[int, tuple[str, tuple[str, ...], LinkGraph | None]] = {}
        self._alike: WeakValueDictionary[bytes, LinkGraph] = WeakValueDictionary()

    def of(self, row: int, text: str, uuids: tuple[str, ...]) -> LinkGraph | None:
        """The graph of node *row*, whose annotation is *text* and whose cards are *uuids*.

        None where nothing is known of links, or where *text* can't be read.
        """
        known = self._by_row.get(row)
        if known is None or known[:2] != (text, uuids):
            known = self._by_row[row] = text, uuids, self._read(text, uuids)
        return known[2]

    def _read(self, text: str, uuids: tuple[str, ...]) -> LinkGraph | None:
        at = {uuid: position for position, uuid in enumerate(uuids)}
        try:
            scores = decode_scores(text) if text else {}
        except WireError:
            return None
        known = {(at[a], at[b]): score for (a, b), score in scores.items() if a in at and b in at}
        if not known or len(uuids) > MOST_CARDS:
            return None
        weights = weights_of(len(uuids), known)
        key = weights.tobytes()
        graph = self._alike.get(key)
        if graph is None:
            graph = self._alike[key] = LinkGraph(weights)
        return graph


class Wires:
    """What is known of links, kept as long as the cards stay."""

    def __init__(self, facts: CardFacts, graphs: Graphs) -> None:
        self.facts = facts
        self._graphs = graphs
        self._zone, self._pair = _groups(facts)
        self._row, self._ring = _rows(facts)
        self._links: dict[int, LinkGraph | None] = {}

    @property
    def paired(self) -> bool:
        """Some cards are handed out in pairs or rows."""
        return self._pair is not None or self._row is not None

    def of(self, rows: Rows32, request: CardRequest | None = None) -> Wiring:
        """The wiring of node *rows*, as far as *request* looks at it."""
        numa = self.facts.numa.take(rows, axis=0)
        if request is None:
            return Wiring(numa)
        return Wiring(
            numa,
            None if self._zone is None else self._zone.take(rows, axis=0),
            None if self._pair is None or request.soft else self._pair.take(rows, axis=0),
            None if self._row is None else self._row.take(rows, axis=0),
            None if self._ring is None else self._ring.take(rows),
            tuple(map(self._graph, rows.tolist())) if request.linked else None,
        )

    @cached_property
    def best(self) -> int:
        """The highest score of a link that is known of any node."""
        graphs = (self._graph(row) for row in self.facts.specs)
        return max((int(graph.weights.max()) for graph in graphs if graph is not None), default=0)

    def _graph(self, row: int) -> LinkGraph | None:
        if row not in self._links:
            node: Node | None = self.facts.nodes[row]
            text = "" if node is None else node.metadata.annotations.get(SCORES, "")
            uuids = tuple(spec.uuid for spec in self.facts.specs.get(row, ()))
            self._links[row] = self._graphs.of(row, text, uuids)
        return self._links[row]


def _groups(facts: CardFacts) -> tuple[Ints | None, Ints | None]:
    """(N, G) zones and pairs, None where nobody tells of any."""
    alone = np.tile(-1 - np.arange(facts.positions, dtype=np.int64), (len(facts.cards), 1))
    zone, pair = alone.copy(), np.full(alone.shape, -1, np.int64)
    for row, specs in facts.specs.items():
        for at, spec in enumerate(specs):
            if spec.zone >= 0:
                zone[row, at] = spec.zone
            if isinstance(spec.cut, Chip) and spec.cut.paired:
                pair[row, at] = spec.index // 2
    return (zone if (zone >= 0).any() else None), (pair if (pair >= 0).any() else None)


def _rows(facts: CardFacts) -> tuple[Ints | None, Mask | None]:
    """(N, G) numbers of cards that are taken as neighbours, (N,) whether they stand in a ring; or None."""
    in_rows = {vendor for vendor, backend in facts.catalogue.backends.items() if backend.in_rows}
    row = np.full((len(facts.cards), facts.positions), -1, np.int64)
    ring = np.zeros(len(facts.cards), np.bool_)
    for at, specs in facts.specs.items():
        numbers = [spec.index if spec.vendor in in_rows else -1 for spec in specs]
        row[at, : len(specs)] = numbers
        node: Node | None = facts.nodes[at]
        ring[at] = node is not None and _RINGS in node.metadata.labels.get(_MACHINE, "").lower()
    return (row, ring) if (row >= 0).any() else (None, None)
