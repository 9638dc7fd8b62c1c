"""The cards of a pod on each of some nodes: all its containers, by a card order; deterministic.

``binpack`` takes the fullest card that has room, ``spread`` the one with fewest tenants; ties go to the lower
position. The containers that run together are served largest first, so that what fits is found; ordinary
init containers then go, one after another, where the pod grows least. A pod of several containers that one
order can't place is tried in the other. Neighbours: ``room`` for what fits one share, ``records`` for what a
choice books.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from volcano_py.plugins.deviceshare.asks import CardRequest, ContainerAsk, Role
from volcano_py.plugins.deviceshare.names import WHOLE_CORES
from volcano_py.plugins.deviceshare.room import Room, fits, memory_need
from volcano_py.scheduler.model.resources import Ints, Mask

BINPACK: Final = "binpack"
SPREAD: Final = "spread"
_NEVER: Final = np.int64(2**62)
_GROWS: Final = 2**60
_TENANT: Final = 2**40
_CORES: Final = 128


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Cards of a pod on each of n nodes.

    Attributes:
        ok: (n,) all containers found their cards.
        chosen: (n, G) cards of each ask, in the order of ``CardRequest.asks``.
        need: (n, G) MiB that each ask takes of a card.
    """

    ok: Mask
    chosen: tuple[Mask, ...]
    need: tuple[Ints, ...]


def is_simple(request: CardRequest) -> bool:
    """One container asks, so the question is only which cards are best for its shares."""
    return len(request.asks) == 1


def placeable(request: CardRequest, room: Room, numa: Ints) -> Mask:
    """(n,) nodes whose cards take all containers of the pod."""
    if is_simple(request) and not request.numa:
        ask = request.asks[0]
        enough: Mask = _fit(request, ask, room).sum(axis=1) >= ask.count
        return enough
    return place(request, room, numa, BINPACK).ok


def place(request: CardRequest, room: Room, numa: Ints, order: str) -> Placed:
    """Cards for *request* on each node of *room*; *numa* (n, G) of its cards."""
    if is_simple(request):
        ask = request.asks[0]
        cards, ok = _pick(request, ask, _fit(request, ask, room), _key(room, order), numa)
        return Placed(ok, (cards,), (memory_need(ask, room),))
    placed = _place_all(request, room, numa, order)
    if placed.ok.all():
        return placed
    other = _place_all(request, room, numa, BINPACK if order == SPREAD else SPREAD)
    pairs = zip(placed.chosen, other.chosen, strict=True)
    chosen = tuple(np.where(placed.ok[:, None], mine, theirs) for mine, theirs in pairs)
    return Placed(placed.ok | other.ok, chosen, placed.need)


def _place_all(request: CardRequest, room: Room, numa: Ints, order: str) -> Placed:
    asks = request.asks
    need = tuple(memory_need(ask, room) for ask in asks)
    chosen: list[Mask] = [np.zeros(room.usable.shape, np.bool_) for _ in asks]
    ok = np.ones(len(room.usable), np.bool_)
    left = room
    for at in sorted(
        (i for i, ask in enumerate(asks) if ask.role != Role.INIT), key=lambda i: _size(asks[i])
    ):
        fit = fits(asks[at], left, need[at], untouched=request.untouched)
        chosen[at], found = _pick(request, asks[at], fit, _key(left, order), numa)
        ok &= found
        left = left.without(chosen[at], need[at], asks[at].cores)
    start, floor = room, left
    for at, ask in enumerate(asks):
        if ask.role == Role.SIDECAR:
            start = start.without(chosen[at], need[at], ask.cores)
        elif ask.role == Role.INIT:
            fit = fits(ask, start, need[at], untouched=request.untouched)
            key = _key(start, order) + _GROWS * _grows(ask, start, floor, need[at])
            chosen[at], found = _pick(request, ask, fit, key, numa)
            ok &= found
            floor = _lower(floor, start.without(chosen[at], need[at], ask.cores))
    return Placed(ok, tuple(chosen), need)


def _fit(request: CardRequest, ask: ContainerAsk, room: Room) -> Mask:
    return fits(ask, room, memory_need(ask, room), untouched=request.untouched)


def _size(ask: ContainerAsk) -> tuple[int, int, int, int, int]:
    """Hardest to place first: exclusive, then by memory, cores and number of shares."""
    return (-(ask.cores >= WHOLE_CORES), -ask.percent, -ask.memory_mib, -ask.cores, -ask.count)


def _key(room: Room, order: str) -> Ints:
    """(n, G) what cards sort by, the smaller first."""
    free: Ints = room.memory * _CORES + np.minimum(room.cores, _CORES - 1)
    return room.tenants * _TENANT - free if order == SPREAD else free


def _grows(ask: ContainerAsk, start: Room, floor: Room, need: Ints) -> Mask:
    """(n, G) would an init container make the pod hold more of a card than it does anyway?"""
    more: Mask = (start.memory - need < floor.memory) | (start.cores - ask.cores < floor.cores)
    return more | (start.slots - 1 < floor.slots)


def _lower(one: Room, other: Room) -> Room:
    """The room that is free at both times."""
    return Room(
        one.usable,
        one.memory_total,
        one.cores_total,
        np.minimum(one.memory, other.memory),
        np.minimum(one.cores, other.cores),
        np.minimum(one.slots, other.slots),
        np.maximum(one.tenants, other.tenants),
    )


def _pick(request: CardRequest, ask: ContainerAsk, fit: Mask, key: Ints, numa: Ints) -> tuple[Mask, Mask]:
    """The best ``ask.count`` cards of each row, and which rows have as many."""
    rows = np.arange(len(fit))
    if request.numa:
        fit = _on_one_numa(fit, key, numa, ask.count)
    chosen = np.zeros(fit.shape, np.bool_)
    if ask.count > fit.shape[1]:
        return chosen, np.zeros(len(fit), np.bool_)
    masked = np.where(fit, key, _NEVER)
    if ask.count == 1:
        chosen[rows, masked.argmin(axis=1)] = True
    else:
        np.put_along_axis(chosen, masked.argsort(axis=1, kind="stable")[:, : ask.count], True, axis=1)
    chosen &= fit
    return chosen, chosen.sum(axis=1) == ask.count


def _on_one_numa(fit: Mask, key: Ints, numa: Ints, count: int) -> Mask:
    """*fit* narrowed to the NUMA node of the best card whose NUMA node has enough cards."""
    same = numa[:, :, None] == numa[:, None, :]
    fit = fit & ((same & fit[:, None, :]).sum(axis=2) >= count)
    best = np.where(fit, key, _NEVER).argmin(axis=1)
    narrowed: Mask = fit & (numa == numa[np.arange(len(numa)), best][:, None])
    return narrowed
