"""Expected numbers were printed by Go 1's math/rand with the same seeds and calls."""

import pytest

from volcano_py.simulator.go_random import GoRandom


@pytest.mark.parametrize(
    ("seed", "first", "second"),
    [
        (42, 3440579354231278675, 608747136543856411),
        (0, 8717895732742165505, 2259404117704393152),
        (-7, 747107023976529931, 7084732931963018726),
        (1 << 40, 5470237361722394362, 6322525149314491254),
    ],
)
def test_first_numbers_of_a_seed(seed: int, first: int, second: int) -> None:
    random = GoRandom(seed)
    assert [random.int63(), random.int63()] == [first, second]


def test_numbers_below_a_hundred() -> None:
    random = GoRandom(1)
    assert [random.intn(100) for _ in range(10)] == [81, 87, 47, 59, 81, 18, 25, 40, 56, 0]


def test_shuffle_then_permutation() -> None:
    random, items = GoRandom(42), list(range(10))
    random.shuffle(items)
    assert items == [2, 5, 7, 9, 6, 8, 1, 4, 0, 3]
    assert random.permutation(10) == [0, 1, 5, 4, 7, 9, 6, 3, 2, 8]


def test_large_bounds_after_a_thousand_draws() -> None:
    random = GoRandom(3)
    for _ in range(1000):
        random.int63()
    drawn = [random.int63(), random.intn(1 << 30), *(random.intn(3 << 29) for _ in range(3))]
    assert drawn == [7321152658739465408, 1007039833, 135243556, 1347974856, 294712273]
