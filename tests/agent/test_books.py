"""What containers take of cards at their largest moment."""

from __future__ import annotations

import pytest

from tests.agent.node import part
from volcano_py.shim.agent.books import Held, Room, overfull, taken
from volcano_py.shim.agent.pods import APP, INIT, SIDECAR

ROOMS = {"GPU-0": Room(4, 1000, 100), "GPU-1": Room(4, 1000, 100)}


@pytest.mark.parametrize(
    ("held", "amount"),
    [
        ([(APP, [part("GPU-0", 300, 20)]), (APP, [part("GPU-0", 400, 30)])], (2, 700, 50)),
        # Ordinary init containers run alone, one after the other.
        ([(INIT, [part("GPU-0", 600, 10)]), (INIT, [part("GPU-0", 500, 90)])], (1, 600, 90)),
        ([(INIT, [part("GPU-0", 600, 10)]), (APP, [part("GPU-0", 700, 5)])], (1, 700, 10)),
        # A sidecar runs beside what starts after it.
        ([(SIDECAR, [part("GPU-0", 300, 10)]), (INIT, [part("GPU-0", 500, 10)])], (2, 800, 20)),
        ([(INIT, [part("GPU-0", 500, 10)]), (SIDECAR, [part("GPU-0", 300, 10)])], (1, 500, 10)),
        # No limit is all there is.
        ([(APP, [part("GPU-0", 0, 0)])], (1, 1000, 0)),
    ],
)
def test_the_largest_moment_counts(held: Held, amount: tuple[int, int, int]) -> None:
    assert taken(held, ROOMS) == {"GPU-0": amount}


@pytest.mark.parametrize(
    ("pods", "says"),
    [
        ([[(APP, [part("GPU-0", 500, 50)])]] * 2, ""),
        ([[(APP, [part("GPU-0", 501, 50)])]] * 2, "1002 MiB of memory, it has 1000"),
        ([[(APP, [part("GPU-1", 10, 51)])]] * 2, "102 percent of its cores, it has 100"),
        ([[(APP, [part("GPU-1", 10, 1)])]] * 5, "5 shares, it has 4"),
        ([[(APP, [part("GPU-9", 10, 1)])]], "there is no card GPU-9"),
    ],
)
def test_a_card_that_would_be_over_is_named(pods: list[Held], says: str) -> None:
    found = overfull(pods, ROOMS)
    assert says in found
    assert bool(found) == bool(says)
