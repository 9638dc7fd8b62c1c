"""The six published policies against plain twins, on random rows."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from tests.deviceshare.placement import twins
from volcano_py.plugins.deviceshare.placement import (
    CardAsk,
    PlacementPolicy,
    TypicalAsks,
    fits,
    make_policy,
)

SEEDS = range(6)


def hosts(ask: CardAsk, seed: int) -> list[twins.Node]:
    nodes = twins.random_nodes(np.random.default_rng(seed), 120)
    return [node for node in nodes if twins.can_host(node, ask)]


def check(policy: PlacementPolicy, ask: CardAsk, nodes: list[twins.Node], expected: list[object]) -> None:
    scores, chosen = policy.score(ask, twins.gathered(nodes, twins.BITS))
    answer = [
        (int(score), np.flatnonzero(cards).tolist()) for score, cards in zip(scores, chosen, strict=True)
    ]
    assert answer == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ask", twins.ASKS, ids=str)
def test_fits_is_room_for_every_part_of_the_ask(ask: CardAsk, seed: int) -> None:
    nodes = twins.random_nodes(np.random.default_rng(seed), 120)
    expected = [twins.can_host(node, ask) for node in nodes]
    assert fits(ask, twins.gathered(nodes, twins.BITS)).tolist() == expected


def test_fits_asks_for_memory_too() -> None:
    nodes = twins.gathered([twins.Node(1000, (1000,))], twins.BITS)
    assert fits(CardAsk(0, 1 << 40, 1000, 1), nodes).tolist() == [True]
    assert fits(CardAsk(0, (1 << 40) + 1, 1000, 1), nodes).tolist() == [False]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ask", twins.ASKS, ids=str)
@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("dot-product", twins.dot_product),
        ("best-fit", twins.best_fit),
        ("clustering", twins.clustering),
        ("packing", twins.packing),
    ],
)
def test_scores_and_tightest_cards(
    name: str, twin: Callable[[twins.Node, CardAsk], int], ask: CardAsk, seed: int
) -> None:
    nodes = hosts(ask, seed)
    check(make_policy(name), ask, nodes, [(twin(node, ask), twins.tightest(node, ask)) for node in nodes])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ask", twins.ASKS, ids=str)
def test_fragmentation_gradient(ask: CardAsk, seed: int) -> None:
    typical = twins.typical_counts(np.random.default_rng(100 + seed))
    policy = make_policy("fragmentation-gradient", typical=TypicalAsks.from_counts(typical, cover=1))
    nodes = hosts(ask, seed)
    check(policy, ask, nodes, [twins.fragmentation_gradient(node, ask, typical) for node in nodes])


def test_an_ask_that_strands_nothing_scores_exactly_fifty() -> None:
    # An exact tie: float sums in another order would land just below the half and lose a point.
    typical = TypicalAsks.from_counts([(ask, 7) for ask in twins.ASKS[:7]], cover=1)
    nodes = twins.gathered([twins.Node(96_000, (0, 190, 460, 1000))], twins.BITS)
    scores, _ = make_policy("fragmentation-gradient", typical=typical).score(CardAsk(10, 0, 0, 0), nodes)
    assert scores.tolist() == [50]


def test_random_takes_every_node_and_card_about_equally_often() -> None:
    policy, ask = make_policy("random", seed=3), CardAsk(0, 0, 400, 1)
    nodes = twins.gathered([twins.Node(0, (400, 100, 1000)) for _ in range(5)], twins.BITS)
    taken: Counter[tuple[int, int]] = Counter()
    for draw in range(2000):
        scores, chosen = policy.score(ask, nodes, draw)
        best = int(scores.argmax())
        taken[best, int(chosen[best].argmax())] += 1
    assert set(taken) == {(node, card) for node in range(5) for card in (0, 2)}
    assert min(taken.values()) > 150  # 200 expected, standard deviation 13
    assert max(taken.values()) < 250


def test_random_depends_on_seed_pod_and_node_only() -> None:
    nodes = twins.gathered([twins.Node(0, (1000, 1000))] * 4, twins.BITS)
    ask = CardAsk(0, 0, 400, 1)
    first, again = (make_policy("random", seed=1).score(ask, nodes, 5)[0] for _ in range(2))
    assert first.tolist() == again.tolist()
    assert first.tolist() != make_policy("random", seed=2).score(ask, nodes, 5)[0].tolist()
    assert first.tolist() != make_policy("random", seed=1).score(ask, nodes, 6)[0].tolist()


def test_random_gangs_take_free_cards() -> None:
    nodes = twins.gathered([twins.Node(0, (1000, 500, 1000, 1000))], twins.BITS)
    _, chosen = make_policy("random").score(CardAsk(0, 0, 1000, 2), nodes)
    assert chosen.tolist() == [[True, False, True, False]]
