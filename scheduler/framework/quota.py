"""Who may have how much of what exists: the arithmetic of queues, on plain arrays.

Everything here is a pure function over (Q, R) amounts: weighted max-min shares in closed form, what
others' guarantees leave of the cluster, entitlements (decisions.md 6), and how many pods fit under a
limit. Rows are queue rows, columns are resources, all amounts int64 in base units.

``queue_claims`` asks these with the state's tables; ``queue_rules`` hangs the answers on extension points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from volcano_py.scheduler.model.resources import PODS, UNLIMITED, Ints, Mask, summed

Levels = Sequence[tuple[int, list[int]]]
"""The queue tree from the top: (row of the parent, -1 at the top; rows of its children)."""


@dataclass(frozen=True, slots=True, eq=False)
class Claims:
    """What queues say and want.

    Attributes:
        levels: the tree; queues that are not in it (unsound ones) get nothing.
        total: (R,) what the cluster has for ordinary pods.
        weight: (Q,) int64.
        guarantee: (Q, R) held for the queue, with its children's; at most *total*, see ``guarantees``.
        capability: (Q, R) hard cap, ``UNLIMITED`` where none.
        lends: (Q,) the idle part of the guarantee may be borrowed.
        in_use: (Q,) has, or has below it, an unfinished job.
        most: (Q, R) the most that it can use: what it holds where it is closed, else ``UNLIMITED``.
    """

    levels: Levels
    total: Ints
    weight: Ints
    guarantee: Ints
    capability: Ints
    lends: Mask
    in_use: Mask
    most: Ints

    @property
    def divisible(self) -> Mask:
        """(R,) resources that weights share out: those the cluster has, pods (a count) aside."""
        known: Mask = self.total > 0
        known[PODS] = False
        return known


def fill(total: Ints, weight: Ints, floor: Ints, cap: Ints) -> Ints:
    """Weighted max-min shares: everybody rises at the speed of their weight until *total* is reached.

    Each resource by itself: share = clip(level * weight, floor, cap) with one level for all, found by
    sorting the amounts at which somebody starts or stops rising, then filling up to *total*.

    Args:
        total: (R,) what there is.
        weight: (Q, R) whole numbers; 0 stays at its floor.
        floor: (Q, R) given in any case, even where the floors together exceed *total*.
        cap: (Q, R) never passed, unless the floor is higher.

    Returns:
        (Q, R). Sums to at most max(total, sum of floors) and misses it, where caps allow, by less than
        one base unit a queue: what whole units can't split stays with nobody.
    """
    floor = np.maximum(floor, 0)
    cap = np.maximum(cap, floor)
    rises = weight > 0
    level = _level(total, weight, floor, cap)
    lifted = np.where(rises, level, 0.0) * weight
    full = rises & (cap <= lifted)
    rising = rises & ~full & (floor < lifted)
    settled = np.where(full, cap, floor)
    rest = np.maximum(total - np.where(rising, 0, settled).sum(axis=0), 0)
    share = _portion(rest, weight, np.where(rising, weight, 0).sum(axis=0))
    result: Ints = np.where(rising, np.clip(share, floor, cap), settled)
    ceiling = np.maximum(total, floor.sum(axis=0))
    while (over := result.sum(axis=0) - ceiling).max(initial=0) > 0:  # the level is a float: mend its error
        step = -(-np.maximum(over, 0) // len(result))
        result = np.where(rises, np.maximum(result - step, floor), result)
    return result


def _level(total: Ints, weight: Ints, floor: Ints, cap: Ints) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """(R,) where the rising stops, in base units a unit of weight; infinite where all are full before."""
    rises = weight > 0
    speed = np.where(rises, weight, 0).astype(np.float64)
    per = np.where(rises, weight, 1)
    starts, stops = np.where(rises, floor / per, 0.0), np.where(rises, cap / per, 0.0)
    points = np.concatenate([starts, stops])
    order = np.argsort(points, axis=0, kind="stable")
    points = np.take_along_axis(points, order, axis=0)
    slope = np.take_along_axis(np.concatenate([speed, -speed]), order, axis=0).cumsum(axis=0)
    poured = np.concatenate(
        [np.zeros((1, len(total))), (slope[:-1] * np.diff(points, axis=0)).cumsum(axis=0)]
    )
    spare = (total - floor.sum(axis=0)).astype(np.float64)
    last = np.maximum((poured < spare).sum(axis=0) - 1, 0)
    columns = np.arange(len(total))
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = (spare - poured[last, columns]) / slope[last, columns]
    level = points[last, columns] + np.where(slope[last, columns] > 0, beyond, np.inf)
    return np.where(spare > 0, level, 0.0)


def _portion(amount: Ints, part: Ints, whole: Ints) -> Ints:
    """(Q, R) floor(amount * part / whole) without leaving 64 bits; *whole* 0 counts as 1."""
    whole = np.maximum(whole, 1)
    result: Ints = amount // whole * part + amount % whole * part // whole
    return result


def guarantees(levels: Levels, stated: Ints, total: Ints) -> Ints:
    """(Q, R) *stated* guarantees, an inner queue's at least its children's together.

    Each is cut to what exists (where the cluster has any of the resource): nobody can be held more,
    and sums stay countable.
    """
    held = np.minimum(stated, np.where(total > 0, total, UNLIMITED >> 20))
    for parent, rows in reversed(levels):
        if parent >= 0:
            held[parent] = np.maximum(held[parent], held[rows].sum(axis=0))
    return held


def reach(claims: Claims, *, lent: bool) -> tuple[Ints, Ints]:
    """What each queue could reach at most.

    Args:
        claims: the queues.
        lent: whether guarantees that are lent count as free (they do for interruptible work).

    Returns:
        real: (Q, R) cap, what others' guarantees leave of the parent's reach (of the cluster), and the most
            that it can use; its guarantee in any case.
        limit: (Q, R) the same where some guarantee is held or a cap is set, else ``UNLIMITED``: nodes,
            not queues, bound who is alone.
    """
    real = np.zeros_like(claims.capability)
    limit = claims.capability.copy()
    known = claims.total > 0
    for parent, rows in claims.levels:
        pool = np.where(known, claims.total, UNLIMITED) if parent < 0 else real[parent]
        own = claims.guarantee[rows]
        held = np.where(claims.lends[rows, None], 0, own) if lent else own
        others = held.sum(axis=0) - held
        left = np.where(others > 0, np.maximum(pool - others, own), pool)
        real[rows] = np.minimum(claims.capability[rows], left)
        limit[rows] = np.where((others > 0) & known, real[rows], claims.capability[rows])
    return np.minimum(real, np.maximum(claims.most, claims.guarantee)), limit


def proportional_deserved(claims: Claims, real: Ints, request: Ints) -> Ints:
    """(Q, R) weighted max-min shares of what is asked, at least the guarantee.

    ``UNLIMITED`` for resources that are not shared out.
    """
    wanted = np.maximum(request, claims.guarantee)
    for parent, rows in reversed(claims.levels):
        if parent >= 0:
            wanted[parent] = summed(wanted[rows])
    result = np.zeros_like(claims.guarantee)
    for parent, rows in claims.levels:
        pool = claims.total if parent < 0 else result[parent]
        weight = np.where(claims.in_use[rows], claims.weight[rows], 0)[:, None] * claims.divisible
        cap = np.minimum(real[rows], wanted[rows])
        result[rows] = fill(pool * claims.divisible, weight, claims.guarantee[rows], cap)
    result[:, ~claims.divisible] = UNLIMITED
    return result


def proportional_entitlement(claims: Claims, real: Ints) -> Ints:
    """(Q, R) guarantee plus the weight's share of the rest, as if every queue in use asked for all it may.

    An idle queue is entitled to its guarantee; resources that are not shared out only have the cap.
    """
    result = np.zeros_like(claims.guarantee)
    divisible = claims.divisible
    for parent, rows in claims.levels:
        pool = claims.total if parent < 0 else result[parent]
        own = np.minimum(claims.guarantee[rows], claims.capability[rows])
        rest = np.maximum(pool - own.sum(axis=0), 0) * divisible
        weight = np.where(claims.in_use[rows], claims.weight[rows], 0)[:, None] * divisible
        result[rows] = own + fill(rest, weight, np.zeros_like(own), np.maximum(real[rows] - own, 0))
        result[rows] = np.where(divisible, result[rows], claims.capability[rows])
    return result


def stated_entitlement(claims: Claims, real: Ints, deserved: Ints) -> Ints:
    """(Q, R) ``deserved`` as stated, at least the guarantee; what nobody states is shared by weight.

    Args:
        claims: the queues.
        real: (Q, R) what each can reach.
        deserved: (Q, R) as stated, a stated guarantee included, -1 where nothing is.

    A queue in use that states nothing of a resource gets its weight's part of what those beside it
    leave, at least what its children state. An idle queue is entitled to its guarantee.
    """
    stated = deserved >= 0
    base = np.maximum(np.minimum(deserved, real), np.minimum(claims.guarantee, claims.capability))
    base = np.where(stated, base, 0)
    below = np.zeros_like(base)
    for parent, rows in reversed(claims.levels):
        if parent >= 0:
            below[parent] = np.where(stated[rows], base[rows], below[rows]).sum(axis=0)
    result = np.zeros_like(base)
    for parent, rows in claims.levels:
        pool = claims.total if parent < 0 else result[parent]
        used, said = claims.in_use[rows, None], stated[rows]
        fixed = np.where(used, np.where(said, base[rows], 0), claims.guarantee[rows])
        weight = np.where(used & ~said, claims.weight[rows, None], 0) * claims.divisible
        rest = np.maximum(pool - fixed.sum(axis=0), 0) * claims.divisible
        least = np.where(used & ~said, np.maximum(below[rows], claims.guarantee[rows]), 0)
        free = fill(rest, weight, np.minimum(least, real[rows]), real[rows])
        free = np.where(claims.divisible, free, claims.capability[rows])
        result[rows] = np.where(used & ~said, free, fixed)
    return result


def fitting(limit: Ints, used: Ints, charge: Ints) -> tuple[int, int, int]:
    """How many more of *charge* fit, and what stops the next one.

    Args:
        limit: (P, C) of each queue of a path.
        used: (P, C) what counts against it.
        charge: (C,) of one pod, above 0.

    Returns:
        Count (at least 0), and the place in the path and the column that allow the fewest.
    """
    counts = (limit - used) // charge
    place = int(counts.argmin())
    row, column = divmod(place, counts.shape[1])
    return max(int(counts[row, column]), 0), row, column
