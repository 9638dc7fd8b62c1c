"""The best cards for several shares of one container on each of some nodes, in one step for all of them.

``key`` (n, G) orders cards, the smaller first. On top of it come wishes about links: pairs and NUMA nodes
that must be kept, zones that are kept where that can be, and link scores. Equal input gives equal cards.
Neighbours: ``wiring``, ``choose``.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Final

import numpy as np
from numpy.typing import NDArray

from volcano_py.plugins.deviceshare.asks import CardRequest
from volcano_py.plugins.deviceshare.wiring import Wiring
from volcano_py.scheduler.model.resources import Ints, Mask

NEVER: Final = np.int64(2**62)
_FAR: Final = 2**20
_NOTHING: Final = np.int64(-(2**62))
_MOST_SETS: Final = 128
"""Sets of cards that are all looked at; of more, sets are grown card by card from each first card."""


def pick(request: CardRequest, count: int, fit: Mask, key: Ints, wiring: Wiring) -> tuple[Mask, Mask]:
    """(n, G) the best *count* cards of each row of *fit*, and (n,) which rows have as many."""
    fit = _allowed(request, count, fit, key, wiring)
    chosen = np.zeros(fit.shape, np.bool_)
    if count > fit.shape[1]:
        return chosen, np.zeros(len(fit), np.bool_)
    if wiring.links is not None and wiring.links.any():
        chosen = _linked(count, fit, key, wiring.links)
    elif count == 1:
        masked = np.where(fit, key, NEVER)
        chosen[np.arange(len(fit)), masked.argmin(axis=1)] = True
    else:
        np.put_along_axis(chosen, _order(count, fit, key, wiring)[:, :count], True, axis=1)
    chosen &= fit
    return chosen, chosen.sum(axis=1) == count


def enough(request: CardRequest, count: int, fit: Mask, wiring: Wiring) -> Mask:
    """(n,) rows that have *count* cards which may be taken together."""
    if request.numa or wiring.pair is not None:
        fit = _allowed(request, count, fit, np.zeros(fit.shape, np.int64), wiring)
    ok: Mask = fit.sum(axis=1) >= count
    return ok


def _allowed(request: CardRequest, count: int, fit: Mask, key: Ints, wiring: Wiring) -> Mask:
    """*fit* without cards that can't be taken together with as many as are asked."""
    if wiring.pair is not None and count > 1:
        partner = _same(wiring.pair) & (wiring.pair >= 0)[:, :, None]
        whole = (partner & fit[:, None, :]).sum(axis=2) >= 2
        fit = fit & (whole | (wiring.pair < 0))
    if request.numa:
        return _on_one(wiring.numa, count, fit, key)
    if request.together and count > 1:
        narrowed = _on_one(wiring.numa, count, fit, key)
        return np.where((narrowed.sum(axis=1) >= count)[:, None], narrowed, fit)
    return fit


def _on_one(group: Ints, count: int, fit: Mask, key: Ints) -> Mask:
    """*fit* narrowed to the group of the best card whose group has enough cards."""
    fit = fit & (_members(group, fit) >= count)
    best = np.where(fit, key, NEVER).argmin(axis=1)
    narrowed: Mask = fit & (group == group[np.arange(len(group)), best][:, None])
    return narrowed


def _order(count: int, fit: Mask, key: Ints, wiring: Wiring) -> Ints:
    """(n, G) positions, best first: by zone, then pair, then *key*."""
    masked = np.where(fit, key, NEVER)
    if wiring.zone is None and wiring.pair is None:
        return masked.argsort(axis=1, kind="stable")
    keys = [masked]
    if wiring.pair is not None:
        first = np.where(_same(wiring.pair), masked[:, None, :], NEVER).min(axis=2)
        keys += [wiring.pair, np.where(wiring.pair >= 0, first, masked)]
    if wiring.zone is not None:
        members = _members(wiring.zone, fit)
        # The smallest zone that has enough; where none has, the largest first.
        keys += [wiring.zone, np.where(members >= count, members, _FAR - members)]
    keys.append((~fit).astype(np.int64))
    return np.lexsort(np.stack(keys), axis=1)


def _linked(count: int, fit: Mask, key: Ints, links: Ints) -> Mask:
    """The set with the highest sum of links; of equals the one whose cards come first by *key*."""
    rank = np.where(fit, key, NEVER).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
    if count == 1:  # the card whose links the others miss least
        missed = np.where(fit, (links * fit[:, None, :]).sum(axis=2), NEVER)
        best = np.lexsort(np.stack([rank, missed]), axis=1)[:, :1]
        chosen = np.zeros(fit.shape, np.bool_)
        np.put_along_axis(chosen, best, True, axis=1)
        return chosen
    if comb(fit.shape[1], count) <= _MOST_SETS:
        return _best_set(count, fit, rank, links)
    return _grown_set(count, fit, rank, links)


def _best_set(count: int, fit: Mask, rank: Ints, links: Ints) -> Mask:
    sets = _sets(fit.shape[1], count)
    whole = fit.astype(np.int64) @ sets.T == count
    pairs = (sets[:, :, None] * sets[:, None, :]).reshape(len(sets), -1)
    value = links.reshape(len(links), -1) @ pairs.T
    worse = rank @ sets.T
    best = np.lexsort(np.stack([worse, -value, (~whole).astype(np.int64)]), axis=1)[:, 0]
    return sets[best].astype(np.bool_)


@lru_cache
def _sets(positions: int, count: int) -> NDArray[np.int64]:
    """(sets, positions) 0 or 1."""
    sets = np.zeros((comb(positions, count), positions), np.int64)
    for at, members in enumerate(combinations(range(positions), count)):
        sets[at, list(members)] = 1
    return sets


def _grown_set(count: int, fit: Mask, rank: Ints, links: Ints) -> Mask:
    """From each first card, always the card with the best links to those taken; the best of all ends."""
    rows, positions = np.arange(len(fit)), fit.shape[1]
    best, best_value = np.zeros(fit.shape, np.bool_), np.full(len(fit), _NOTHING)
    for first in range(positions):
        chosen = np.zeros(fit.shape, np.bool_)
        chosen[:, first] = fit[:, first]
        for _ in range(count - 1):
            gain = np.einsum("nij,nj->ni", links, chosen) * positions + (positions - 1 - rank)
            nearest = np.where(fit & ~chosen, gain, -1).argmax(axis=1)
            chosen[rows, nearest] |= fit[rows, nearest]
        value = np.einsum("ni,nij,nj->n", chosen.astype(np.int64), links, chosen.astype(np.int64))
        value = value * positions**2 - np.where(chosen, rank, 0).sum(axis=1)
        value = np.where(chosen.sum(axis=1) == count, value, _NOTHING)
        better = value > best_value
        best[better], best_value[better] = chosen[better], value[better]
    return best


def _same(group: Ints) -> Mask:
    same: Mask = group[:, :, None] == group[:, None, :]
    return same


def _members(group: Ints, fit: Mask) -> Ints:
    """(n, G) how many cards that fit are in a card's group."""
    count: Ints = (_same(group) & fit[:, None, :]).sum(axis=2)
    return count
