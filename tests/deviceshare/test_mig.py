"""Which instance of a card is cut, and what is still possible beside it."""

from __future__ import annotations

import itertools

import pytest

from volcano_py.crds.cards.register import CardReport, MigProfile
from volcano_py.plugins.deviceshare.mig import (
    DEFAULTS,
    NONE,
    Geometry,
    geometry_of,
    grouped_geometry,
    placed_geometry,
    read_geometries,
    still_cut,
)
from volcano_py.scheduler.model.cards import CardChoice, CardHold, CardSpec, CardTable
from volcano_py.simulator.card_shorthand import A100

PLACED = placed_geometry(A100)
GROUPED = grouped_geometry(DEFAULTS[2].groups)


def keys(geometry: Geometry, taken: int) -> list[str]:
    return [option.key for at, option in enumerate(geometry.options) if taken >> at & 1]


def cells(key: str) -> set[int]:
    start, size = map(int, key.partition("@")[2].split("-"))
    return set(range(start, start + size))


@pytest.mark.parametrize("memory", [1, 9000, 9729, 20000, 60000, 80896])
def test_instances_never_overlap_and_are_large_enough(memory: int) -> None:
    taken = 0
    while (option := PLACED.pick(taken, memory, 0)) != NONE:
        assert PLACED.options[option].memory_mib >= memory
        taken |= 1 << option
    held = [cells(key) for key in keys(PLACED, taken)]
    assert held
    assert all(one.isdisjoint(other) for one, other in itertools.combinations(held, 2))
    assert PLACED.pick(taken, memory, 0) == NONE


def test_more_than_the_largest_is_never() -> None:
    assert PLACED.pick(0, 80897, 0) == NONE
    assert PLACED.pick(0, 1, 101) == NONE


def test_cores_make_the_instance_larger() -> None:
    assert PLACED.options[PLACED.pick(0, 1, 40)].profile == "3g.40gb"


def test_the_place_that_leaves_most() -> None:
    """A half at slice 4 costs three small places, at slice 0 four; a small one costs no pair at slice 6."""
    assert PLACED.options[PLACED.pick(0, 40000, 0)].label == "4-4"
    assert PLACED.options[PLACED.pick(0, 1000, 0)].label == "6-1"


def test_still_cut_is_the_most_by_trying_all() -> None:
    for taken in (0, 1 << PLACED.pick(0, 1000, 0), 1 << PLACED.pick(0, 19000, 0)):
        free = PLACED.free(taken)
        for profile, count in still_cut(PLACED, taken).items():
            places = [
                at for at, option in enumerate(PLACED.options) if option.profile == profile and free >> at & 1
            ]
            best = max(
                size
                for size in range(len(places) + 1)
                for chosen in itertools.combinations(places, size)
                if all(not PLACED.options[a].excludes >> b & 1 for a, b in itertools.combinations(chosen, 2))
            )
            assert count == best


def test_groups_exclude_each_other() -> None:
    first = GROUPED.pick(0, 19000, 0)
    assert GROUPED.options[first].label.startswith("group2-")
    assert {
        GROUPED.options[at].label for at in range(len(GROUPED.options)) if GROUPED.free(1 << first) >> at & 1
    } == {
        "group2-1",
        "group2-2",
        "group2-3",
    }


def test_what_records_say_is_found() -> None:
    assert PLACED.options[PLACED.find("3g.40gb@4-4") or 0].key == "3g.40gb@4-4"
    assert GROUPED.options[GROUPED.find("group2-3") or 0].profile == "1g.10gb"
    assert PLACED.find("9g.99gb@0-1") is None
    assert GROUPED.find("group9-0") is None


def report(model: str, mig: tuple[MigProfile, ...] = ()) -> CardReport:
    return CardReport("GPU-0", 0, 7, 81920, 100, model, mode="mig", mig=mig)


def test_the_cards_own_report_goes_before_what_is_known() -> None:
    assert geometry_of(report("NVIDIA A100-SXM4-80GB", A100), DEFAULTS) is PLACED
    assert geometry_of(report("NVIDIA A100 SXM4 80GB"), DEFAULTS) is GROUPED
    assert geometry_of(report("NVIDIA X"), DEFAULTS) is None


@pytest.mark.parametrize(
    "document", ["x", [1], [{"models": ["a"]}], [{"models": 1, "allowedGeometries": []}]]
)
def test_garbled_geometries_are_errors(document: object) -> None:
    with pytest.raises(ValueError, match=r"must be a list|models and allowedGeometries"):
        read_geometries(document)


def test_an_instance_that_two_records_name_is_free_when_both_are_gone() -> None:
    table = CardTable()
    table.set_cards(0, [CardSpec("a", 81920, 100, 7, "A100", "hami.io", mode="mig", cut=PLACED)])
    both = CardChoice((), (CardHold(0, 9728, 15, 1, parts=0b101),))
    one = CardChoice((), (CardHold(0, 9728, 15, 1, parts=0b100),))
    table.book("used", 0, both, 1)
    table.book("used", 0, one, 1)
    assert table.used_parts[0, 0] == 0b101
    table.book("used", 0, both, -1)
    assert table.used_parts[0, 0] == 0b100
    table.book("used", 0, one, -1)
    assert table.used_parts[0, 0] == 0
    assert table.used_memory[0, 0] == 0
