"""Giving up early must decide and say just what trying everybody would."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.clusters import Document, engine, group, node, pod, queue
from volcano_py.scheduler.engine import CycleResult
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.framework.stalemate import Stalemate

CONFIG = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""


def crowded(seed: int) -> list[Document]:
    """More jobs than a small cluster takes, of few kinds, in two queues, one of them capped."""
    draw = random.Random(seed)
    documents = [node(f"n{i}", cpu=str(draw.randint(1, 4))) for i in range(draw.randint(1, 3))]
    documents += [queue("open"), queue("capped", capability={"cpu": "3"})]
    for number in range(draw.randint(5, 25)):
        name, pods = f"j{number:02}", draw.choice((1, 1, 2, 3))
        documents.append(group(name, draw.randint(0, pods), queue=draw.choice(("open", "capped"))))
        for index in range(pods):
            cpu = draw.choice(("1", "2", "3", "5"))
            more: dict[str, Any] = {"nodeSelector": {"zone": "a"}} if draw.random() < 0.1 else {}
            more |= {"schedulingGates": [{"name": "wait"}]} if draw.random() < 0.1 else {}
            documents.append(pod(f"{name}-{index}", name, cpu, **more))
    return documents


def outcome(documents: list[Document]) -> CycleResult:
    return engine(*documents, config=CONFIG).cycle(1767225600.0)


@pytest.mark.parametrize("seed", range(60))
def test_nothing_differs_from_trying_every_job(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = crowded(seed)
    early = outcome(documents)
    monkeypatch.setattr(Stalemate, "reached", lambda *_: False)
    patient = outcome(documents)
    assert early.decisions == patient.decisions
    assert early.refusals == patient.refusals
    assert early.job_refusals == patient.job_refusals
    assert early.pod_groups == patient.pod_groups


def alike(count: int, cpu: str = "5") -> list[Document]:
    jobs = [f"big-{number:02}" for number in range(count)]
    return [item for name in jobs for item in (group(name), pod(f"{name}-0", name, cpu))]


def test_many_alike_are_not_tried_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[bool] = []
    ask = Stalemate.reached

    def counted(self: Stalemate, *args: object) -> bool:
        reached.append(ask(self, *args))  # type: ignore[arg-type]
        return reached[-1]

    monkeypatch.setattr(Stalemate, "reached", counted)
    result = outcome([node("n0"), *alike(50)])
    assert reached == [True]
    assert len(result.refusals) == 50


def test_a_later_job_that_fits_is_still_placed() -> None:
    result = outcome([node("n0"), *alike(20), group("small"), pod("small-0", "small")])
    assert [decision.pod for decision in result.decisions] == ["ml/small-0"]
    assert len(result.refusals) == 20


def test_what_a_plugin_says_of_one_job_is_not_said_of_others() -> None:
    made = engine(node("n0"), *alike(9), config=CONFIG)
    session = made.open(1767225600.0)
    odd = Refusal("Odd", "this one job may not run")
    session.points.pre_predicate.add("odd", lambda klass, job: odd if job.name == "big-05" else None)
    for action in made.actions:
        action.run(session)
    said = {made.state.tasks.keys[task]: refusal.reason for task, refusal in session.refusals.items()}
    assert said.pop("ml/big-05-0") == "Odd"
    assert set(said.values()) == {"NodesUnfit"}
