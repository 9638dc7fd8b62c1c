"""Why cards refuse a pod, in one line: the obstacle of the nodes that came closest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from volcano_py.plugins.deviceshare.asks import LARGEST_CARD_MIB, CardRequest, ContainerAsk, Selection
from volcano_py.plugins.deviceshare.backend import Chip, Even, Units
from volcano_py.plugins.deviceshare.catalogue import Catalogue
from volcano_py.plugins.deviceshare.facts import CardFacts
from volcano_py.plugins.deviceshare.mig import Geometry
from volcano_py.plugins.deviceshare.names import WHOLE_CORES
from volcano_py.plugins.deviceshare.needs import Need, need_of
from volcano_py.plugins.deviceshare.room import Room, fits
from volcano_py.plugins.deviceshare.translate import main_ask
from volcano_py.scheduler.model.resources import Mask, Rows32

NO_CARDS: Final = "no card slices registered"
_MOST_LISTED: Final = 3


def no_cards(request: CardRequest, facts: CardFacts, blank: Room, rows: Rows32) -> str:
    """Why nodes *rows*, whose cards have the room *blank*, have none for *request*, whatever is booked."""
    count, selection = most_cards(request), request.selection
    if not (facts.cards[rows] > 0).any():
        return NO_CARDS
    own = facts.accepted(Selection(selection.vendors))[rows]
    if not own.any():
        return f"no card for {_asked_name(request, facts.catalogue)} registered"
    if own.sum(axis=1).max() < count:
        return f"container asks {count} cards, node has {int(own.sum(axis=1).max())}"
    usable = own & facts.usable[rows]
    if usable.sum(axis=1).max() < count:
        return "cards unhealthy, cordoned or in MIG mode, or their device plugin is away"
    if (usable & facts.accepted(selection)[rows]).sum(axis=1).max() < count:
        return _unaccepted(request, facts, usable, rows)
    return _never(request, blank)


def _asked_name(request: CardRequest, catalogue: Catalogue) -> str:
    """The resource by which cards of that kind are asked for."""
    vendors = request.selection.vendors
    counts = catalogue.books(vendors[0])[0] if len(vendors) == 1 else catalogue.shared_books(vendors)[0]
    return counts[0]


def _unaccepted(request: CardRequest, facts: CardFacts, usable: Mask, rows: Rows32) -> str:
    """Which of the pod's wishes leaves too few of the cards *usable* (n, G)."""
    wish, count = request.selection, most_cards(request)

    def leaves_enough(only: Selection) -> bool:
        return bool((usable & facts.accepted(only)[rows]).sum(axis=1).max() >= count)

    asked = "no card" if count == 1 else f"not {count} cards"
    if not leaves_enough(Selection(wish.vendors, types=wish.types, not_types=wish.not_types)):
        wanted = f"of type {_listed(wish.types)}" if wish.types else f"but of type {_listed(wish.not_types)}"
        return f"{asked} {wanted} (there is {_listed(_values(facts, usable, rows, 'type'))})"
    modes = Selection(wish.vendors, mode_within=wish.mode_within, mode_equal=wish.mode_equal)
    if not leaves_enough(modes):
        wanted = wish.mode_equal or wish.mode_within
        return f"{asked} in mode {wanted} (there is {_listed(_values(facts, usable, rows, 'mode'))})"
    if not leaves_enough(Selection(wish.vendors, uuids=wish.uuids, not_uuids=wish.not_uuids)):
        called = f"called {_listed(wish.uuids)}" if wish.uuids else f"but {_listed(wish.not_uuids)}"
        return f"{asked} {called}"
    return f"{asked} of the type, mode and identity that the pod wishes"


def _values(facts: CardFacts, usable: Mask, rows: Rows32, what: str) -> list[str]:
    """The different types or modes of the *usable* cards."""
    places = zip(*np.nonzero(usable), strict=True)
    return sorted({str(getattr(facts.specs[int(rows[row])][at], what)) for row, at in places})


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - _MOST_LISTED} more" if len(words) > _MOST_LISTED else ""
    return ", ".join(words[:_MOST_LISTED]) + more


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
    if ask.size:
        return _nearest_size(ask.size, blank)
    parts: set[tuple[int, str]] = set()
    for cut in blank.cuts:
        if isinstance(cut, Geometry):
            parts |= {(option.memory_mib, option.profile) for option in cut.options}
        elif isinstance(cut, Chip):
            parts |= {(part.memory_mib, part.name or "a whole card") for part in (*cut.templates, cut.whole)}
        elif isinstance(cut, Even):
            parts |= {
                (size, "a part" if size != cut.sizes[-1][0] else "a whole card") for size, _ in cut.sizes
            }
    asked = f"{ask.memory_mib}Mi" if ask.memory_mib else f"{ask.percent}%"
    if ask.count > 1 and any(isinstance(cut, Chip) for cut in blank.cuts):
        return f"{ask.count} cards are given whole only, asked {asked} of each"
    memory, name = min(parts, key=lambda part: (abs(part[0] - ask.memory_mib), part))
    return f"asked {asked}, the nearest is {name} with {memory}Mi"


def _nearest_size(size: int, blank: Room) -> str:
    chips = [cut for cut in blank.cuts if isinstance(cut, Chip)]
    sizes = {(part.size, part.name) for chip in chips for part in chip.templates if part.size}
    if not sizes:
        return f"asked a part of size {size}"
    _, name = min(sizes, key=lambda part: (abs(part[0] - size), part))
    return f"asked a part of size {size}, the nearest is {name}"


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
    return _no_cores(request, ask, room, need, roomy & (room.slots >= 1))


def _no_cores(request: CardRequest, ask: ContainerAsk, room: Room, need: Need, roomy: Mask) -> str:
    """Why the cards that are *roomy* (n, G), enough of them somewhere, give no cores."""
    asked = need.cores if isinstance(need.cores, int) else int(np.where(roomy, need.cores, 0).max())
    # What the last of the cards has that are taken together; nodes with too few of them have less than none.
    most = int(np.sort(np.where(roomy, room.cores, -1), axis=1)[:, -ask.count].max())
    unit = _cores_unit(room, roomy)
    if most < max(asked, 1):
        if asked == 0 and ask.count == 1:
            return "card in exclusive use (all of its cores are given out)"
        if asked == 0:
            return f"cards in exclusive use (fewer than {ask.count} have cores left)"
        each = f" on each of {ask.count} cards" if ask.count > 1 else ""
        return f"card cores (most free {most}{unit}{each}, asked {asked}{unit})"
    if ask.cores >= WHOLE_CORES or request.untouched:
        return "card in use, but asked for exclusive use"
    return f"card memory and cores together ({asked}{unit} asked)"


def _cores_unit(room: Room, where: Mask) -> str:
    """What the cores of the cards *where* (n, G) are counted in."""
    if room.cut is None:
        return "%"
    cuts = [room.cuts[number - 1] for number in np.unique(room.cut[where]).tolist() if number]
    chips = [cut for cut in cuts if isinstance(cut, Chip)]
    if chips:
        return " slices" if any(part.size for chip in chips for part in chip.templates) else " AI cores"
    return " units" if any(isinstance(cut, Units) for cut in cuts) else "%"


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
