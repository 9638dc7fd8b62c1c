"""Invariant 7: nothing that an object contains stops the loop, and its garbage is its own trouble."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.clusters import Document, group, node, pod, queue
from tests.properties.garbage import cluster, spoil
from volcano_py.crds.schedulerconfig import load_scheduler_config
from volcano_py.scheduler.engine import Engine

NOW = 1767225600.0
CONFIG = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]
- plugins: [{{name: overcommit}}, {{name: drf, enablePreemptable: false}}, {{name: predicates}},
            {{name: {share}}}, {{name: nodeorder}}, {{name: binpack}}, {{name: deviceshare}}]
"""


def empty(share: str = "proportion") -> Engine:
    return Engine(load_scheduler_config(CONFIG.format(share=share)))


def decided(*documents: Document) -> list[tuple[str, str, str]]:
    """What a cycle decides once all *documents* are told, sound or not."""
    engine = empty()
    for document in documents:
        engine.apply(document)
    return [(each.kind, each.pod, each.node) for each in engine.cycle(NOW).decisions]


@pytest.mark.parametrize("share", ["proportion", "capacity"])
@pytest.mark.parametrize("block", range(10))
def test_no_object_stops_the_loop(block: int, share: str) -> None:
    """Objects come spoiled, cycles run, the same objects come sound again."""
    for seed in range(block * 12, block * 12 + 12):
        dice = Random(f"{share} {seed}")
        documents = cluster()
        dice.shuffle(documents)
        engine = empty(share)
        for document in documents:
            engine.apply(document)
        for now in range(3):
            for _ in range(4):
                engine.apply(spoil(dice, dice.choice(documents), identity=dice.random() < 0.2))
            engine.cycle(NOW + now)
            engine.settle(NOW + now)


@pytest.mark.parametrize("block", range(10))
def test_a_refused_object_counts_as_absent(block: int) -> None:
    """Where problems are reported, all is decided as if the object had never come."""
    refused = 0
    for seed in range(block * 40, block * 40 + 40):
        dice = Random(seed)
        documents = cluster()
        target = dice.choice(documents)
        spoiled = spoil(dice, target)
        if empty().apply(spoiled):
            refused += 1
            rest = [document for document in documents if document is not target]
            assert decided(*rest, spoiled) == decided(*rest), spoiled
            assert decided(*documents, spoiled) == decided(*rest), spoiled
    assert refused > 5


@pytest.mark.parametrize("block", range(5))
def test_spoiled_objects_made_sound_again_leave_no_trace(block: int) -> None:
    for seed in range(block * 20, block * 20 + 20):
        dice = Random(seed)
        documents = cluster()
        wrong = [spoil(dice, dice.choice(documents)) for _ in range(3)]
        assert decided(*documents, *wrong, *documents) == decided(*documents), wrong


@pytest.mark.parametrize("text", ["²", "--5", "+", "99999999999", "1e3", " 5"])
def test_a_task_priority_that_is_no_number_is_doubted(text: str) -> None:
    engine = empty()
    assert engine.apply(pod("g-0", "g", annotations={"volcano.sh/task-priority": text})) == []
    assert "task-priority" in str(engine.state.doubts["Pod ml/g-0"])


@pytest.mark.parametrize("wrong", [{"requests": {"x.io/\ud800": "1"}}, {"nodeSelector": {"\ud800": "1"}}])
def test_half_characters_are_refused(wrong: Document) -> None:
    problems = empty().apply(pod("g-0", "g", **wrong))
    assert "\\ud800" in str(problems[0])
    str(problems[0]).encode()


@pytest.mark.parametrize("amount", ["9223372036854775807", "4611686018427387904", "8Ei"])
def test_absurd_amounts_do_not_make_a_node_look_empty(amount: str) -> None:
    """Two pods that say they hold 2^62 bytes: what is left of the node is not their sum wrapped around."""
    absurd = [pod(f"r-{number}", "r", on="n", requests={"memory": amount}) for number in range(2)]
    full = pod("r-2", "r", on="n", requests={"memory": "16Gi"})
    asking = [group("g"), pod("g-0", "g", requests={"memory": "1Gi"})]
    assert decided(node("n"), group("r", 1, phase="Running"), *absurd, full, *asking) == []


@pytest.mark.parametrize("amount", ["9223372036854775807", "4611686018427387904", "8Ei"])
def test_absurd_requests_do_not_empty_a_share(amount: str) -> None:
    """Pods that ask more than there is anywhere wait; others of their queue and other queues start."""
    made: list[Document] = [node("n"), queue("a"), queue("b"), group("x", 1, "a")]
    made += [pod(f"x-{number}", "x", requests={"memory": amount}) for number in range(3)]
    for name in "ab":
        made += [group(f"g{name}", 1, name), pod(f"g{name}-0", f"g{name}", requests={"memory": "1Gi"})]
    assert sorted(decided(*made)) == [("bind", "ml/ga-0", "n"), ("bind", "ml/gb-0", "n")]


def test_an_endless_minimum_waits_at_the_gate_alone() -> None:
    endless: dict[str, Any] = {"minResources": {"memory": "1Pi"}}
    made = [node("n"), group("x", 1, phase="Inqueue", **endless), group("y", 1, phase="Pending", **endless)]
    sound = [group("g", 1, phase="Pending", minResources={"cpu": "1"}), pod("g-0", "g")]
    assert decided(*made, *sound) == [("bind", "ml/g-0", "n")]
