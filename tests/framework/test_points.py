"""How the answers of several plugins become one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from volcano_py.scheduler.framework.points import (
    ABSTAIN,
    Point,
    Points,
    Vote,
    all_true,
    first_refusal,
    first_tier_all_true,
    order_key,
    tiered_vote,
    victims_by_tier,
)
from volcano_py.scheduler.framework.refusal import Refusal

VICTIMS = np.arange(4, dtype=np.int32)
CLAIM: Any = None


def point(*answers: tuple[int, Any]) -> Point[Any]:
    """A point with one plugin for each (tier, answer), in this order."""
    tiers = {f"p{number}": tier for number, (tier, _) in enumerate(answers)}
    made: Point[Any] = Point("point", lambda plugin, flag: tiers[plugin])
    for number, (_, answer) in enumerate(answers):
        made.add(f"p{number}", lambda *args, said=answer: said)
    return made


def mask(text: str) -> Any:
    """(4,) True where *text* has a 1."""
    return np.array([letter == "1" for letter in text])


def agreed(*answers: tuple[int, Any]) -> str:
    found = victims_by_tier(point(*answers), CLAIM, VICTIMS)
    return "".join("1" if each else "0" for each in found)


def test_nobody_asked_gives_nobody_up() -> None:
    assert agreed() == "0000"


def test_answers_in_a_tier_are_intersected() -> None:
    assert agreed((0, mask("1110")), (0, mask("0111"))) == "0110"


def test_the_first_tier_that_gives_anybody_decides() -> None:
    assert agreed((0, mask("0100")), (1, mask("1111"))) == "0100"
    assert agreed((0, mask("1000")), (1, mask("0111"))) == "1000"


def test_a_tier_that_only_abstains_is_passed_over() -> None:
    assert agreed((0, ABSTAIN), (1, mask("0011"))) == "0011"
    assert agreed((0, ABSTAIN), (0, mask("0001")), (1, mask("1111"))) == "0001"
    assert agreed((0, ABSTAIN), (1, ABSTAIN)) == "0000"


def test_a_tier_that_gives_nobody_hands_on() -> None:
    assert agreed((0, mask("0000")), (1, mask("0011"))) == "0011"


def test_an_intersection_that_became_empty_is_not_filled_again() -> None:
    """The third plugin of the tier must not revive what the first two ruled out."""
    assert agreed((0, mask("1000")), (0, mask("0001")), (0, mask("1111"))) == "0000"
    assert agreed((0, mask("1000")), (0, mask("0001")), (1, mask("0010"))) == "0010"


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ([], True),
        ([(0, Vote.ABSTAIN)], True),
        ([(0, Vote.REJECT), (1, Vote.PERMIT)], False),
        ([(0, Vote.PERMIT), (1, Vote.REJECT)], True),
        ([(0, Vote.PERMIT), (0, Vote.REJECT)], False),
        ([(0, Vote.ABSTAIN), (1, Vote.REJECT)], False),
        ([(0, Vote.ABSTAIN), (1, Vote.PERMIT), (2, Vote.REJECT)], True),
    ],
)
def test_votes_on_a_job(votes: list[tuple[int, Vote]], expected: bool) -> None:
    assert tiered_vote(point(*votes), None) is expected


def test_ready_asks_everybody_and_starving_the_first_tier() -> None:
    assert all_true(point(), None)
    assert not all_true(point((0, True), (1, False)), None)
    assert not first_tier_all_true(point(), None)
    assert first_tier_all_true(point((0, True), (1, False)), None)
    assert not first_tier_all_true(point((0, True), (0, False), (1, True)), None)


def test_the_first_refusal_counts() -> None:
    one, other = Refusal("One", "one"), Refusal("Other", "other")
    assert first_refusal(point((0, None), (1, one), (1, other)), None) is one
    assert first_refusal(point((0, None)), None) is None


def test_keys_stand_in_tier_order_whoever_came_first() -> None:
    assert order_key(point((1, "late"), (0, "early")), None, ("name",)) == ("early", "late", "name")


def test_a_flag_switches_votes_off_and_no_protection() -> None:
    """The configuration refuses every flag: what has one stays silent, what protects is still heard."""
    points = Points(lambda plugin, flag: None if flag is not None else 0)
    for name in (
        "job_order",
        "preemptable",
        "reclaimable",
        "job_ready",
        "predicate",
        "node_order",
        "overused",
    ):
        getattr(points, name).add("p", lambda *args: True)
        assert not getattr(points, name), name
    for name in ("protects", "allocatable", "preemptive", "job_valid"):
        getattr(points, name).add("p", lambda *args: True)
        assert getattr(points, name), name
