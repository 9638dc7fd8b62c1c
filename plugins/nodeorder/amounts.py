"""Scores by what is requested of a node against what it has.

These are asked for many nodes and many hypothetical amounts at once, so they are a few array operations
on cpu and memory. Amounts are divided as whole numbers, as kube-scheduler does.

Source of the formulas: kube-scheduler's NodeResourcesFit (LeastAllocated, MostAllocated; pods that ask
nothing count with its defaults) and NodeResourcesBalancedAllocation (true requests), with the resources
and weights that Volcano's nodeorder gives them.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np

from volcano_py.scheduler.framework.points import Scope, Scorer
from volcano_py.scheduler.model.resources import CPU, MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from volcano_py.scheduler.framework.view import NodeView
    from volcano_py.scheduler.model.classes import TaskClass
    from volcano_py.scheduler.model.resources import Ints, Scores, Vocabulary

GPU: Final = "nvidia.com/gpu"


def least_requested(weight: int) -> Scorer:
    """The emptier, the better."""

    def score(klass: TaskClass, view: NodeView) -> Scores:
        return weighted(_both(klass, view, _free), weight)

    return Scorer("NodeResourcesLeastAllocated", Scope.AMOUNTS, score)


def most_requested(weight: int) -> Scorer:
    """The fuller, the better."""

    def score(klass: TaskClass, view: NodeView) -> Scores:
        return weighted(_both(klass, view, _filled), weight)

    return Scorer("NodeResourcesMostAllocated", Scope.AMOUNTS, score)


def balanced_resource(vocabulary: Vocabulary, weight: int) -> Scorer:
    """The more alike the shares in use of cpu, memory and (where asked) cards, the better."""

    def columns(klass: TaskClass) -> list[int]:
        gpu = vocabulary.columns.get(GPU)
        return [CPU, MEMORY] if gpu is None or not klass.request[gpu] else [CPU, MEMORY, gpu]

    def score(klass: TaskClass, view: NodeView) -> Scores:
        shares = [_share(view.used[:, c] + klass.request[c], view.allocatable[:, c]) for c in columns(klass)]
        spread = _deviation(shares)
        np.subtract(1.0, spread, out=spread)
        spread *= 100.0
        return weighted(np.floor(spread, out=spread), weight)

    def applies(klass: TaskClass) -> bool:
        return any(klass.request[c] for c in columns(klass))

    return Scorer("NodeResourcesBalancedAllocation", Scope.AMOUNTS, score, applies)


def weighted(scores: Ints | Scores, weight: int) -> Scores:
    """*scores* times *weight*, as a scorer returns them."""
    if weight == 1:
        return scores.astype(np.float64, copy=False)
    return np.asarray(scores * float(weight), np.float64)


def _free(asked: Ints, size: Ints) -> Ints:
    """What is left of *size*, none negative; written over *asked*."""
    np.subtract(size, asked, out=asked)
    return np.maximum(asked, 0, out=asked)


def _filled(asked: Ints, size: Ints) -> Ints:
    """What is in use of *size*, not more than it; written over *asked*."""
    return np.minimum(asked, size, out=asked)


def _both(klass: TaskClass, view: NodeView, part: Callable[[Ints, Ints], Ints]) -> Ints:
    """(n,) the mean over cpu and memory of 100 * part / size, rounded down twice; sizes of 0 left out."""
    cpu, memory = klass.signature.nonzero
    first = _percent(view.nonzero_cpu + cpu, view.allocatable[:, CPU], part)
    second = _percent(view.nonzero_memory + memory, view.allocatable[:, MEMORY], part)
    if first is not None and second is not None:
        first += second
        first >>= 1
        return first
    total = np.zeros(len(view.rows), np.int64)
    counted = np.zeros(len(view.rows), np.int64)
    for column, asked in ((CPU, view.nonzero_cpu + cpu), (MEMORY, view.nonzero_memory + memory)):
        size = view.allocatable[:, column]
        known = size > 0
        total += np.where(known, part(asked, size) * 100 // np.maximum(size, 1), 0)
        counted += known
    result: Ints = total // np.maximum(counted, 1)
    return result


def _percent(asked: Ints, size: Ints, part: Callable[[Ints, Ints], Ints]) -> Ints | None:
    """(n,) 100 * part / size, rounded down, written over *asked*; None where a size is 0."""
    if int(size.min(initial=1)) <= 0:
        return None
    value = part(asked, size)
    value *= 100
    value //= size
    return value


def _share(used: Ints, size: Ints) -> Scores:
    """(n,) used / size, at most 1; NaN where the size is 0."""
    if int(size.min(initial=1)) > 0:
        share: Scores = used / size
        return np.minimum(share, 1.0, out=share)
    share = np.minimum(used / np.maximum(size, 1), 1.0)
    share[size <= 0] = np.nan
    return share


def _deviation(shares: list[Scores]) -> Scores:
    """(n,) standard deviation of the *shares* that are known; 0 where fewer than two are."""
    if len(shares) == 2:
        return _half_distance(shares)
    mean = sum(shares[1:], shares[0]) / len(shares)
    squares = [(share - mean) * (share - mean) for share in shares]
    result: Scores = np.sqrt(sum(squares[1:], squares[0]) / len(shares))
    partly = np.isnan(result)
    if partly.any():
        result[partly] = _half_distance([share[partly] for share in shares])
    return result


def _half_distance(shares: list[Scores]) -> Scores:
    """(n,) deviation of at most two known *shares*: half their distance; 0 where one or none is known."""
    distance: Scores = reduce(np.fmax, shares) - reduce(np.fmin, shares)
    distance /= 2.0
    return np.nan_to_num(distance, copy=False) if np.isnan(distance.sum()) else distance
