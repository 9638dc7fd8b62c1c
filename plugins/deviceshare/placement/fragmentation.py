"""Fragmentation gradient descent: place an ask where it strands least card room.

A node's fragmentation is the idle card room that the next typical ask could not use, averaged over
the typical asks. Source: Weng et al., "Beware of Fragmentation", USENIX ATC 2023. Neighbours:
``typical`` for the asks.
"""

import numpy as np
from numpy.typing import NDArray

from volcano_py.plugins.deviceshare.placement.state import (
    WHOLE_CARD,
    CardAsk,
    CardNodes,
    Floats,
    Ints,
    Mask,
    Milli,
    tightest_cards,
)
from volcano_py.plugins.deviceshare.placement.typical import ModelClasses, TypicalAsks


class UsableRoom:
    """Card room that the next typical ask could use, summed over the asks weighted by their counts.

    Asks alike in milli, cards and models form one group, P groups in all; CPU enters through a table
    of weights. All figures are whole numbers below 2**53 held in float64, hence exact: a tie is a tie.
    """

    def __init__(self, typical: TypicalAsks) -> None:
        self.pods = int(typical.counts.sum())
        self._classes = ModelClasses(typical)
        asks: list[int] = np.flatnonzero(typical.cards > 0).tolist()
        keys = [_group(typical, t) for t in asks]
        groups = sorted(set(keys))
        self._cpu_steps = np.unique(typical.cpu[asks])
        # (M, B, P): by model class and CPU bin, the pods of each group that could start.
        self._weight = np.zeros((len(self._classes.accepted), len(self._cpu_steps) + 1, len(groups)))
        for t, key in zip(asks, keys, strict=True):
            bins = slice(int(np.searchsorted(self._cpu_steps, typical.cpu[t])) + 1, None)
            pods = np.where(self._classes.accepted[:, t, None], typical.counts[t], 0)
            self._weight[:, bins, groups.index(key)] += pods
        cards = np.array([group[0] for group in groups])
        level = np.array([group[1] for group in groups])
        self._gangs = slice(int(np.searchsorted(cards, 2)), None)
        self._gang_cards = cards[self._gangs]
        # A row per room left on a card; the last one, index -1, is padding and has no room.
        left = np.append(np.arange(WHOLE_CARD + 1), 0)[:, None]
        self._reaches = (left >= level) & (left > 0)
        self._room = np.where(self._reaches, left, 0).astype(np.float64)

    def weights(self, model: Milli, cpu: Ints) -> Floats:
        """(N, P) float64: pods of each group that model and CPU of a node allow."""
        bins = np.searchsorted(self._cpu_steps, cpu, side="right")
        weights: Floats = self._weight[self._classes.of(model), bins]
        return weights

    def after(self, weights: Floats, free: Milli) -> Floats:
        """(N,) float64: usable room of nodes with the given cards, milli times pods."""
        return self._total(weights, self._room[free].sum(axis=1), self._reach(free).sum(axis=1))

    def after_slice(self, weights: Floats, free: Milli, milli: int) -> Floats:
        """(N, G) float64: usable room when *milli* is taken from one card; that card must have it."""
        taken = np.where(free >= milli, free - milli, -1)
        room, reach = self._room[free], self._reach(free)
        room_after = room.sum(axis=1)[:, None] - room + self._room[taken]
        reach_after = reach.sum(axis=1)[:, None] - reach + self._reach(taken)
        return self._total(weights[:, None], room_after, reach_after)

    def _reach(self, free: Milli) -> NDArray[np.int8]:
        return self._reaches[:, self._gangs][free].view(np.int8)

    def _total(self, weights: Floats, room: Floats, reach: NDArray[np.integer]) -> Floats:
        room[..., self._gangs] *= reach >= self._gang_cards
        total: Floats = (weights * room).sum(axis=-1)
        return total


def _group(typical: TypicalAsks, t: int) -> tuple[int, int, tuple[int, ...]]:
    return int(typical.cards[t]), int(typical.milli[t]), tuple(sorted(typical.models[t] or ()))


class FragmentationGradient:
    """The less fragmentation an ask adds, the better; a sigmoid in whole points of 100.

    The whole points are part of the policy: the ties they make go by node order, which fills nodes
    one after another. A slice tries every card, whole cards take the first free ones.
    """

    name = "fragmentation-gradient"
    per_pod = False

    def __init__(self, typical: TypicalAsks) -> None:
        self._usable = UsableRoom(typical)

    def score(self, ask: CardAsk, nodes: CardNodes, draw: int = 0) -> tuple[Floats, Mask]:
        """See ``PlacementPolicy.score``."""
        usable = self._usable
        before = usable.after(usable.weights(nodes.model, nodes.cpu_idle), nodes.free)
        weights = usable.weights(nodes.model, nodes.cpu_idle - ask.cpu_milli)
        if not ask.is_slice:
            chosen = tightest_cards(ask, nodes.free)
            after = usable.after(weights, nodes.free - (chosen * ask.milli).astype(np.int32))
            return self._points(ask, before - after), chosen
        after = usable.after_slice(weights, nodes.free, ask.milli)
        points = np.where(nodes.free >= ask.milli, self._points(ask, before[:, None] - after), -1.0)
        rows, card = np.arange(len(points)), points.argmax(axis=1)
        chosen = np.zeros(points.shape, dtype=np.bool_)
        chosen[rows, card] = True
        return points[rows, card], chosen

    def _points(self, ask: CardAsk, usable_lost: Floats) -> Floats:
        # Fragmentation is idle room less usable room; the ask itself uses up some of the idle room.
        gain = (ask.total_milli * self._usable.pods - usable_lost) / self._usable.pods / WHOLE_CARD
        points: Floats = np.trunc(100 / (1 + np.exp(-gain)))
        return points
