"""binpack against its formula, and its arguments."""

from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.clusters import node, pod
from tests.plugins.asking import class_of, engine_of, opened, scorer, scores
from volcano_py.crds.schedulerconfig import Arguments, ConfigError
from volcano_py.plugins.binpack import BinpackPlugin
from volcano_py.scheduler.framework.view import NodeView

GPU = "nvidia.com/gpu"


def config(arguments: str = "") -> str:
    return f"actions: allocate\ntiers:\n- plugins: [{{name: binpack, arguments: {{{arguments}}}}}]\n"


@pytest.mark.parametrize("seed", range(30))
def test_score_is_the_formula(seed: int) -> None:
    dice = Random(seed)
    weights = {"cpu": dice.choice((0, 1, 3)), "memory": dice.choice((0, 1)), GPU: dice.choice((0, 1, 10))}
    total = dice.choice((1, 5))
    arguments = f"binpack.weight: {total}, binpack.cpu: {weights['cpu']}, binpack.memory: {weights['memory']}"
    arguments += f", binpack.resources: '{GPU}', binpack.resources.{GPU}: {weights[GPU]}"
    machines = [node(f"n{i}", cpu=dice.choice(("2", "8")), amounts={GPU: "4"}) for i in range(5)]
    asks = {"memory": dice.choice(("0", "1Gi")), GPU: dice.choice(("0", "1", "3"))}
    engine = engine_of(*machines, pod("p", "g", requests=asks), config=config(arguments))
    klass, state = class_of(engine, "ml/p"), engine.state
    rows = np.repeat(state.nodes.order, 3)
    size = state.nodes.allocatable[rows]
    used = size * np.array([[dice.randrange(11) for _ in range(size.shape[1])] for _ in rows]) // 10
    none = np.zeros(len(rows), np.int64)
    asked = scorer(engine, "binpack")
    counted = {
        state.vocabulary.columns[name]: weight
        for name, weight in weights.items()
        if weight and klass.request[state.vocabulary.columns[name]]
    }
    assert asked.applies(klass) == bool(counted)
    if not counted:
        return
    found = asked.score(klass, NodeView(state, rows, size, used, none, none))
    for i in range(len(rows)):
        assert found[i] == pytest.approx(float(plain(used[i], klass.request, size[i], counted) * total))


def plain(used: Any, asked: Any, size: Any, weights: dict[int, int]) -> Fraction:
    """100 x the weighted mean of what would be full; 0 where something would not fit."""
    total = Fraction(0)
    for column, weight in weights.items():
        filled = int(used[column] + asked[column])
        if filled > size[column]:
            return Fraction(0)
        total += Fraction(filled * weight, int(size[column]))
    return 100 * total / sum(weights.values())


def test_the_fuller_node_wins() -> None:
    engine = engine_of(
        node("a"),
        node("b"),
        pod("old", "h", on="b", cpu="2"),
        pod("p", "g"),
        config=config("binpack.memory: 0"),
    )
    assert scores(engine, "ml/p", "binpack") == {"a": 25.0, "b": 75.0}


def test_cards_count_only_when_told() -> None:
    asks: dict[str, Any] = {"requests": {GPU: "1"}}
    machines = [node("a", amounts={GPU: "8"}), node("b", amounts={GPU: "8"}), pod("p", "g", **asks)]
    running = pod("old", "h", cpu=None, on="b", **asks)
    silent = engine_of(*machines, running, config=config())
    assert len(set(scores(silent, "ml/p", "binpack").values())) == 1
    told = engine_of(*machines, running, config=config(f"binpack.resources: {GPU}"))
    found = scores(told, "ml/p", "binpack")
    assert found["b"] > found["a"]


def test_who_asks_nothing_that_counts_is_not_scored() -> None:
    engine = engine_of(node("a"), pod("p", "g", cpu=None), config=config())
    assert scores(engine, "ml/p", "binpack") == {}


def test_weight_zero_takes_the_score_out() -> None:
    assert not opened(engine_of(config=config("binpack.weight: 0"))).points.node_order


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({"binpack.weight": -1}, "binpack.weight"),
        ({"binpack.cpu": "many"}, "binpack.cpu"),
        ({"binpack.resources": "a", "binpack.resources.b": 1}, "binpack.resources.b"),
    ],
)
def test_bad_arguments_stop_the_start(arguments: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        BinpackPlugin(Arguments("plugin binpack", arguments))
