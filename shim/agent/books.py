"""How much of each card is taken, by what its containers hold: the test that no card is ever over.

Ordinary init containers run one after another and before the others, sidecars from their turn on, so the
largest moment of a pod counts, a card at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from volcano_py.crds.cards.lending import NOTHING
from volcano_py.crds.cards.records import Part
from volcano_py.shim.agent.pods import INIT

Amount = tuple[int, int, int]
"""Shares, MiB, percent."""
_NAMES: Final = ("shares", "MiB of memory", "percent of its cores")


@dataclass(frozen=True, slots=True)
class Room:
    """What a card has to hand out.

    Attributes:
        slots: shares.
        memory_mib, cores: of all shares together, and of a whole card.
        lent: percent of that which may be handed out.
    """

    slots: int
    memory_mib: int
    cores: int
    lent: int = NOTHING

    @property
    def amount(self) -> Amount:
        """As what is taken of it is counted."""
        return self.slots, self.memory_mib * self.lent // NOTHING, self.cores * self.lent // NOTHING


Held = Sequence[tuple[str, Sequence[Part]]]
"""(role, parts) of a pod's containers in the order in which they start."""


def taken(held: Held, rooms: Mapping[str, Room]) -> dict[str, Amount]:
    """What a pod takes of each card at its largest moment; a part without a limit takes all the memory."""
    cards = {part.card for _, parts in held for part in parts}
    return {card: _peak(_on(card, held, rooms.get(card))) for card in cards}


def overfull(pods: Iterable[Held], rooms: Mapping[str, Room]) -> str:
    """Which card is asked for more than it has if all *pods* hold what they say; "" for none."""
    total: dict[str, Amount] = {}
    for held in pods:
        for card, amount in taken(held, rooms).items():
            total[card] = _sum(total.get(card, (0, 0, 0)), amount)
    for card, amount in sorted(total.items()):
        if card not in rooms:
            return f"there is no card {card}"
        for asked, there, name in zip(amount, rooms[card].amount, _NAMES, strict=True):
            if asked > there:
                return f"card {card} would hold {asked} {name}, it has {there}"
    return ""


def _on(card: str, held: Held, room: Room | None) -> list[tuple[str, Amount]]:
    whole = room.memory_mib if room else 0
    moments = []
    for role, parts in held:
        amount: Amount = (0, 0, 0)
        for part in parts:
            if part.card == card:
                amount = _sum(amount, (1, part.memory_mib or whole, part.cores))
        moments.append((role, amount))
    return moments


def _peak(moments: Iterable[tuple[str, Amount]]) -> Amount:
    """The largest moment: an init container beside the sidecars before it, or all that stay."""
    stay: Amount = (0, 0, 0)
    peak: Amount = (0, 0, 0)
    for role, amount in moments:
        if role == INIT:
            peak = _largest(peak, _sum(stay, amount))
        else:
            stay = _sum(stay, amount)
    return _largest(peak, stay)


def _sum(one: Amount, other: Amount) -> Amount:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _largest(one: Amount, other: Amount) -> Amount:
    return max(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2])
