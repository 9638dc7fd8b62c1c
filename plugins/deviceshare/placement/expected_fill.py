"""Expected fill: place an ask where least future use of the cards is lost.

A node is worth the card room that a short random stream of typical asks would still fill on it, plus
a small reserve for every kind of gang it could host. Streams spend CPU as well as cards, so cards
without cores are worth little. Cards of a model that many asks name cost extra, so asks that can go
elsewhere do. Nothing that fits is refused. Neighbours: ``fill`` for the streams, ``scarcity`` for the
price, ``typical`` for the asks; figures and their limits are in docs/placement.md.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from volcano_py.plugins.deviceshare.placement.fill import FillStreams, draw_streams, gang_reserve
from volcano_py.plugins.deviceshare.placement.scarcity import ModelPrices
from volcano_py.plugins.deviceshare.placement.state import (
    CardAsk,
    CardNodes,
    Floats,
    Ints,
    Mask,
    Milli,
    tightest_cards,
)
from volcano_py.plugins.deviceshare.placement.typical import ModelClasses, TypicalAsks

_States: TypeAlias = NDArray[np.int32]


class NodeValues:
    """Values of node states, each worked out once.

    A state is (class of card model, idle CPU, room per card in ascending order, -1 for no card).

    Args:
        typical: the asks to expect.
        streams: number of random streams per card count; more is steadier and slower.
        fill: length of a stream, in multiples of a node's cards.
        seed: chooses the streams.
    """

    def __init__(self, typical: TypicalAsks, streams: int = 32, fill: float = 2.0, seed: int = 7) -> None:
        self._typical = typical
        self._drawn = (streams, fill, seed)
        self._streams: dict[int, FillStreams] = {}
        self._memo: dict[bytes, float] = {}
        self._classes = ModelClasses(typical)
        with_cards = typical.cards > 0
        self._least_cpu = int(typical.cpu[with_cards].min(initial=0))
        self._least_room = int(typical.milli[with_cards].min(initial=0))
        self._gangs = np.flatnonzero(typical.cards >= 2)
        self._reserve = gang_reserve(typical)[self._gangs]

    def of(self, model: Milli, cpu: Ints, free: Milli) -> Floats:
        """(S,) float64: milli of a card that each state is worth.

        Args:
            model: (S,) card model ids.
            cpu: (S,) idle CPU, milli-cores.
            free: (S, G) room per card, ascending; -1 where there is no card.
        """
        room = np.where((free >= 0) & (free < self._least_room), 0, free)  # no ask can use less
        values = np.zeros(len(cpu))
        usable = np.flatnonzero((cpu >= self._least_cpu) & (room[:, -1] > 0))
        states = np.column_stack((self._classes.of(model), cpu, room))[usable].astype(np.int32)
        values[usable] = self._recall(states)
        return values

    def _recall(self, states: _States) -> Floats:
        width = states.shape[1] * states.itemsize
        packed = states.tobytes()
        keys = [packed[i : i + width] for i in range(0, len(packed), width)]
        memo = self._memo
        new = {key: i for i, key in enumerate(keys) if key not in memo}
        if new:
            memo.update(zip(new, self._work_out(states[list(new.values())]).tolist(), strict=True))
        return np.array([memo[key] for key in keys])

    def _work_out(self, states: _States) -> Floats:
        values = np.empty(len(states))
        cards = (states[:, 2:] >= 0).sum(axis=1)
        for count in np.unique(cards):
            mine = cards == count
            values[mine] = self._with_cards(int(count), states[mine])
        return values

    def _with_cards(self, cards: int, states: _States) -> Floats:
        if cards not in self._streams:
            drawn = draw_streams(self._typical, cards, *self._drawn)
            self._streams[cards] = FillStreams(self._typical, drawn)
        accepted = self._classes.accepted[states[:, 0]].T
        cpu, free = states[:, 1].astype(np.int64), states[:, -cards:]
        return self._streams[cards].mean_fill(cpu, free, accepted) + self._reserved(cpu, free, accepted)

    def _reserved(self, cpu: Ints, free: Milli, accepted: Mask) -> Floats:
        """(S,) float64: reserve on the cards of all gangs that each state could host."""
        reserved = np.zeros(len(cpu))
        for gang, weight in zip(self._gangs, self._reserve, strict=True):
            cards, milli = self._typical.cards[gang], self._typical.milli[gang]
            copies = (free >= milli).sum(axis=1) // cards
            if self._typical.cpu[gang] > 0:
                copies = np.minimum(copies, cpu // self._typical.cpu[gang])
            reserved += weight * milli * cards * copies * accepted[gang]
        return reserved


class ExpectedFill:
    """The less a node's value falls, and the less its cards are sought by name, the better.

    Args:
        values: of node states.
        prices: of card models; None charges nothing.
        price_weight: value lost per milli taken on a card of price 1; 1 is all of it.
    """

    name = "expected-fill"
    per_pod = False

    def __init__(
        self, values: NodeValues, prices: ModelPrices | None = None, price_weight: float = 0.5
    ) -> None:
        self._values, self._prices, self._weight = values, prices, price_weight

    def score(self, ask: CardAsk, nodes: CardNodes, draw: int = 0) -> tuple[Floats, Mask]:
        """See ``PlacementPolicy.score``; scores are milli of a card, mostly negative."""
        gain, chosen = (self._score_slice if ask.is_slice else self._score_cards)(ask, nodes)
        if self._prices is not None:
            gain = gain - self._weight * ask.total_milli * self._prices.of(nodes.model)
        return gain, chosen

    def _score_cards(self, ask: CardAsk, nodes: CardNodes) -> tuple[Floats, Mask]:
        chosen = tightest_cards(ask, nodes.free)
        before, after = np.sort(nodes.free, axis=1), np.sort(nodes.free - ask.milli * chosen, axis=1)
        rows = np.arange(len(before))
        return self._gain(ask, nodes, before, rows, after), chosen

    def _score_slice(self, ask: CardAsk, nodes: CardNodes) -> tuple[Floats, Mask]:
        before = np.sort(nodes.free, axis=1)
        distinct = before >= ask.milli
        distinct[:, 1:] &= before[:, 1:] != before[:, :-1]
        rows, place = np.nonzero(distinct)
        after = before[rows]
        after[np.arange(len(rows)), place] -= ask.milli
        gains = np.full(before.shape, -np.inf)
        gains[rows, place] = self._gain(ask, nodes, before, rows, np.sort(after, axis=1))
        every = np.arange(len(before))
        best = gains.argmax(axis=1)
        card = (nodes.free == before[every, best][:, None]).argmax(axis=1)
        chosen = np.zeros(before.shape, dtype=np.bool_)
        chosen[every, card] = True
        return gains[every, best], chosen

    def _gain(self, ask: CardAsk, nodes: CardNodes, before: Milli, rows: Ints, after: Milli) -> Floats:
        """(M,) float64: value of each *after* less that of the node, ``rows[m]``, it came from."""
        values = self._values.of(
            np.concatenate((nodes.model, nodes.model[rows])),
            np.concatenate((nodes.cpu_idle, nodes.cpu_idle[rows] - ask.cpu_milli)),
            np.concatenate((before, after)),
        )
        gain: Floats = values[len(before) :] - values[: len(before)][rows]
        return gain
