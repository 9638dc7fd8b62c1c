"""Many pods of one class at once: how many more of them a node's cards take, and what each of them gets.

Only for pods whose cards don't depend on each other but by what they leave: one container, one share, no part
of the hardware, no wishes about links. Then a card takes as many of them as its own room says, in whatever
order, so a node can be known many pods ahead. Gives what ``choose`` gives pod by pod.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from volcano_py.plugins.deviceshare.asks import CardRequest, ContainerAsk
from volcano_py.plugins.deviceshare.choose import CORES, SPREAD, TENANT, card_key
from volcano_py.plugins.deviceshare.facts import CardFacts
from volcano_py.plugins.deviceshare.names import WHOLE_CORES
from volcano_py.plugins.deviceshare.needs import need_of
from volcano_py.plugins.deviceshare.picking import NEVER
from volcano_py.plugins.deviceshare.room import Room, fits
from volcano_py.scheduler.model.resources import Ints


def independent(request: CardRequest, facts: CardFacts) -> bool:
    """Whether pods that ask *request* are of the kind that this module is for."""
    if len(request.asks) != 1 or request.asks[0].count != 1:
        return False
    wishes = request.numa or request.linked or request.together or request.weights or request.rules
    return not wishes and (facts.cut is None or request.soft)


def shares(request: CardRequest, room: Room) -> Ints:
    """(n,) how many pods the cards of each node take, one after another."""
    [ask] = request.asks
    need = need_of(ask, room)
    fit = fits(ask, room, need, untouched=request.untouched)
    count = np.minimum(room.memory // np.maximum(need.memory, 1), room.slots)
    if ask.cores:
        count = np.minimum(count, room.cores // ask.cores)
    if request.untouched:
        count = np.minimum(count, 1)
    elif ask.cores >= WHOLE_CORES:
        count = np.where(room.cores_total == WHOLE_CORES, np.minimum(count, 1), count)
    total: Ints = np.where(fit, count, 0).sum(axis=1)
    return total


def cards_in_turn(request: CardRequest, room: Room, visits: list[int], order: str) -> list[int]:
    """The card positions of pods that come to the rows *visits* of *room*, one after another.

    Most rows see one pod, so the first of each is found for all rows at once.
    """
    [ask] = request.asks
    need = need_of(ask, room)
    fit = fits(ask, room, need, untouched=request.untouched)
    first = np.where(fit, card_key(request, room, order), NEVER).argmin(axis=1).tolist()
    seen: dict[int, Turns | None] = {}
    found = []
    for row in visits:
        if row not in seen:
            seen[row] = None
            found.append(first[row])
            continue
        turns = seen[row]
        if turns is None:
            turns = seen[row] = Turns(request, room, row, order)
            turns.next()
        found.append(turns.next())
    return found


class Turns:
    """The cards of one node, while pods of one class come to it.

    Each list has an entry for each card position that may be taken at all.
    """

    def __init__(self, request: CardRequest, room: Room, row: int, order: str) -> None:
        self.ask: ContainerAsk = request.asks[0]
        self.untouched = request.untouched
        self.at = [at for at, usable in enumerate(room.usable[row].tolist()) if usable]
        columns = (room.memory, room.cores, room.slots, room.tenants, room.memory_total, room.cores_total)
        taken = [column[row].tolist() for column in columns]
        self.cards = [[column[at] for column in taken] for at in self.at]
        self.key: Callable[[list[int]], int] = _by_spread if order == SPREAD else _by_room

    def next(self) -> int:
        """The position that the next pod gets; raises ``ValueError`` if no card takes it."""
        best, least = -1, 0
        for number, card in enumerate(self.cards):
            if self._takes(card):
                key = self.key(card)
                if best < 0 or key < least:
                    best, least = number, key
        if best < 0:
            raise ValueError(f"no card has room for container {self.ask.container}")
        card = self.cards[best]
        card[0] -= self.ask.memory_on(card[4])
        card[1] -= self.ask.cores
        card[2] -= 1
        card[3] += 1
        return self.at[best]

    def _takes(self, card: list[int]) -> bool:
        """As ``room.fits``, of one card."""
        ask = self.ask
        if ask.memory_on(card[4]) > card[0] or card[2] < 1 or card[1] < (ask.cores or 1):
            return False
        if self.untouched:
            return card[3] == 0
        return ask.cores < WHOLE_CORES or card[3] == 0 or card[5] != WHOLE_CORES


def _by_room(card: list[int]) -> int:
    """As ``choose`` orders cards for binpack."""
    return card[0] * CORES + min(card[1], CORES - 1)


def _by_spread(card: list[int]) -> int:
    return card[3] * TENANT - _by_room(card)
