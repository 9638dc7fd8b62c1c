"""Clustering: keep pods that ask alike on the same nodes.

Source: the clustering baseline (Gandiva's affinity) of Weng et al., USENIX ATC 2023. Asks are alike
when both are slices, or both ask the same number of whole cards.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from volcano_py.plugins.deviceshare.placement.state import CardAsk, CardNodes, Floats, Mask, tightest_cards

_QUARTER = 25


@dataclass(frozen=True)
class Clustering:
    """Nodes by what runs there: only asks alike, asks alike among others, nothing, only others.

    Inside each of the four bands of 25 points, a node with less free room on its cards is better.

    Attributes:
        cards_scale: cards of the largest node, milli of a card.
    """

    cards_scale: float = 8_000
    name: ClassVar[str] = "clustering"
    per_pod: ClassVar[bool] = False

    def score(self, ask: CardAsk, nodes: CardNodes, draw: int = 0) -> tuple[Floats, Mask]:
        """See ``PlacementPolicy.score``; an ask without cards scores 0 everywhere."""
        chosen = tightest_cards(ask, nodes.free)
        if ask.count == 0:
            return np.zeros(len(nodes.row)), chosen
        alike = (nodes.kinds & ask.kind_bit) != 0
        band = np.where(alike, np.where(nodes.kinds == ask.kind_bit, 3, 2), np.where(nodes.kinds == 0, 1, 0))
        used = self.cards_scale - np.maximum(nodes.free, 0).sum(axis=1)
        points: Floats = np.trunc(_QUARTER * used / self.cards_scale) + _QUARTER * band
        return points, chosen
