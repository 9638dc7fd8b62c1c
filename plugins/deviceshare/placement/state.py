"""What a card placement policy sees (an ask, node rows) and what it answers (scores and cards).

Decides nothing by itself; the policies beside it do. A card's room is counted in milli of a card, so
1000 is a wholly free card and a slice is anything below. Neighbours: the policies, ``typical``.
"""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Mask: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Milli: TypeAlias = NDArray[np.int32]

WHOLE_CARD = 1000
_MOST_KINDS = 62


@dataclass(frozen=True)
class CardAsk:
    """What the pods of one task class ask of a node.

    Attributes:
        cpu_milli: CPU, milli-cores.
        memory: bytes.
        milli: room asked on each card, milli of a card; 1000 is a whole card, 0 asks for no card.
        count: cards; 0 asks for no card.
        models: accepted card model ids; None accepts any.
    """

    cpu_milli: int
    memory: int
    milli: int
    count: int
    models: frozenset[int] | None = None

    @property
    def total_milli(self) -> int:
        """Room asked over all cards, milli of a card."""
        return self.milli * self.count

    @property
    def is_slice(self) -> bool:
        """Whether the ask is for a part of one card."""
        return self.count == 1 and 0 < self.milli < WHOLE_CARD

    @property
    def kind_bit(self) -> int:
        """This ask's bit in ``CardNodes.kinds``: slices 1, n whole cards 1 << n, no card 0."""
        if self.count == 0:
            return 0
        return 1 if self.is_slice else 1 << min(self.count, _MOST_KINDS)


@dataclass(frozen=True)
class CardNodes:
    """Node rows, gathered by the caller; a policy never writes to them.

    Attributes:
        row: (N,) int64, the node's identity; stays the same between calls.
        cpu_idle: (N,) int64, milli-cores.
        memory_idle: (N,) int64, bytes.
        free: (N, G) int32, room left on each card, milli of a card; -1 pads nodes with fewer cards.
        model: (N,) int32, card model id.
        kinds: (N,) int64, the ``CardAsk.kind_bit`` of every pod on the node, or-ed together.
    """

    row: Ints
    cpu_idle: Ints
    memory_idle: Ints
    free: Milli
    model: Milli
    kinds: Ints

    def take(self, rows: Ints | Mask) -> "CardNodes":
        """A copy of some rows, by place or by a mask."""
        return CardNodes(
            self.row[rows],
            self.cpu_idle[rows],
            self.memory_idle[rows],
            self.free[rows],
            self.model[rows],
            self.kinds[rows],
        )


class PlacementPolicy(Protocol):
    """Scores nodes for an ask and picks the cards it would take on each.

    A score is a pure function of (ask, the node's row), so a caller may keep it until the row
    changes. The one exception is a policy with ``per_pod`` set: its scores also depend on ``draw``,
    the pod's sequence number, and must be asked for anew for every pod.
    """

    @property
    def name(self) -> str:
        """The configured name."""

    @property
    def per_pod(self) -> bool:
        """Whether scores change with ``draw``."""

    def score(self, ask: CardAsk, nodes: CardNodes, draw: int = 0) -> tuple[Floats, Mask]:
        """Scores of nodes on which *ask* fits, and the cards to take there.

        Args:
            ask: what is to be placed.
            nodes: rows on all of which *ask* fits (see ``fits``).
            draw: the pod's sequence number; only read by a policy with ``per_pod`` set.

        Returns:
            (N,) float64, higher is better, ties go to the caller's first node; and (N, G) bool, the
            chosen cards, ``ask.count`` in each row.
        """


def fits(ask: CardAsk, nodes: CardNodes) -> Mask:
    """(N,) bool: nodes with CPU, memory, an accepted card model and room on enough cards."""
    room = (nodes.cpu_idle >= ask.cpu_milli) & (nodes.memory_idle >= ask.memory)
    if ask.count == 0:
        return room
    if ask.models is not None:
        room &= np.isin(nodes.model, list(ask.models))
    cards: Mask = (nodes.free >= ask.milli).sum(axis=1) >= ask.count
    return room & cards


def tightest_cards(ask: CardAsk, free: Milli) -> Mask:
    """The ``ask.count`` cards of each row with least room that still suffices; ties by index.

    Args:
        ask: fits on every row.
        free: (N, G) int32, as in ``CardNodes.free``.

    Returns:
        (N, G) bool; all False for an ask without cards.
    """
    enough: Mask = (free >= ask.milli) & (free >= 0)
    if ask.count == 0:
        return np.zeros_like(enough)
    if ask.milli >= WHOLE_CARD:  # every card with enough room is equally free: the first ones
        return enough & (np.cumsum(enough, axis=1) <= ask.count)
    order = np.argsort(np.where(enough, free, WHOLE_CARD + 1), axis=1, kind="stable")
    chosen = np.zeros_like(enough)
    np.put_along_axis(chosen, order[:, : ask.count], True, axis=1)
    return chosen
