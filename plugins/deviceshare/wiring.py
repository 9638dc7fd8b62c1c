"""How the cards of some nodes are linked: NUMA nodes, zones, pairs, and scores of pairs.

Neighbours: ``picking``, which takes cards by it; ``crds.cards.scores`` for the annotation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from volcano_py.crds.cards.errors import WireError
from volcano_py.crds.cards.scores import SCORES, decode_scores
from volcano_py.plugins.deviceshare.asks import CardRequest
from volcano_py.plugins.deviceshare.backend import Chip
from volcano_py.plugins.deviceshare.facts import CardFacts
from volcano_py.scheduler.model.kube.objects import Node
from volcano_py.scheduler.model.resources import Ints, Rows32


@dataclass(frozen=True, slots=True, eq=False)
class Wiring:
    """(n, G) arrays of the cards of n nodes.

    Attributes:
        numa: NUMA node, -1 unknown.
        zone: cards with the same number are linked better than others; each its own where nothing is known.
            None where no node tells of zones.
        pair: cards with the same number are handed out together, -1 one by one. None without pairs.
        links: (n, G, G) score of the link of two cards, the higher the better. None unless asked for.
    """

    numa: Ints
    zone: Ints | None = None
    pair: Ints | None = None
    links: Ints | None = None


class Wires:
    """What is known of links, kept as long as the cards stay."""

    def __init__(self, facts: CardFacts) -> None:
        self.facts = facts
        self._zone, self._pair = _groups(facts)
        self._links: dict[int, Ints] = {}
        self.best = 0

    @property
    def paired(self) -> bool:
        """Some cards are handed out in pairs."""
        return self._pair is not None

    def of(self, rows: Rows32, request: CardRequest | None = None) -> Wiring:
        """The wiring of node *rows*, as far as *request* looks at it."""
        numa = self.facts.numa.take(rows, axis=0)
        if request is None:
            return Wiring(numa)
        return Wiring(
            numa,
            None if self._zone is None else self._zone.take(rows, axis=0),
            None if self._pair is None or request.soft else self._pair.take(rows, axis=0),
            self._links_of(rows) if request.linked else None,
        )

    def _links_of(self, rows: Rows32) -> Ints:
        """(n, G, G) link scores."""
        places = self.facts.positions
        links = np.zeros((len(rows), places, places), np.int64)
        for at, row in enumerate(rows.tolist()):
            if row not in self._links:
                self._links[row] = self._read(row)
                self.best = max(self.best, int(self._links[row].max(initial=0)))
            links[at] = self._links[row]
        return links

    def _read(self, row: int) -> Ints:
        """(G, G) scores of one node; none of one whose annotation can't be read."""
        places = self.facts.positions
        links = np.zeros((places, places), np.int64)
        node: Node | None = self.facts.nodes[row]
        text = "" if node is None else node.metadata.annotations.get(SCORES, "")
        if not text:
            return links
        at = {spec.uuid: position for position, spec in enumerate(self.facts.specs.get(row, ()))}
        try:
            scores = decode_scores(text)
        except WireError:
            return links
        for (one, other), score in scores.items():
            if one in at and other in at:
                links[at[one], at[other]] = links[at[other], at[one]] = score
        return links


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
