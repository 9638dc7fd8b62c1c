"""Dot product: place an ask where it is least aligned with what is free.

Source: Grandl et al., "Multi-resource packing for cluster schedulers", SIGCOMM 2014, in the form
measured by Weng et al., USENIX ATC 2023: both vectors over (CPU, cards), scaled by the largest node.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from volcano_py.plugins.deviceshare.placement.state import CardAsk, CardNodes, Floats, Mask, tightest_cards


@dataclass(frozen=True)
class DotProduct:
    """The smaller the dot product of ask and free room, the better; whole points of 100.

    Attributes:
        cpu_scale: CPU of the largest node, milli-cores.
        cards_scale: cards of the largest node, milli of a card.
    """

    cpu_scale: float = 128_000
    cards_scale: float = 8_000
    name: ClassVar[str] = "dot-product"
    per_pod: ClassVar[bool] = False

    def score(self, ask: CardAsk, nodes: CardNodes, draw: int = 0) -> tuple[Floats, Mask]:
        """See ``PlacementPolicy.score``."""
        free = np.maximum(nodes.free, 0).sum(axis=1)
        cpu = (nodes.cpu_idle / self.cpu_scale) * (ask.cpu_milli / self.cpu_scale)
        cards = (free / self.cards_scale) * (ask.total_milli / self.cards_scale)
        points: Floats = np.trunc(100 * (1 - (cpu + cards) / 2))
        return points, tightest_cards(ask, nodes.free)
