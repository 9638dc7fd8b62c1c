"""Why cards refuse a pod, in one line: the obstacle of the nodes that came closest."""

from __future__ import annotations

from typing import Final

import numpy as np

from volcano_py.plugins.deviceshare.asks import LARGEST_CARD_MIB, CardRequest, ContainerAsk
from volcano_py.plugins.deviceshare.backend import Chip
from volcano_py.plugins.deviceshare.facts import CardFacts
from volcano_py.plugins.deviceshare.mig import Geometry
from volcano_py.plugins.deviceshare.names import WHOLE_CORES
from volcano_py.plugins.deviceshare.needs import need_of
from volcano_py.plugins.deviceshare.room import Room, fits
from volcano_py.plugins.deviceshare.translate import main_ask
from volcano_py.scheduler.model.resources import Mask, Rows32

NO_CARDS: Final = "no card slices registered"


def no_cards(request: CardRequest, facts: CardFacts, blank: Room, rows: Rows32) -> str:
    """Why nodes *rows*, whose cards have the room *blank*, have none for *request*, whatever is booked."""
    count = most_cards(request)
    cards = facts.cards[rows]
    if not (cards > 0).any():
        return NO_CARDS
    if cards.max() < count:
        return f"container asks {count} cards, node has {int(cards.max())}"
    if facts.usable[rows].sum(axis=1).max() < count:
        return "cards unhealthy, cordoned or in MIG mode, or their device plugin is away"
    if facts.eligible(request.selection)[rows].sum(axis=1).max() < count:
        return "card type, mode or UUID not accepted"
    return _never(request, blank)


def possible(request: CardRequest, blank: Room) -> Mask:
    """(n,) nodes whose cards, with nobody on them, take each container of *request*."""
    ok = np.ones(len(blank.usable), np.bool_)
    for ask in request.asks:
        ok &= _enough(fits(ask, blank, need_of(ask, blank), untouched=False), ask)
    return ok


def _never(request: CardRequest, blank: Room) -> str:
    """Why no card of *blank* could ever take *request*, and the nearest that could be had of it."""
    for ask in request.asks:
        need = need_of(ask, blank)
        if _enough(fits(ask, blank, need, untouched=False), ask).any():
            continue
        if need.possible is not None and not (need.possible & blank.usable).any():
            return f"no card can be cut so ({_nearest(ask, blank)})"
        return _memory(ask, blank, "the largest card has")
    return "no node has cards for each of the containers"


def _nearest(ask: ContainerAsk, blank: Room) -> str:
    """The part that comes closest to what can't be had."""
    parts: set[tuple[int, str]] = set()
    for cut in blank.cuts:
        if isinstance(cut, Geometry):
            parts |= {(option.memory_mib, option.profile) for option in cut.options}
        elif isinstance(cut, Chip):
            parts |= {(part.memory_mib, part.name or "a whole card") for part in (*cut.templates, cut.whole)}
    asked = f"{ask.memory_mib}Mi" if ask.memory_mib else f"{ask.percent}%"
    if ask.count > 1:
        return f"{ask.count} cards are given whole only, asked {asked} of each"
    memory, name = min(parts, key=lambda part: (abs(part[0] - ask.memory_mib), part))
    return f"asked {asked}, the nearest is {name} with {memory}Mi"


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
    whole = isinstance(need.cores, int)
    cores = need.cores if isinstance(need.cores, int) else int(np.where(roomy, need.cores, 0).max())
    unit = "%" if whole else " AI cores"
    if most < max(cores, 1):
        if cores == 0:
            return "card in exclusive use (all of its cores are given out)"
        return f"card cores (most free {most}{unit}, asked {cores}{unit})"
    if ask.cores >= WHOLE_CORES or request.untouched:
        return "card in use, but asked for exclusive use"
    return f"card memory and cores together ({cores}{unit} asked)"


def _memory(ask: ContainerAsk, room: Room, most: str = "largest free slice") -> str:
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
    return f"card memory ({most} {largest}Mi, asked {asked})"


def _enough(cards: Mask, ask: ContainerAsk) -> Mask:
    enough: Mask = cards.sum(axis=1) >= ask.count
    return enough
