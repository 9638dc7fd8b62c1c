"""Packing: shared cards first, then free cards of used nodes, then free nodes.

Source: the packing baseline (MLaaS in the wild) of Weng et al., USENIX ATC 2023.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from volcano_py.plugins.deviceshare.placement.state import (
    WHOLE_CARD,
    CardAsk,
    CardNodes,
    Floats,
    Mask,
    tightest_cards,
)

_SHARED, _USED_NODE, _FREE_NODE = 100, 50, 33


@dataclass(frozen=True)
class Packing:
    """100 to 50 points on cards in use, 50 to 33 on free cards of a used node, below 33 on a free node."""

    name: ClassVar[str] = "packing"
    per_pod: ClassVar[bool] = False

    def score(self, ask: CardAsk, nodes: CardNodes, draw: int = 0) -> tuple[Floats, Mask]:
        """See ``PlacementPolicy.score``; an ask without cards scores 0 everywhere."""
        chosen = tightest_cards(ask, nodes.free)
        if ask.count == 0:
            return np.zeros(len(nodes.row)), chosen
        whole = nodes.free == WHOLE_CARD
        opened = (whole & chosen).sum(axis=1)
        room = np.where(chosen, nodes.free * 100 // WHOLE_CARD, 0).sum(axis=1)
        shared = np.maximum(_SHARED - room // 10, _USED_NODE)
        used_node = np.maximum(_USED_NODE - opened, _FREE_NODE)
        cards = whole.sum(axis=1)
        free_node = np.maximum(_FREE_NODE - cards, cards)
        untouched = cards == (nodes.free >= 0).sum(axis=1)
        points = np.where(untouched, free_node, np.where(opened > 0, used_node, shared))
        return points.astype(np.float64), chosen
