"""Best fit: place an ask where least CPU and card room stays free.

Source: the best-fit baseline of Weng et al., USENIX ATC 2023: the mean of both leftovers, each scaled
by the largest node, in whole points.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from volcano_py.plugins.deviceshare.placement.state import CardAsk, CardNodes, Floats, Mask, tightest_cards


@dataclass(frozen=True)
class BestFit:
    """The less stays free, the better; whole points of 100.

    Attributes:
        cpu_scale: CPU of the largest node, milli-cores.
        cards_scale: cards of the largest node, milli of a card.
    """

    cpu_scale: float = 128_000
    cards_scale: float = 8_000
    name: ClassVar[str] = "best-fit"
    per_pod: ClassVar[bool] = False

    def score(self, ask: CardAsk, nodes: CardNodes, draw: int = 0) -> tuple[Floats, Mask]:
        """See ``PlacementPolicy.score``."""
        cards = np.maximum(nodes.free, 0).sum(axis=1) - ask.total_milli
        left = (nodes.cpu_idle - ask.cpu_milli) / self.cpu_scale * 0.5 + cards / self.cards_scale * 0.5
        points: Floats = np.trunc((1.0 - left) * 100)
        return points, tightest_cards(ask, nodes.free)
