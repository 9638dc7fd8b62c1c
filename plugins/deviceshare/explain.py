"""Why cards refuse a pod, in one line: the obstacle of the nodes that came closest."""

from __future__ import annotations

import numpy as np

from volcano_py.plugins.deviceshare.asks import LARGEST_CARD_MIB, CardRequest, ContainerAsk
from volcano_py.plugins.deviceshare.facts import CardFacts
from volcano_py.plugins.deviceshare.names import WHOLE_CORES
from volcano_py.plugins.deviceshare.needs import need_of
from volcano_py.plugins.deviceshare.room import Room, fits
from volcano_py.plugins.deviceshare.translate import main_ask
from volcano_py.scheduler.model.resources import Mask, Rows32


def no_cards(request: CardRequest, facts: CardFacts, rows: Rows32) -> str:
    """Why nodes *rows* have no cards for *request*, whatever is booked there."""
    count = most_cards(request)
    cards = facts.cards[rows]
    if not facts.positions or not (cards > 0).any():
        return "no card slices registered"
    if cards.max() < count:
        return f"container asks {count} cards, node has {int(cards.max())}"
    if facts.usable[rows].sum(axis=1).max() < count:
        return "cards unhealthy, cordoned or in MIG mode"
    return "card type, mode or UUID not accepted"


def most_cards(request: CardRequest) -> int:
    """Cards that one container needs at once."""
    return max(ask.count for ask in request.asks)


def no_room(request: CardRequest, room: Room) -> str:
    """Why the cards of the nodes of *room* have no room for *request*."""
    ask = main_ask(request)
    need = need_of(ask, room)
    fit = fits(ask, room, need, untouched=request.untouched)
    if _enough(fit, ask).any():
        return "cards have room for each container, but not for all of them together"
    roomy = room.usable & (need.memory <= room.memory)
    if not _enough(roomy, ask).any():
        return _memory(ask, room)
    if not _enough(roomy & (room.slots >= 1), ask).any():
        return f"card slots (all taken on cards with {max(ask.memory_mib, 1)}Mi free)"
    free_cores = roomy & (room.slots >= 1)
    most = int(np.where(free_cores, room.cores, 0).max())
    if most < max(ask.cores, 1):
        if ask.cores == 0:
            return "card in exclusive use (all of its cores are given out)"
        return f"card cores (most free {most}%, asked {ask.cores}%)"
    if ask.cores >= WHOLE_CORES or request.untouched:
        return "card in use, but asked for exclusive use"
    return f"card memory and cores together ({ask.cores}% asked)"


def _memory(ask: ContainerAsk, room: Room) -> str:
    largest = int(np.where(room.usable, np.maximum(room.memory, 0), 0).max(initial=0))
    if ask.memory_mib:
        asked = f"{ask.memory_mib}Mi"
        if ask.memory_mib > LARGEST_CARD_MIB:
            asked += "; the number is in MiB and takes no unit"
    elif ask.percent == 100:
        asked = "a whole card"
    else:
        asked = f"{ask.percent}% of a card"
    if ask.count > 1:
        asked += f" on each of {ask.count} cards"
    return f"card memory (largest free slice {largest}Mi, asked {asked})"


def _enough(cards: Mask, ask: ContainerAsk) -> Mask:
    enough: Mask = cards.sum(axis=1) >= ask.count
    return enough
