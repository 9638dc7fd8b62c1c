"""The cards of a pod on each of some nodes: all its containers, by a card order; deterministic.

``binpack`` takes the fullest card that has room, ``spread`` the one with fewest tenants; ties go to the lower
position. The containers that run together are served largest first, so that what fits is found; ordinary
init containers then go, one after another, where the pod grows least. A pod of several containers that one
order can't place is tried in the other. Neighbours: ``room`` for what fits one share, ``records`` for what a
choice books.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from volcano_py.plugins.deviceshare.asks import CardRequest, ContainerAsk, Role
from volcano_py.plugins.deviceshare.names import WHOLE_CORES
from volcano_py.plugins.deviceshare.needs import Need, need_of
from volcano_py.plugins.deviceshare.picking import enough, pick
from volcano_py.plugins.deviceshare.room import Room, fits
from volcano_py.plugins.deviceshare.wiring import Wiring
from volcano_py.scheduler.model.resources import Ints, Mask

BINPACK: Final = "binpack"
SPREAD: Final = "spread"
_GROWS: Final = 2**60
TENANT: Final = 2**40
CORES: Final = 128
_FULL: Final = 2**30


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Cards of a pod on each of n nodes.

    Attributes:
        ok: (n,) all containers found their cards.
        chosen: (n, G) cards of each ask, in the order of ``CardRequest.asks``.
        need: what each ask takes of a card.
    """

    ok: Mask
    chosen: tuple[Mask, ...]
    need: tuple[Need, ...]


def is_simple(request: CardRequest) -> bool:
    """One container asks, so the question is only which cards are best for its shares."""
    return len(request.asks) == 1


def placeable(request: CardRequest, room: Room, wiring: Wiring) -> Mask:
    """(n,) nodes whose cards take all containers of the pod."""
    if is_simple(request):
        ask = request.asks[0]
        return enough(request, ask.count, _fit(request, ask, room, need_of(ask, room)), wiring)
    return place(request, room, wiring, BINPACK).ok


def place(request: CardRequest, room: Room, wiring: Wiring, order: str) -> Placed:
    """Cards for *request* on each node of *room*, whose cards are linked as *wiring* says."""
    if is_simple(request):
        ask = request.asks[0]
        need = need_of(ask, room)
        fit = _fit(request, ask, room, need)
        cards, ok = pick(request, ask.count, fit, card_key(request, room, order), wiring)
        return Placed(ok, (cards,), (need,))
    placed = _place_all(request, room, wiring, order)
    if placed.ok.all():
        return placed
    other = _place_all(request, room, wiring, BINPACK if order == SPREAD else SPREAD)
    pairs = zip(placed.chosen, other.chosen, strict=True)
    chosen = tuple(np.where(placed.ok[:, None], mine, theirs) for mine, theirs in pairs)
    both = zip(placed.need, other.need, strict=True)
    needs = tuple(_either(placed.ok, mine, theirs) for mine, theirs in both)
    return Placed(placed.ok | other.ok, chosen, needs)


def _either(mine_where: Mask, mine: Need, theirs: Need) -> Need:
    """On rows *mine_where* the one need, else the other; they differ where cards are cut in hardware."""
    if mine.option is None or theirs.option is None:
        return mine
    where = mine_where[:, None]
    return Need(
        np.where(where, mine.memory, theirs.memory),
        np.where(where, mine.cores, theirs.cores),
        None,
        np.where(where, mine.option, theirs.option),
    )


def _place_all(request: CardRequest, room: Room, wiring: Wiring, order: str) -> Placed:
    asks = request.asks
    need = [need_of(ask, room) for ask in asks]
    chosen: list[Mask] = [np.zeros(room.usable.shape, np.bool_) for _ in asks]
    ok = np.ones(len(room.usable), np.bool_)
    left = room
    for at in sorted(
        (i for i, ask in enumerate(asks) if ask.role != Role.INIT), key=lambda i: _size(asks[i])
    ):
        if left.parts is not None:
            need[at] = need_of(asks[at], left)
        fit = _fit(request, asks[at], left, need[at])
        chosen[at], found = pick(request, asks[at].count, fit, card_key(request, left, order), wiring)
        ok &= found
        left = left.without(chosen[at], need[at])
    start, floor = room, left
    for at, ask in enumerate(asks):
        if ask.role == Role.SIDECAR:
            start = start.without(chosen[at], need[at])
        elif ask.role == Role.INIT:
            # An instance stays cut for the pod's whole life, whoever of its containers has it.
            start = replace(start, parts=floor.parts)
            if start.parts is not None:
                need[at] = need_of(ask, start)
            fit = _fit(request, ask, start, need[at])
            key = card_key(request, start, order) + _GROWS * _grows(start, floor, need[at])
            chosen[at], found = pick(request, ask.count, fit, key, wiring)
            ok &= found
            floor = _lower(floor, start.without(chosen[at], need[at]))
    return Placed(ok, tuple(chosen), tuple(need))


def _fit(request: CardRequest, ask: ContainerAsk, room: Room, need: Need) -> Mask:
    return fits(ask, room, need, untouched=request.untouched)


def _size(ask: ContainerAsk) -> tuple[int, int, int, int, int]:
    """Hardest to place first: exclusive, then by memory, cores and number of shares."""
    return (-(ask.cores >= WHOLE_CORES), -ask.percent, -ask.memory_mib, -ask.cores, -ask.count)


def card_key(request: CardRequest, room: Room, order: str) -> Ints:
    """(n, G) what cards sort by, the smaller first."""
    if request.weights:
        return _weighed(request.weights, room, order)
    free: Ints = room.memory * CORES + np.minimum(room.cores, CORES - 1)
    return room.tenants * TENANT - free if order == SPREAD else free


def _weighed(weights: tuple[float, ...], room: Room, order: str) -> Ints:
    """How full a card is by the pod's own weights of slots, cores and memory."""
    slots = room.slots + room.tenants
    shares = (
        room.tenants / np.maximum(slots, 1),
        1.0 - room.cores / np.maximum(room.cores_total, 1),
        1.0 - room.memory / np.maximum(room.memory_total, 1),
    )
    total = sum(weight / sum(weights) * share for weight, share in zip(weights, shares, strict=True))
    full: Ints = np.round(np.asarray(total) * _FULL).astype(np.int64)
    return full if order == SPREAD else -full


def _grows(start: Room, floor: Room, need: Need) -> Mask:
    """(n, G) would an init container make the pod hold more of a card than it does anyway?"""
    more: Mask = (start.memory - need.memory < floor.memory) | (start.cores - need.cores < floor.cores)
    return more | (start.slots - 1 < floor.slots)


def _lower(one: Room, other: Room) -> Room:
    """The room that is free at both times."""
    return replace(
        one,
        memory=np.minimum(one.memory, other.memory),
        cores=np.minimum(one.cores, other.cores),
        slots=np.minimum(one.slots, other.slots),
        tenants=np.maximum(one.tenants, other.tenants),
        parts=other.parts,
    )
