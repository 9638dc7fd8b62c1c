"""Random: any node on which the ask fits, and any card there, with equal chance.

The yardstick of the published comparison, not a policy to run a cluster with.
"""

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from volcano_py.plugins.deviceshare.placement.state import (
    CardAsk,
    CardNodes,
    Floats,
    Mask,
    tightest_cards,
)

_Words: TypeAlias = NDArray[np.uint64]

# splitmix64 (Steele, Lea, Flood 2014): a counter in, well-mixed 64 bits out.
_STEP = 0x9E3779B97F4A7C15
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_WORD = (1 << 64) - 1


def _mixed(counter: _Words) -> _Words:
    word = (counter ^ (counter >> np.uint64(30))) * _MIX_1
    word = (word ^ (word >> np.uint64(27))) * _MIX_2
    return word ^ (word >> np.uint64(31))


@dataclass(frozen=True)
class Random:
    """A score per (seed, pod, node) and a rank per card, from a hash; no state between calls.

    Attributes:
        seed: chooses the sequence of draws.
    """

    seed: int = 0
    name: ClassVar[str] = "random"
    per_pod: ClassVar[bool] = True

    def score(self, ask: CardAsk, nodes: CardNodes, draw: int = 0) -> tuple[Floats, Mask]:
        """See ``PlacementPolicy.score``; scores are uniform in [0, 1)."""
        start = np.uint64((self.seed * _STEP + 1) & _WORD)
        pod = _mixed(np.array([start], dtype=np.uint64) + np.uint64((draw * _STEP) & _WORD))
        per_node = _mixed(pod + nodes.row.astype(np.uint64) * np.uint64(_STEP))
        scores: Floats = (per_node >> np.uint64(11)).astype(np.float64) * 2.0**-53
        if not ask.is_slice:
            return scores, tightest_cards(ask, nodes.free)
        cards = np.arange(1, nodes.free.shape[1] + 1, dtype=np.uint64) * np.uint64(_STEP)
        rank = _mixed(per_node[:, None] + cards)
        best = np.where(nodes.free >= ask.milli, rank, np.uint64(0)).argmax(axis=1)
        chosen = np.zeros(nodes.free.shape, dtype=np.bool_)
        chosen[np.arange(len(best)), best] = True
        return scores, chosen
