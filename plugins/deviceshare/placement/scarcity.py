"""What a card model costs those who could go elsewhere: the dearer, the more asks name it.

Streams of typical asks value a node for itself, so a card of a scarce model looks worth no more than
any other until the asks that can go nowhere else arrive. The price holds it back for them. Measured
in docs/placement.md. Neighbours: ``typical`` for the asks, ``expected_fill`` which charges the price.
"""

from collections.abc import Mapping

import numpy as np

from volcano_py.plugins.deviceshare.placement.state import Floats, Milli
from volcano_py.plugins.deviceshare.placement.typical import TypicalAsks


class ModelPrices:
    """Per card model, the part of its cards that asks naming it would take, between 0 and 1.

    Reckoned for pods that together ask as many cards as the cluster has; an ask that names several
    models is spread over their cards evenly. A model that no ask names costs nothing.

    Args:
        typical: the asks to expect.
        cards: number of cards in the cluster by model id.
    """

    def __init__(self, typical: TypicalAsks, cards: Mapping[int, int]) -> None:
        self._price = np.zeros(max(cards, default=-1) + 2)  # the last entry: models not in the cluster
        size = typical.milli * typical.cards * typical.share
        claimed = dict.fromkeys(cards, 0.0)
        for part, named in zip(size / max(float(size.sum()), 1.0), typical.models, strict=True):
            present = [model for model in named or () if cards.get(model, 0) > 0]
            for model in present:
                claimed[model] += float(part) / sum(cards[other] for other in present)
        for model, per_card in claimed.items():
            self._price[model] = min(1.0, per_card * sum(cards.values()))

    def of(self, model: Milli) -> Floats:
        """(N,) float64: the price of a card of each model id."""
        last = len(self._price) - 1
        prices: Floats = self._price[np.where((model >= 0) & (model < last), model, last)]
        return prices
