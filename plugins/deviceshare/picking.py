"""The best cards for several shares of one container on each of some nodes, in one step for all of them.

``key`` (n, G) orders cards, the smaller first. On top of it come wishes about links: pairs and NUMA nodes
that must be kept, zones that are kept where that can be, and link scores. Equal input gives equal cards.
Neighbours: ``wiring``, ``linkgraph``, ``choose``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Final

import numpy as np

from volcano_py.plugins.deviceshare.asks import CardRequest
from volcano_py.plugins.deviceshare.linkgraph import LinkGraph
from volcano_py.plugins.deviceshare.wiring import Wiring
from volcano_py.scheduler.model.resources import Ints, Mask

NEVER: Final = np.int64(2**62)
_ROWS: Final = (4, 8, 16)
_FAR: Final = 2**20


def pick(request: CardRequest, count: int, fit: Mask, key: Ints, wiring: Wiring) -> tuple[Mask, Mask]:
    """(n, G) the best *count* cards of each row of *fit*, and (n,) which rows have as many."""
    fit = _allowed(request, count, fit, key, wiring)
    chosen = np.zeros(fit.shape, np.bool_)
    if count > fit.shape[1]:
        return chosen, np.zeros(len(fit), np.bool_)
    if count == 1:
        masked = np.where(fit, key, NEVER)
        chosen[np.arange(len(fit)), masked.argmin(axis=1)] = True
    else:
        np.put_along_axis(chosen, _order(count, fit, key, wiring)[:, :count], True, axis=1)
    if wiring.graphs is not None:
        _take_linked(chosen, count, fit, key, wiring.graphs)
    chosen &= fit
    return chosen, chosen.sum(axis=1) == count


def enough(request: CardRequest, count: int, fit: Mask, wiring: Wiring) -> Mask:
    """(n,) rows that have *count* cards which may be taken together."""
    if request.numa or wiring.pair is not None or wiring.row is not None:
        fit = _allowed(request, count, fit, np.zeros(fit.shape, np.int64), wiring)
    ok: Mask = fit.sum(axis=1) >= count
    return ok


def _allowed(request: CardRequest, count: int, fit: Mask, key: Ints, wiring: Wiring) -> Mask:
    """*fit* without cards that can't be taken together with as many as are asked."""
    if wiring.pair is not None and count > 1:
        partner = _same(wiring.pair) & (wiring.pair >= 0)[:, :, None]
        whole = (partner & fit[:, None, :]).sum(axis=2) >= 2
        fit = fit & (whole | (wiring.pair < 0))
    if wiring.row is not None and wiring.ring is not None and count > 1:
        fit = _in_row(wiring.row, wiring.ring, count, fit)
    if request.numa:
        return _on_one(wiring.numa, count, fit, key)
    if request.together and count > 1:
        narrowed = _on_one(wiring.numa, count, fit, key)
        return np.where((narrowed.sum(axis=1) >= count)[:, None], narrowed, fit)
    return fit


def _in_row(row: Ints, ring: Mask, count: int, fit: Mask) -> Mask:
    """*fit* narrowed to the first *count* neighbours, on nodes whose cards are taken so.

    Where they don't stand in a ring, only rows of some lengths are wired to each other, each at a multiple
    of its length. Source: AWS's device plugin, HAMi's scheduler.
    """
    first = np.zeros(fit.shape, np.bool_)
    for start in range(fit.shape[1] - count + 1):
        window = slice(start, start + count)
        beside: Mask = (np.diff(row[:, window], axis=1) == 1).all(axis=1) & fit[:, window].all(axis=1)
        aligned: Mask = row[:, start] % count == (0 if count in _ROWS else -1)
        begins = np.flatnonzero(beside & (ring | aligned) & ~first.any(axis=1))
        first[begins, window] = True
    has_rows: Mask = row.max(axis=1) >= 0
    narrowed: Mask = np.where(has_rows[:, None], first | (fit & (row < 0)), fit)
    return narrowed


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


def _take_linked(chosen: Mask, count: int, fit: Mask, key: Ints, graphs: Sequence[LinkGraph | None]) -> None:
    """In rows of *chosen* whose links are known put the best linked set; of equals the first by *key*."""
    rank = np.where(fit, key, NEVER).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
    free = fit.sum(axis=1).tolist()
    for row, graph in enumerate(graphs):
        if graph is None or free[row] < count:
            continue
        cards = len(graph.weights)
        sets = graph.best(count, fit[row, :cards])
        if len(sets) == comb(free[row], count):
            continue  # all are equal, and the first by key are chosen already
        chosen[row] = False
        chosen[row, :cards] = sets[0 if len(sets) == 1 else (sets @ rank[row, :cards]).argmin()]


def _same(group: Ints) -> Mask:
    same: Mask = group[:, :, None] == group[:, None, :]
    return same


def _members(group: Ints, fit: Mask) -> Ints:
    """(n, G) how many cards that fit are in a card's group."""
    count: Ints = (_same(group) & fit[:, None, :]).sum(axis=2)
    return count
