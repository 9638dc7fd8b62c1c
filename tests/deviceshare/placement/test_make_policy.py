import numpy as np
import pytest

from tests.deviceshare.placement import twins
from volcano_py.plugins.deviceshare.placement import (
    POLICIES,
    CardAsk,
    TypicalAsks,
    make_policy,
    typical_for,
)
from volcano_py.plugins.deviceshare.placement.typical import ModelClasses

SEEN = [(CardAsk(cpu, 0, 1000, 1), count) for cpu, count in ((1, 50), (2, 30), (3, 15), (4, 4), (5, 1))]
RARE_GANG = (CardAsk(9, 0, 1000, 8), 1)


@pytest.mark.parametrize("name", POLICIES)
def test_every_name_makes_a_policy_of_that_name(name: str) -> None:
    policy = make_policy(name, typical=typical_for(name, SEEN))
    assert policy.name == name
    assert policy.per_pod == (name == "random")


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown placement policy 'fgd'; known: random, dot-product"):
        make_policy("fgd")
    with pytest.raises(ValueError, match="unknown placement policy 'fgd'"):
        typical_for("fgd", SEEN)


def test_unknown_options_list_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"policy best-fit: unknown option streams; known: \['cards_scale'"):
        make_policy("best-fit", options={"streams": 3})


@pytest.mark.parametrize("name", ["fragmentation-gradient", "expected-fill"])
def test_policies_that_look_ahead_need_typical_asks(name: str) -> None:
    with pytest.raises(ValueError, match=f"policy {name}: it looks ahead"):
        make_policy(name)


def test_scales_are_options() -> None:
    nodes = twins.gathered([twins.Node(64_000, (1000,))], twins.BITS)
    ask = CardAsk(0, 0, 0, 0)
    narrow = make_policy("best-fit", options={"cpu_scale": 64_000, "cards_scale": 1_000})
    assert narrow.score(ask, nodes)[0].tolist() == [0]
    assert make_policy("best-fit").score(ask, nodes)[0].tolist() == [68]


def test_typical_asks_reach_the_cover_most_frequent_first() -> None:
    typical = TypicalAsks.from_counts(SEEN[::-1], cover=0.95)
    assert typical.cpu.tolist() == [1, 2, 3]
    assert typical.share.tolist() == pytest.approx([50 / 95, 30 / 95, 15 / 95])


def test_of_equally_frequent_asks_the_larger_is_kept() -> None:
    seen = [(CardAsk(cpu, 0, 1000, 1), 10) for cpu in (3, 9, 6)]
    assert TypicalAsks.from_counts(seen, cover=0.5).cpu.tolist() == [6, 9]


def test_rare_gangs_are_kept_when_wanted() -> None:
    seen = [*SEEN, RARE_GANG]
    assert 8 not in TypicalAsks.from_counts(seen, cover=0.94).cards
    kept = TypicalAsks.from_counts(seen, cover=0.94, keep_gangs=True)
    assert kept.cards.tolist() == [1, 1, 1, 8]
    assert kept.counts.tolist() == [50, 30, 15, 1]


def test_asks_that_differ_in_memory_only_are_one() -> None:
    seen = [(CardAsk(1, memory, 500, 1), 2) for memory in range(3)]
    assert TypicalAsks.from_counts(seen).counts.tolist() == [6]


@pytest.mark.parametrize("cover", [0, -0.1, 1.01])
def test_a_cover_outside_its_range_is_refused(cover: float) -> None:
    with pytest.raises(ValueError, match="cover must be in"):
        TypicalAsks.from_counts(SEEN, cover)


def test_nothing_seen_is_refused() -> None:
    with pytest.raises(ValueError, match="no pods"):
        TypicalAsks.from_counts([])


def test_model_classes_join_models_that_the_same_asks_accept() -> None:
    seen = [
        (CardAsk(1, 0, 1000, 1), 3),
        (CardAsk(1, 0, 1000, 1, frozenset({4, 6})), 2),
        (CardAsk(1, 0, 1000, 1, frozenset({6})), 1),
    ]
    classes = ModelClasses(TypicalAsks.from_counts(seen, cover=1))
    found = classes.of(np.array([0, 4, 5, 6, 7, 900, -1], dtype=np.int32))
    assert (found == found[0]).tolist() == [True, False, True, False, True, True, True]
    assert classes.accepted[found[[0, 1, 3]]].tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
