"""Scores by what is requested of a node against what it has.

These are asked for many nodes and many hypothetical amounts at once, so they are a few array operations
on cpu and memory. Amounts are divided as whole numbers, as kube-scheduler does.

Source of the formulas: kube-scheduler's NodeResourcesFit (LeastAllocated, MostAllocated; pods that ask
nothing count with its defaults) and NodeResourcesBalancedAllocation (true requests), with the resources
and weights that Volcano's nodeorder gives them.
"""

from __future__ import annotations

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
        return weighted(_both(klass, view, lambda asked, size: np.maximum(size - asked, 0)), weight)

    return Scorer("NodeResourcesLeastAllocated", Scope.AMOUNTS, score)


def most_requested(weight: int) -> Scorer:
    """The fuller, the better."""

    def score(klass: TaskClass, view: NodeView) -> Scores:
        return weighted(_both(klass, view, np.minimum), weight)

    return Scorer("NodeResourcesMostAllocated", Scope.AMOUNTS, score)


def balanced_resource(vocabulary: Vocabulary, weight: int) -> Scorer:
    """The more alike the shares in use of cpu, memory and (where asked) cards, the better."""

    def columns(klass: TaskClass) -> list[int]:
        gpu = vocabulary.columns.get(GPU)
        return [CPU, MEMORY] if gpu is None or not klass.request[gpu] else [CPU, MEMORY, gpu]

    def score(klass: TaskClass, view: NodeView) -> Scores:
        used = view.used, view.allocatable
        shares = [_share(used[0][:, c] + klass.request[c], used[1][:, c]) for c in columns(klass)]
        spread = _deviation(shares)
        return weighted(np.floor((1.0 - spread) * 100.0), weight)

    def applies(klass: TaskClass) -> bool:
        return any(klass.request[c] for c in columns(klass))

    return Scorer("NodeResourcesBalancedAllocation", Scope.AMOUNTS, score, applies)


def weighted(scores: Ints | Scores, weight: int) -> Scores:
    """*scores* times *weight*, as a scorer returns them."""
    return np.asarray(scores * float(weight), np.float64)


def _both(klass: TaskClass, view: NodeView, part: Callable[[Ints, Ints], Ints]) -> Ints:
    """(n,) the mean over cpu and memory of 100 * part / size, rounded down twice; sizes of 0 left out."""
    cpu, memory = klass.signature.nonzero
    sizes = view.allocatable[:, CPU], view.allocatable[:, MEMORY]
    if min(int(size.min(initial=1)) for size in sizes) > 0:
        first = part(view.nonzero_cpu + cpu, sizes[0]) * 100 // sizes[0]
        second = part(view.nonzero_memory + memory, sizes[1]) * 100 // sizes[1]
        mean: Ints = (first + second) >> 1
        return mean
    total = np.zeros(len(view.rows), np.int64)
    counted = np.zeros(len(view.rows), np.int64)
    for size, asked in zip(sizes, (view.nonzero_cpu + cpu, view.nonzero_memory + memory), strict=True):
        known = size > 0
        total += np.where(known, part(asked, size) * 100 // np.maximum(size, 1), 0)
        counted += known
    result: Ints = total // np.maximum(counted, 1)
    return result


def _share(used: Ints, size: Ints) -> Scores:
    """(n,) used / size, at most 1; NaN where the size is 0."""
    if int(size.min(initial=1)) > 0:
        return np.minimum(used / size, 1.0)
    share: Scores = np.minimum(used / np.maximum(size, 1), 1.0)
    share[size <= 0] = np.nan
    return share


def _deviation(shares: list[Scores]) -> Scores:
    """(n,) standard deviation of the *shares* that are known; 0 where fewer than two are."""
    if len(shares) == 2:
        apart: Scores = np.abs(shares[0] - shares[1]) / 2.0
        return np.nan_to_num(apart, copy=False)
    known = [~np.isnan(share) for share in shares]
    count = sum(known[1:], known[0].astype(np.int64))
    total = sum((np.nan_to_num(share) for share in shares[1:]), np.nan_to_num(shares[0]))
    mean = total / np.maximum(count, 1)
    square = np.zeros(len(total))
    for share in shares:
        square += np.nan_to_num((share - mean) * (share - mean))
    result: Scores = np.sqrt(square / np.maximum(count, 1))
    two = count == 2
    if two.any():
        result[two] = _half_distance([share[two] for share in shares])
    result[count < 2] = 0.0
    return result


def _half_distance(shares: list[Scores]) -> Scores:
    """(n,) half the distance of the two known ones among *shares*."""
    stacked = np.stack(shares)
    result: Scores = (np.nanmax(stacked, axis=0) - np.nanmin(stacked, axis=0)) / 2.0
    return result
