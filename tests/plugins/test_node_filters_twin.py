"""Every filter and every score over nodes equals a plain one, on random clusters."""

from random import Random
from typing import Any

import pytest

from tests.plugins.asking import engine_of, passing, scores
from tests.plugins.random_clusters import namespaces, nodes, pod
from tests.plugins.reference import Cluster, name
from volcano_py.scheduler.engine import Engine

CLUSTERS = 150


def cluster(seed: int) -> tuple[Cluster, Engine, list[dict[str, Any]]]:
    """The same random cluster for both, with objects told in random order."""
    dice = Random(seed)
    spaces, machines = namespaces(dice), nodes(dice)
    places = [name(machine) for machine in machines]
    placed = [pod(dice, f"p{i}", dice.choice(places)) for i in range(dice.randint(0, 10))]
    waiting = [pod(dice, f"w{i}") for i in range(4)]
    told = [*spaces, *machines, *placed, *waiting]
    dice.shuffle(told)
    labels = {name(space): space["metadata"]["labels"] for space in spaces}
    return Cluster(machines, placed, labels), engine_of(*told), waiting


def key(waiting: dict[str, Any]) -> str:
    return f"{waiting['metadata']['namespace']}/{name(waiting)}"


@pytest.mark.parametrize("seed", range(CLUSTERS))
def test_filters_equal_plain_ones(seed: int) -> None:
    plain, engine, waiting = cluster(seed)
    for asking in waiting:
        for check, expected in plain.filters(asking).items():
            assert passing(engine, key(asking), check) == expected, (check, asking)


@pytest.mark.parametrize("seed", range(CLUSTERS))
def test_scores_equal_plain_ones(seed: int) -> None:
    plain, engine, waiting = cluster(seed)
    dice = Random(seed + 1000)
    for asking in waiting:
        among = dice.sample(plain.nodes, dice.randint(1, len(plain.nodes)))
        expected = {
            "NodeAffinity": (2, plain.affinity_scores(asking, among)),
            "TaintToleration": (3, plain.taint_scores(asking, among)),
            "InterPodAffinity": (2, plain.pod_affinity_scores(asking, among)),
            "PodTopologySpread": (2, plain.spread_scores(asking, among)),
        }
        for scorer, (weight, plain_scores) in expected.items():
            found = scores(engine, key(asking), scorer, {name(node) for node in among})
            if found:
                weighted = {node: weight * score for node, score in plain_scores.items()}
                assert found == weighted, (scorer, asking)
            else:
                assert len(set(plain_scores.values())) == 1, f"{scorer} not asked though nodes differ"
