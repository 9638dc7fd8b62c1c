"""Expected fill: values against the literal recipe, and what a score is made of."""

from collections import Counter

import numpy as np
import pytest

from tests.deviceshare.placement import twins
from volcano_py.plugins.deviceshare.placement import CardAsk, TypicalAsks, make_policy
from volcano_py.plugins.deviceshare.placement.expected_fill import NodeValues
from volcano_py.plugins.deviceshare.placement.fill import draw_streams
from volcano_py.plugins.deviceshare.placement.scarcity import ModelPrices

STREAMS, FILL, SEED = 6, 2.0, 7
OPTIONS = {"streams": STREAMS, "fill": FILL, "stream_seed": SEED}
HALVES = CardAsk(1_000, 0, 300, 2)  # a gang of slices, which no published list has


def asks_of(typical: TypicalAsks) -> list[tuple[CardAsk, int]]:
    rows = zip(typical.cpu, typical.milli, typical.cards, typical.models, typical.counts, strict=True)
    return [(CardAsk(int(c), 0, int(m), int(k), models), int(n)) for c, m, k, models, n in rows]


def value(node: twins.Node, typical: TypicalAsks) -> float:
    asks = asks_of(typical)
    streams = draw_streams(typical, len(node.free), STREAMS, FILL, SEED)
    filled = [twins.fill(node, [asks[t][0] for t in stream]) for stream in streams]
    return sum(filled) / STREAMS + twins.reserve(node, asks)


@pytest.fixture(scope="module")
def typical() -> TypicalAsks:
    counts = twins.typical_counts(np.random.default_rng(5))
    return TypicalAsks.from_counts([*counts, (HALVES, 150)], cover=1)


@pytest.mark.parametrize("seed", range(5))
def test_values_are_those_of_the_recipe(typical: TypicalAsks, seed: int) -> None:
    nodes = twins.random_nodes(np.random.default_rng(seed), 60)
    rows = twins.gathered(nodes, twins.BITS)
    values = NodeValues(typical, STREAMS, FILL, SEED).of(
        rows.model, rows.cpu_idle, np.sort(rows.free, axis=1)
    )
    assert values.tolist() == pytest.approx([value(node, typical) for node in nodes])
    assert np.count_nonzero(values) > 30


def test_values_do_not_depend_on_what_was_asked_before(typical: TypicalAsks) -> None:
    rows = twins.gathered(twins.random_nodes(np.random.default_rng(9), 40), twins.BITS)
    free = np.sort(rows.free, axis=1)
    asked_at_once = NodeValues(typical, STREAMS).of(rows.model, rows.cpu_idle, free)
    values = NodeValues(typical, STREAMS)
    for half in (slice(0, 25), slice(10, 40), slice(0, 40)):
        part = values.of(rows.model[half], rows.cpu_idle[half], free[half])
        assert part.tolist() == asked_at_once[half].tolist()


@pytest.mark.parametrize("ask", [*twins.ASKS, HALVES], ids=str)
def test_scores_are_value_after_less_value_before_on_the_best_card(
    typical: TypicalAsks, ask: CardAsk
) -> None:
    nodes = [n for n in twins.random_nodes(np.random.default_rng(3), 60) if twins.can_host(n, ask)]
    policy = make_policy("expected-fill", typical=typical, options=OPTIONS)
    scores, chosen = policy.score(ask, twins.gathered(nodes, twins.BITS))
    for node, score, cards in zip(nodes, scores, chosen, strict=True):
        choices = [twins.tightest(node, ask)]
        if ask.is_slice:
            choices = [[card] for card, room in enumerate(node.free) if room >= ask.milli]
        gains = {
            tuple(choice): value(twins.without(node, ask, choice), typical) - value(node, typical)
            for choice in choices
        }
        assert score == pytest.approx(max(gains.values()))
        assert gains[tuple(np.flatnonzero(cards).tolist())] == pytest.approx(score)


def test_streams_hold_each_ask_in_proportion_and_fill_the_node_twice(typical: TypicalAsks) -> None:
    for cards in (1, 2, 8):
        streams = draw_streams(typical, cards, 64, 2.0, 7)
        mean = float(typical.share @ (typical.milli * typical.cards))
        assert streams.shape == (64, max(1, round(2000 * cards / mean)))
        drawn = Counter(streams.ravel().tolist())
        for ask, share in enumerate(typical.share):
            assert abs(drawn[ask] - share * streams.size) < 1 + 1e-9


def test_prices_are_the_part_of_a_models_cards_that_is_claimed_by_name() -> None:
    # 100 pods ask 100 cards in all, and the cluster has 50: pods worth 50 cards are reckoned with.
    anyone, two, one = CardAsk(1, 0, 1000, 1), frozenset({1, 2}), frozenset({3})
    seen = [(anyone, 60), (CardAsk(1, 0, 1000, 1, two), 20), (CardAsk(1, 0, 1000, 1, one), 20)]
    prices = ModelPrices(TypicalAsks.from_counts(seen, cover=1), {0: 5, 1: 10, 2: 30, 3: 5})
    # Models 1 and 2: 10 cards claimed of their 40 together. Model 3: 10 claimed of 5, at most all.
    expected = [0, 0.25, 0.25, 1, 0, 0]
    assert prices.of(np.array([0, 1, 2, 3, 4, -1], dtype=np.int32)).tolist() == pytest.approx(expected)


def test_a_model_that_is_not_in_the_cluster_is_claimed_from_the_others() -> None:
    named = CardAsk(1, 0, 1000, 1, frozenset({1, 7}))
    typical = TypicalAsks.from_counts([(CardAsk(1, 0, 1000, 1), 3), (named, 1)], cover=1)
    prices = ModelPrices(typical, {0: 2, 1: 2})
    assert prices.of(np.array([0, 1, 7], dtype=np.int32)).tolist() == pytest.approx([0, 0.5, 0])


def test_a_scarce_model_costs_half_of_what_is_taken_of_it() -> None:
    anyone, named = CardAsk(1, 0, 1000, 1), CardAsk(1, 0, 1000, 1, frozenset({1}))
    typical = TypicalAsks.from_counts([(anyone, 50), (named, 50)], cover=1)
    nodes = twins.gathered([twins.Node(9, (1000,), 1), twins.Node(9, (1000,), 0)], twins.BITS)
    plain, _ = make_policy("expected-fill", typical=typical).score(anyone, nodes)
    priced, _ = make_policy("expected-fill", typical=typical, cards={0: 1, 1: 1}).score(anyone, nodes)
    assert (plain - priced).tolist() == pytest.approx([500, 0])


def test_the_weight_of_prices_is_an_option() -> None:
    named = CardAsk(1, 0, 1000, 1, frozenset({1}))
    typical = TypicalAsks.from_counts([(named, 1)], cover=1)
    nodes = twins.gathered([twins.Node(9, (1000,), 1)], twins.BITS)
    scores = [
        make_policy("expected-fill", typical=typical, cards={1: 1}, options={"price_weight": weight}).score(
            named, nodes
        )[0][0]
        for weight in (0.0, 2.0)
    ]
    assert scores == pytest.approx([-1000, -3000])
