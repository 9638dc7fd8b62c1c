"""Scores: the amounts against a plain twin, images, arguments, and which scores are asked at all."""

from random import Random
from typing import Any

import numpy as np
import pytest

from tests.clusters import node, pod
from tests.plugins.asking import class_of, engine_of, opened, scorer, scores
from volcano_py.crds.schedulerconfig import Arguments, ConfigError
from volcano_py.plugins.nodeorder import WEIGHTS, NodeOrderPlugin
from volcano_py.scheduler.framework.points import Scope
from volcano_py.scheduler.framework.view import NodeView
from volcano_py.scheduler.model.tasks import Status

MIB = 2**20
AMOUNTS = (
    "NodeResourcesLeastAllocated",
    "NodeResourcesMostAllocated",
    "NodeResourcesBalancedAllocation",
)
ALL = "".join(f"{name}.weight: 1, " for name in WEIGHTS)
CONFIG = f"actions: allocate\ntiers:\n- plugins: [{{name: nodeorder, arguments: {{{ALL}}}}}]\n"


def least(asked: int, size: int) -> int:
    return 0 if asked > size else (size - asked) * 100 // size


def most(asked: int, size: int) -> int:
    return min(asked, size) * 100 // size


def mean(score: Any, asked: list[int], sizes: list[int]) -> int:
    """Kube-scheduler's mean over the resources that the node has."""
    found = [score(a, size) for a, size in zip(asked, sizes, strict=True) if size]
    return sum(found) // len(found) if found else 0


def balance(asked: list[int], sizes: list[int]) -> int:
    """100 less the standard deviation of the shares in use."""
    shares = [min(a / size, 1.0) for a, size in zip(asked, sizes, strict=True) if size]
    if len(shares) < 2:
        return 100
    if len(shares) == 2:
        return int((1 - abs((shares[0] - shares[1]) / 2)) * 100)
    middle = sum(shares) / len(shares)
    return int((1 - (sum((s - middle) * (s - middle) for s in shares) / len(shares)) ** 0.5) * 100)


@pytest.mark.parametrize("seed", range(40))
def test_amounts_equal_plain_ones(seed: int) -> None:
    """For hypothetical amounts: whatever the view says is used, also where a node is overcommitted."""
    dice = Random(seed)
    machines = [
        node(
            f"n{i}",
            cpu=dice.choice(("0", "1", "3", "64")),
            memory=dice.choice(("0", "7", "16Gi", "3Ti")),
            amounts={"nvidia.com/gpu": dice.choice(("0", "3", "8"))},
        )
        for i in range(6)
    ]
    asks = {"memory": dice.choice(("0", "1Gi")), "nvidia.com/gpu": dice.choice(("0", "1"))}
    cpu = dice.choice((None, "500m", "2"))
    engine = engine_of(*machines, pod("p", "g", cpu=cpu, requests=asks), config=CONFIG)
    view, klass = hypothetical(engine.state, dice), class_of(engine, "ml/p")
    gpu = engine.state.vocabulary.columns["nvidia.com/gpu"]
    columns = [0, 1, gpu] if klass.request[gpu] else [0, 1]
    found = {name: scorer(engine, name) for name in AMOUNTS}
    for name, plain in (("Least", least), ("Most", most)):
        asked = found[f"NodeResources{name}Allocated"].score(klass, view).tolist()
        nonzero = klass.signature.nonzero
        assert asked == [
            mean(
                plain,
                [int(view.nonzero_cpu[i]) + nonzero[0], int(view.nonzero_memory[i]) + nonzero[1]],
                view.allocatable[i, :2].tolist(),
            )
            for i in range(len(view.rows))
        ]
    balanced = found["NodeResourcesBalancedAllocation"]
    assert balanced.applies(klass) == any(klass.request[columns])
    assert balanced.score(klass, view).tolist() == [
        balance(
            (view.used[i, columns] + klass.request[columns]).tolist(), view.allocatable[i, columns].tolist()
        )
        for i in range(len(view.rows))
    ]


def hypothetical(state: Any, dice: Random) -> NodeView:
    """Every node three times, with random amounts in use."""
    rows = np.repeat(state.nodes.order, 3)
    allocatable = state.nodes.allocatable[rows]
    parts = np.array([[dice.choice((0, 1, 5, 10, 13)) for _ in range(allocatable.shape[1])] for _ in rows])
    used = allocatable * parts // 10
    return NodeView(state, rows, allocatable, used, used[:, 0] + 100, used[:, 1] + 200 * MIB)


@pytest.mark.parametrize(
    ("size", "on", "expected"),
    [
        (10 * MIB, 1, 0),
        (100 * MIB, 4, (100 - 23) * 100 // 977),
        (100 * MIB, 2, (50 - 23) * 100 // 977),
        (5000 * MIB, 4, 100),
    ],
)
def test_images_on_more_nodes_count_more(size: int, on: int, expected: int) -> None:
    """Bytes weigh by the part of the nodes that hold the image, between 23 MiB and 1000 MiB."""
    engine = engine_of(pod("p", "g"))
    for number in range(4):
        machine = node(f"n{number}")
        if number < on:
            machine["status"]["images"] = [{"names": ["busybox:latest", "x/busybox@sha"], "sizeBytes": size}]
        engine.apply(machine)
    found = scores(engine, "ml/p", "ImageLocality")
    assert [found[f"n{i}"] for i in range(4)] == [expected if i < on else 0 for i in range(4)]


def test_images_come_and_go_with_node_events() -> None:
    engine = engine_of(node("a"), node("b"), pod("p", "g"))
    assert scores(engine, "ml/p", "ImageLocality") == {}
    with_image = node("a")
    with_image["status"]["images"] = [{"names": ["busybox:latest"], "sizeBytes": 4000 * MIB}]
    engine.apply(with_image)
    assert scores(engine, "ml/p", "ImageLocality") == {"a": 100, "b": 0}
    engine.apply(node("a"))
    assert scores(engine, "ml/p", "ImageLocality") == {}


def test_scores_that_would_say_the_same_of_all_nodes_are_not_asked() -> None:
    engine = engine_of(node("a", taints=[{"key": "k", "effect": "NoSchedule"}]), pod("p", "g"))
    klass = class_of(engine, "ml/p")
    asked = {e.call.name for e in opened(engine).points.node_order if e.call.applies(klass)}
    assert asked == {"NodeResourcesLeastAllocated", "NodeResourcesBalancedAllocation"}


def test_amounts_can_be_kept_ahead() -> None:
    engine = engine_of(config=CONFIG)
    assert {scorer(engine, name).scope for name in AMOUNTS} == {Scope.AMOUNTS}


def test_pods_are_liked_where_they_are_at_that_time() -> None:
    """A preference looks at who is there, and for the future at who will be: one leaves, one is promised."""
    liked: dict[str, Any] = {"labels": {"app": "x"}}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
    wish = {"weight": 10, "podAffinityTerm": term}
    near = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    engine = engine_of(node("a"), node("b"), pod("old", "g", on="a", metadata=leaving, **liked))
    engine.apply(pod("p", "g", affinity=near))
    engine.apply(pod("next", "g", **liked))
    state = engine.state
    row = np.array([state.nodes.index["b"]], np.int32)
    state.accounts.move([state.tasks.index["ml/next"]], Status.PIPELINED, row)
    assert scores(engine, "ml/p", "InterPodAffinity") == {"a": 200, "b": 0}
    assert scores(engine, "ml/p", "InterPodAffinity", future=True) == {"a": 0, "b": 200}


@pytest.mark.parametrize("value", [-1, "1", 0.5])
def test_bad_weights_stop_the_start(value: object) -> None:
    with pytest.raises(ConfigError, match=r"leastrequested\.weight"):
        NodeOrderPlugin(Arguments("plugin nodeorder", {"leastrequested.weight": value}))


def test_a_weight_of_zero_takes_the_score_out() -> None:
    options = "{name: nodeorder, arguments: {leastrequested.weight: 0, mostrequested.weight: 5}}"
    engine = engine_of(
        node("a"), pod("p", "g"), config=f"actions: allocate\ntiers:\n- plugins: [{options}]\n"
    )
    names = [entry.call.name for entry in opened(engine).points.node_order]
    assert "NodeResourcesLeastAllocated" not in names
    assert scores(engine, "ml/p", "NodeResourcesMostAllocated") == {"a": 5 * ((25 + 1) // 2)}
