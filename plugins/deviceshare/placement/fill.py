"""How much card room short random streams of typical asks would fill on a node.

The value behind ``expected_fill``: fixed streams per card count, played on many node states at once.
Neighbours: ``typical`` for the asks, ``expected_fill`` which keeps the values.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from volcano_py.plugins.deviceshare.placement.state import WHOLE_CARD, Floats, Ints, Mask, Milli
from volcano_py.plugins.deviceshare.placement.typical import TypicalAsks

Room: TypeAlias = NDArray[np.int16]

_NEVER = np.int16(WHOLE_CARD + 1)  # more room than any card has
_GANG_SHARE, _GANG_PER_POD = 0.03, 5.0


def draw_streams(typical: TypicalAsks, cards: int, streams: int, fill: float, seed: int) -> Ints:
    """(R, n) int64: *streams* fixed streams of ask numbers for nodes with *cards* cards.

    Asks are drawn by systematic sampling (one random offset), so their frequencies over all streams
    are exact to one pod; a stream is long enough to ask for *fill* times the node's cards.
    """
    share = typical.share
    mean_milli = float(share @ (typical.milli * typical.cards))
    length = max(1, round(fill * WHOLE_CARD * cards / mean_milli))
    rng = np.random.default_rng(seed + cards)
    points = (np.arange(streams * length) + rng.random()) / (streams * length)
    cumulative = np.cumsum(share)
    asks = np.searchsorted(cumulative, points * cumulative[-1], side="left")
    rng.shuffle(asks)
    return np.asarray(asks, dtype=np.int64).reshape(streams, length)


def gang_reserve(typical: TypicalAsks) -> Floats:
    """(T,) float64: share of its cards that each kind of gang reserves on a node that can host it.

    A gang is an ask for two or more cards. All gangs of one size together reserve 3 %, less when
    they are rarer than 6 in 1,000 pods.
    """
    share, weight = typical.share, np.zeros(len(typical.cards))
    for cards in np.unique(typical.cards[typical.cards >= 2]):
        same = typical.cards == cards
        of_size = share[same].sum()
        weight[same] = min(_GANG_SHARE, _GANG_PER_POD * of_size) * share[same] / of_size
    return weight


@dataclass(frozen=True)
class _Step:
    """The asks that all R streams make at one step.

    Attributes:
        asks: (R,) ask numbers.
        cpu: (R, 1) int32, milli-cores.
        single: (R, 1) int16, room asked on one card; ``_NEVER`` where not exactly one card is asked.
        size: (R, 1) int32, room asked over all cards.
        no_card: (R', ) streams whose ask wants no card.
        gangs: (cards, milli, streams) of the asks for two or more cards.
    """

    asks: Ints
    cpu: NDArray[np.int32]
    single: Room
    size: NDArray[np.int32]
    no_card: Ints
    gangs: list[tuple[int, int, Ints]]


def _step(typical: TypicalAsks, asks: Ints) -> _Step:
    cards, milli = typical.cards[asks], typical.milli[asks]
    kinds = sorted({(int(c), int(m)) for c, m in zip(cards, milli, strict=True) if c >= 2})
    return _Step(
        asks,
        typical.cpu[asks, None].astype(np.int32),
        np.where(cards == 1, milli, _NEVER)[:, None].astype(np.int16),
        (cards * milli)[:, None].astype(np.int32),
        np.flatnonzero(cards == 0),
        [(c, m, np.flatnonzero((cards == c) & (milli == m))) for c, m in kinds],
    )


class FillStreams:
    """Fixed streams for nodes with one card count, played on many node states at once.

    Arrays are (K, R, S): cards, streams, node states; the states lie side by side in memory.
    """

    def __init__(self, typical: TypicalAsks, streams: Ints) -> None:
        self._streams = len(streams)
        self._steps = [_step(typical, column) for column in streams.T]

    def mean_fill(self, cpu: Ints, free: Milli, accepted: Mask) -> Floats:
        """(S,) float64: card room that a stream fills on each node state, mean over the streams.

        Args:
            cpu: (S,) idle CPU, milli-cores.
            free: (S, K) room left on the cards, ascending.
            accepted: (T, S) whether each typical ask accepts the state's card model.
        """
        shape = (self._streams, len(cpu))
        idle = np.broadcast_to(cpu.astype(np.int32), shape).copy()
        room = np.broadcast_to(free.T[:, None, :], (free.shape[1], *shape)).astype(np.int16)
        filled = np.zeros(shape, dtype=np.int32)
        any_model = bool(accepted.all())
        for step in self._steps:
            able = step.cpu <= idle
            if not any_model:
                able &= accepted[step.asks]
            placed = _place_single(room, np.where(able, step.single, _NEVER))
            placed[step.no_card] = able[step.no_card]
            for cards, milli, streams in step.gangs:
                placed[streams] = _place_gang(room, able[streams], streams, cards, milli)
            idle -= placed * step.cpu
            filled += placed * step.size
        mean: Floats = filled.mean(axis=0)
        return mean


def _place_single(room: Room, need: Room) -> Mask:
    """Take *need* from the tightest card that has it, in place, keeping cards in ascending order.

    Args:
        room: (K, R, S), ascending along K.
        need: (R, S); ``_NEVER`` takes nothing.

    Returns:
        (R, S) bool: where a card was found.
    """
    least = np.where(room >= need, room, _NEVER).min(axis=0)
    found: Mask = least < _NEVER
    left = np.where(found, least - need, _NEVER)
    # The changed card moves down to its place: each card below it takes the median of its lower
    # neighbour, the new room and itself; cards above it (lower neighbour has room) stay.
    moved = np.maximum(room[:-1], np.minimum(left, room[1:]))
    np.copyto(room[1:], np.where(room[:-1] >= need, room[1:], moved))
    np.minimum(room[0], left, out=room[0])
    return found


def _place_gang(room: Room, able: Mask, streams: Ints, cards: int, milli: int) -> Mask:
    """Take *milli* from each of the *cards* tightest cards that have it, in place, where possible."""
    mine = room[:, streams]
    first = (mine < milli).sum(axis=0)
    placed: Mask = able & (first + cards <= len(mine))
    position = np.arange(len(mine))[:, None, None]
    taken = placed & (position >= first) & (position < first + cards)
    room[:, streams] = np.sort(mine - np.int16(milli) * taken, axis=0)
    return placed
