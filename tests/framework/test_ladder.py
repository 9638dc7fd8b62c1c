"""What is kept of a class from job to job and cycle to cycle is never older than the cluster."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from tests.clusters import Document, engine, group, node, pod
from volcano_py.scheduler.framework.points import Scope, Scorer
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.view import NodeView
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.resources import Scores

NOW = 1767225600.0
CONFIG = """\
actions: allocate
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: nodeorder}]
"""


def test_a_class_that_takes_the_row_of_another_has_reasons_of_its_own() -> None:
    """Nothing on any node changes between the two; only the pod that waits is another."""
    known = engine(node("n"), group("a"), pod("a-0", "a", "9"), config=CONFIG)
    assert "Insufficient cpu" in known.cycle(NOW).refusals["ml/a-0"].message
    known.delete("Pod", "ml/a-0")
    known.apply(group("b"))
    known.apply(pod("b-0", "b", "1", nodeSelector={"zone": "z"}))
    assert "Insufficient cpu" not in known.cycle(NOW).refusals["ml/b-0"].message


def test_rows_are_scored_by_the_session_that_asks() -> None:
    """A row that is stale in the next cycle is for that cycle's functions, not for those of the last."""
    known = engine(node("n0"), node("n1"), group("a"), pod("a-0", "a"), config=CONFIG)
    asked: list[float] = []

    def hang(session: Session) -> None:
        def score(klass: TaskClass, view: NodeView) -> Scores:
            asked.append(session.now)
            return np.zeros(len(view.rows))

        session.points.node_order.add("told", Scorer("told", Scope.AMOUNTS, score))

    known.plugins[0].open = hang  # type: ignore[method-assign]
    known.cycle(NOW)
    asked.clear()
    known.apply(pod("a-1", "a"))
    known.apply(pod("s-0", "s", on="n0", schedulerName="other"))
    known.cycle(NOW + 1)
    assert set(asked) == {NOW + 1}


def shapes(dice: Random) -> list[Document]:
    """Nodes of few sizes, partly in use."""
    made: list[Document] = []
    for number in range(dice.randint(2, 12)):
        made.append(node(f"n{number}", dice.choice(("2", "4", "7")), dice.choice(("4Gi", "9Gi"))))
        if dice.random() < 0.5:
            made.append(pod(f"s{number}", "s", "1", on=f"n{number}", schedulerName="other"))
    return made


def asked(dice: Random) -> dict[str, Any]:
    """What equal pods ask; now and then something that is asked anew for every pod."""
    wants: dict[str, Any] = {"requests": {"memory": dice.choice(("256Mi", "1Gi"))}, "labels": {"app": "x"}}
    rule = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
    if dice.random() < 0.3:
        wants["topologySpreadConstraints"] = [{**rule, "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway"}]
    elif dice.random() < 0.3:
        near = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "podAffinityTerm": rule}]}
        wants["affinity"] = {"podAffinity": near}
    return wants


@pytest.mark.parametrize("seed", range(60))
def test_a_batch_equals_one_cycle_for_each_pod(seed: int) -> None:
    """More pods than rungs, so that rows are extended while they are climbed."""
    dice = Random(seed)
    nodes, count = shapes(dice), dice.randint(1, 45)
    pods = [pod(f"g-{number}", "g", "100m", **asked(Random(seed))) for number in range(count)]
    together = engine(*nodes, group("g", 1), *pods, config=CONFIG).cycle(NOW).decisions
    alone = engine(*nodes, group("g", 1), config=CONFIG)
    single = []
    for each in pods:
        alone.apply(each)
        single += alone.cycle(NOW).decisions
    assert [(each.pod, each.node) for each in together] == [(each.pod, each.node) for each in single]


@pytest.mark.parametrize("seed", range(30))
def test_the_order_of_input_decides_nothing(seed: int) -> None:
    dice = Random(seed)
    told = shapes(dice)
    for number in range(4):
        told.append(group(f"g{number}", dice.randint(1, 3)))
        wants = asked(dice)
        told += [pod(f"g{number}-{i}", f"g{number}", dice.choice(("1", "500m")), **wants) for i in range(3)]
    first = engine(*told, config=CONFIG).cycle(NOW)
    dice.shuffle(told)
    other = engine(*told, config=CONFIG).cycle(NOW)
    assert other.decisions == first.decisions
    assert other.refusals == first.refusals


def test_a_discard_leaves_rows_as_they_were() -> None:
    """A gang that does not fit climbs the rows and is taken back; the next job sees nothing of it."""
    known = engine(node("n0"), node("n1"), group("a", 9), group("b", 8), config=CONFIG)
    for number in range(9):
        known.apply(pod(f"a-{number}", "a"))
    for number in range(8):
        known.apply(pod(f"b-{number}", "b"))
    found = known.cycle(NOW)
    assert {each.pod for each in found.decisions} == {f"ml/b-{number}" for number in range(8)}
    alone = engine(node("n0"), node("n1"), group("b", 8), config=CONFIG)
    for number in range(8):
        alone.apply(pod(f"b-{number}", "b"))
    assert found.decisions == alone.cycle(NOW).decisions
