"""Which ids the kubelet is asked to take, and whose parts they become."""

from __future__ import annotations

from collections import Counter

import pytest

from volcano_py.shim.agent.handing import ids_on

FREE = [f"GPU-{card}-{number}" for card in (0, 1) for number in (10, 2, 1)]


@pytest.mark.parametrize(
    ("cards", "must", "count", "chosen"),
    [
        ({"GPU-1": 1}, [], 1, ["GPU-1-1"]),
        ({"GPU-0": 1, "GPU-1": 1}, [], 2, ["GPU-0-1", "GPU-1-1"]),
        # Numbers are numbers: the second comes before the tenth.
        ({"GPU-0": 2}, [], 2, ["GPU-0-1", "GPU-0-2"]),
        # What must be taken counts, on whatever card it is.
        ({"GPU-0": 1, "GPU-1": 1}, ["GPU-1-7"], 2, ["GPU-1-7", "GPU-0-1"]),
        ({"GPU-0": 1}, ["GPU-1-7"], 1, ["GPU-1-7"]),
        # Where a card has no free id the kubelet fills up as it likes, and the start sorts it out.
        ({"GPU-2": 1}, [], 1, []),
    ],
)
def test_ids_are_on_the_cards_of_who_waits(
    cards: dict[str, int], must: list[str], count: int, chosen: list[str]
) -> None:
    assert ids_on(Counter(cards), FREE, must, count) == chosen
