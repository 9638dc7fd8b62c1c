"""The arithmetic of queues against a slow, exact twin, and the promises it makes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano_py.scheduler.framework.quota import (
    Claims,
    fill,
    fitting,
    guarantees,
    proportional_deserved,
    proportional_entitlement,
    reach,
    stated_entitlement,
)
from volcano_py.scheduler.model.resources import MEMORY, PODS, UNLIMITED, Ints

CPU = 0


def slow_fill(total: int, weights: list[int], floors: list[int], caps: list[int]) -> list[Fraction]:
    """One resource, in fractions: raise the level from one stop to the next until *total* is reached."""
    caps = [max(floor, cap) for floor, cap in zip(floors, caps, strict=True)]

    def shares(level: Fraction) -> list[Fraction]:
        return [
            Fraction(floor) if not weight else min(max(level * weight, Fraction(floor)), Fraction(cap))
            for weight, floor, cap in zip(weights, floors, caps, strict=True)
        ]

    stops = {Fraction(0)}
    for weight, floor, cap in zip(weights, floors, caps, strict=True):
        if weight:
            stops |= {Fraction(floor, weight), Fraction(cap, weight)}
    low = Fraction(0)
    for high in sorted(stops):
        if sum(shares(high)) > total:
            below, above = sum(shares(low)), sum(shares(high))
            if above == below or below > total:
                return shares(low)
            return shares(low + (high - low) * (total - below) / (above - below))
        low = high
    return shares(low)


amount = st.one_of(st.integers(0, 50), st.integers(0, 10**6), st.integers(0, 2**45))
queue = st.tuples(st.integers(0, 65535), amount, st.one_of(amount, st.just(UNLIMITED)))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(total=amount, queues=st.lists(queue, min_size=1, max_size=12))
def test_fill_equals_the_slow_twin_and_keeps_its_promises(
    total: int, queues: list[tuple[int, int, int]]
) -> None:
    weights, floors, caps = (list(column) for column in zip(*queues, strict=True))
    shares = fill(
        np.array([total]), np.array(weights)[:, None], np.array(floors)[:, None], np.array(caps)[:, None]
    )[:, 0].tolist()
    twin = slow_fill(total, weights, floors, caps)
    # Whole units lose less than one a queue; beyond 2**40 a float level may be off by a few more.
    slack = 1 + total * len(queues) // 2**45
    assert all(abs(share - exact) <= slack for share, exact in zip(shares, twin, strict=True))
    assert all(share >= floor for share, floor in zip(shares, floors, strict=True))
    assert all(share <= max(cap, floor) for share, cap, floor in zip(shares, caps, floors, strict=True))
    assert sum(shares) <= max(total, sum(floors))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    total=st.integers(0, 10**9),
    queues=st.lists(
        st.tuples(st.integers(1, 100), st.integers(0, 10**6), st.integers(0, 10**9)), min_size=2, max_size=8
    ),
)
def test_nobody_can_gain_without_taking_from_who_has_less(
    total: int, queues: list[tuple[int, int, int]]
) -> None:
    weights, floors, caps = (np.array(column)[:, None] for column in zip(*queues, strict=True))
    share = fill(np.array([total]), weights, floors, caps)
    if share.sum() <= total - len(queues):
        assert (share >= np.maximum(caps, floors)).all(), "something is left although somebody wants more"
    level = share / weights
    wants_more = (share < caps - 1)[:, 0]
    above_floor = (share > floors)[:, 0]
    if wants_more.any() and above_floor.any():
        unit = (1.0 / weights).max()
        assert level[above_floor].max() <= level[wants_more].min() + unit


def test_fill_treats_every_resource_by_itself() -> None:
    share = fill(
        np.array([10, 9]),
        np.array([[1, 1], [1, 2]]),
        np.zeros((2, 2), np.int64),
        np.array([[2, 100], [100, 100]]),
    )
    assert share.tolist() == [[2, 3], [8, 6]]


def test_floors_hold_where_they_exceed_what_exists() -> None:
    share = fill(np.array([10]), np.array([[1], [1]]), np.array([[8], [7]]), np.array([[20], [20]]))
    assert share[:, 0].tolist() == [8, 7]


def test_input_order_does_not_matter() -> None:
    rng = np.random.default_rng(5)
    weights, floors = rng.integers(1, 9, (20, 3)), rng.integers(0, 40, (20, 3))
    caps = rng.integers(0, 400, (20, 3))
    order = rng.permutation(20)
    total = np.array([1000, 1003, 7])
    assert (
        fill(total, weights, floors, caps)[order] == fill(total, weights[order], floors[order], caps[order])
    ).all()


def claims(
    levels: list[tuple[int, list[int]]],
    total: int,
    *,
    weight: list[int],
    guarantee: list[int] | None = None,
    cap: list[int] | None = None,
    lends: list[bool] | None = None,
    in_use: list[bool] | None = None,
    most: list[int] | None = None,
) -> Claims:
    """Claims on CPU alone; the cluster has no memory and uncounted pods."""
    count = len(weight)

    def column(values: list[int] | None, unset: int) -> Ints:
        table = np.full((count, PODS + 1), unset, np.int64)
        if values is not None:
            table[:, CPU] = values
        return table

    everything = np.array([total, 0, 0], np.int64)
    return Claims(
        levels,
        everything,
        np.array(weight, np.int64),
        guarantees(levels, column(guarantee, 0), everything),
        column(cap, UNLIMITED),
        np.array(lends or [False] * count),
        np.array(in_use or [True] * count),
        column(most, UNLIMITED),
    )


def cpu(table: Ints) -> list[int]:
    return [int(value) for value in table[:, CPU]]


def test_own_min_used_does_not_shrink_the_reach_of_others() -> None:
    three = claims([(-1, [0, 1, 2])], 24, weight=[1, 1, 1], guarantee=[8, 8, 8])
    assert cpu(reach(three, lent=True)[1]) == [8, 8, 8]


def test_a_min_above_the_cluster_leaves_others_their_own() -> None:
    two = claims([(-1, [0, 1])], 40, weight=[1, 1], guarantee=[1, 10_000])
    assert cpu(reach(two, lent=True)[1])[0] == 1


def test_a_lent_min_is_free_for_who_may_be_interrupted_only() -> None:
    two = claims([(-1, [0, 1])], 10, weight=[1, 1], guarantee=[6, 0], lends=[True, False])
    assert cpu(reach(two, lent=True)[1])[1] == UNLIMITED
    assert cpu(reach(two, lent=False)[1])[1] == 4


def test_nobody_is_limited_where_nothing_is_held() -> None:
    alone = claims([(-1, [0, 1])], 10, weight=[1, 1], cap=[7, UNLIMITED])
    assert cpu(reach(alone, lent=True)[1]) == [7, UNLIMITED]


def test_a_child_reaches_what_its_siblings_leave_of_the_parent() -> None:
    tree = claims(
        [(-1, [0, 3]), (0, [1, 2])], 100, weight=[1] * 4, guarantee=[0, 3, 0, 20], cap=[50, 99, 99, 99]
    )
    real, _ = reach(tree, lent=True)
    assert cpu(real) == [50, 50, 47, 97]
    assert cpu(tree.guarantee)[0] == 3, "a parent holds at least what its children are held"


def test_deserved_is_shared_by_weight_and_never_more_than_asked() -> None:
    three = claims([(-1, [0, 1, 2])], 12, weight=[1, 2, 1])
    real, _ = reach(three, lent=True)
    request = np.full_like(real, 100)
    request[2, CPU] = 1
    shares = proportional_deserved(three, real, request)
    assert cpu(shares) == [3, 7, 1]
    assert (shares[:, [MEMORY, PODS]] == UNLIMITED).all()


def test_entitlement_is_the_min_plus_the_weights_share_of_the_rest() -> None:
    three = claims(
        [(-1, [0, 1, 2])], 20, weight=[1, 1, 1], guarantee=[8, 0, 0], cap=[UNLIMITED, 3, UNLIMITED]
    )
    real, _ = reach(three, lent=False)
    assert cpu(proportional_entitlement(three, real)) == [12, 3, 4]


def test_unused_queues_dilute_nobody_but_keep_their_min() -> None:
    three = claims([(-1, [0, 1, 2])], 20, weight=[1, 1, 9], guarantee=[0, 0, 4], in_use=[True, True, False])
    real, _ = reach(three, lent=False)
    assert cpu(proportional_entitlement(three, real)) == [8, 8, 4]


def test_who_can_use_little_leaves_the_rest_to_others() -> None:
    three = claims([(-1, [0, 1, 2])], 21, weight=[1, 1, 1], guarantee=[0, 3, 0], most=[UNLIMITED, 0, 2])
    real, limit = reach(three, lent=False)
    assert cpu(proportional_entitlement(three, real)) == [16, 3, 2]
    assert cpu(limit)[2] == 18, "what a queue may reach once it opens is another matter"
    deserved = np.full_like(three.guarantee, -1)
    deserved[2, CPU] = 9
    assert cpu(stated_entitlement(three, real, deserved)) == [16, 3, 2]


def test_children_share_their_parents_entitlement() -> None:
    tree = claims([(-1, [0, 3]), (0, [1, 2])], 30, weight=[2, 3, 1, 1])
    real, _ = reach(tree, lent=False)
    assert cpu(proportional_entitlement(tree, real)) == [20, 15, 5, 10]


def test_stated_shares_hold_and_the_rest_goes_by_weight() -> None:
    four = claims([(-1, [0, 1, 2, 3])], 20, weight=[1, 1, 1, 2], guarantee=[0, 5, 0, 0])
    deserved = np.full_like(four.guarantee, -1)
    deserved[:2, CPU] = [6, 2]  # the second one's min, 5, is more
    real, _ = reach(four, lent=False)
    assert cpu(stated_entitlement(four, real, deserved)) == [6, 5, 3, 6]


def test_an_idle_queues_deserved_is_free_and_its_min_is_not() -> None:
    three = claims([(-1, [0, 1, 2])], 20, weight=[1, 1, 1], guarantee=[0, 3, 0], in_use=[True, False, True])
    deserved = np.full_like(three.guarantee, -1)
    deserved[:2, CPU] = [6, 10]
    real, _ = reach(three, lent=False)
    assert cpu(stated_entitlement(three, real, deserved)) == [6, 3, 11]


def test_a_silent_parent_gets_at_least_what_its_children_state() -> None:
    tree = claims([(-1, [0, 2]), (0, [1])], 10, weight=[1, 1, 9])
    deserved = np.full_like(tree.guarantee, -1)
    deserved[1, CPU] = 4
    real, _ = reach(tree, lent=False)
    assert cpu(stated_entitlement(tree, real, deserved)) == [4, 4, 6]


def test_a_root_above_everybody_changes_nothing() -> None:
    flat = claims(
        [(-1, [0, 1, 2])], 20, weight=[1, 3, 1, 1], guarantee=[2, 0, 5, 0], in_use=[True, True, False, True]
    )
    tree = claims(
        [(-1, [3]), (3, [0, 1, 2])],
        20,
        weight=[1, 3, 1, 1],
        guarantee=[2, 0, 5, 0],
        in_use=[True, True, False, True],
    )
    request = np.zeros_like(flat.guarantee)
    request[:, CPU] = [9, 3, 0, 12]
    deserved = np.full_like(flat.guarantee, -1)
    deserved[1, CPU], deserved[2, CPU] = 4, 5
    for one, other in (
        (
            proportional_deserved(flat, reach(flat, lent=False)[0], request),
            proportional_deserved(tree, reach(tree, lent=False)[0], request),
        ),
        (
            proportional_entitlement(flat, reach(flat, lent=False)[0]),
            proportional_entitlement(tree, reach(tree, lent=False)[0]),
        ),
        (
            stated_entitlement(flat, reach(flat, lent=False)[0], deserved),
            stated_entitlement(tree, reach(tree, lent=False)[0], deserved),
        ),
    ):
        assert cpu(one)[:3] == cpu(other)[:3]


def test_what_the_cluster_does_not_report_is_not_shared_out() -> None:
    two = claims([(-1, [0, 1])], 10, weight=[1, 1])
    real, _ = reach(two, lent=False)
    deserved = np.full_like(two.guarantee, -1)
    deserved[0, MEMORY] = 5
    entitlement = stated_entitlement(two, real, deserved)
    assert entitlement[:, MEMORY].tolist() == [5, UNLIMITED]
    assert (proportional_entitlement(two, real)[:, MEMORY] == UNLIMITED).all()


@pytest.mark.parametrize(
    ("limit", "used", "charge", "expected"),
    [
        ([[10, UNLIMITED]], [[4, 9]], [2, 1], (3, 0, 0)),
        ([[10, 3], [8, 9]], [[0, 0], [7, 0]], [1, 1], (1, 1, 0)),
        ([[10, 3]], [[12, 0]], [1, 1], (0, 0, 0)),
    ],
)
def test_fitting_counts_pods_at_every_ancestor(
    limit: list[list[int]], used: list[list[int]], charge: list[int], expected: tuple[int, int, int]
) -> None:
    assert fitting(np.array(limit), np.array(used), np.array(charge)) == expected


def test_shares_of_many_queues_of_large_amounts_stay_within_the_total() -> None:
    rng = np.random.default_rng(3)
    weights, caps = rng.integers(1, 65535, (2000, 8)), rng.integers(1, 2**50, (2000, 8))
    total = np.full(8, 2**55)
    share = fill(total, weights, np.zeros_like(caps), caps)
    assert (share.sum(axis=0) <= total).all()
    assert (share.sum(axis=0) > total - 2**20).all()
