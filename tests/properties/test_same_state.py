"""Invariants 5 and 6: what is decided follows from the objects, not from how they came to be known."""

from __future__ import annotations

import pytest

from tests.properties.worlds import random_world

STEPS = 10


def live(seed: str, share: str) -> tuple[int, int]:
    """Run a world for a while, each cycle beside an engine that has just been told everything.

    Returns:
        How many cycles were compared, and how many decisions they made.
    """
    world = random_world(seed, share)
    compared = decided = 0
    for step in range(STEPS):
        for _ in range(world.dice.randint(1, 4)):
            world.happen()
        fresh = world.fresh().cycle(float(world.now))
        result = world.cycle()
        compared, decided = compared + 1, decided + len(result.decisions)
        assert result.decisions == fresh.decisions, (seed, step)
        assert result.refusals == fresh.refusals, (seed, step)
        assert result.job_refusals == fresh.job_refusals, (seed, step)
    return compared, decided


@pytest.mark.parametrize("share", ["proportion", "capacity"])
@pytest.mark.parametrize("block", range(3))
def test_an_engine_with_a_past_decides_like_a_new_one(block: int, share: str) -> None:
    totals = [live(f"{share} {block} {number}", share) for number in range(8)]
    assert sum(compared for compared, _ in totals) > 50
    assert sum(decided for _, decided in totals) > 20


@pytest.mark.long
@pytest.mark.parametrize("share", ["proportion", "capacity"])
@pytest.mark.parametrize("block", range(20))
def test_an_engine_with_a_past_decides_like_a_new_one_often(block: int, share: str) -> None:
    for number in range(25):
        live(f"long {share} {block} {number}", share)
