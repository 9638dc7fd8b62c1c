"""Events that alter nothing the engine reads leave the books, and every version, as they were."""

from __future__ import annotations

import json
from typing import Any

from tests.clusters import Document, engine, group, node, pod, queue
from volcano_py.scheduler.engine import Engine
from volcano_py.scheduler.model.tasks import Status

CONFIG = "actions: allocate, backfill\ntiers:\n- plugins: [{name: gang}, {name: deviceshare}]\n"
CARDS = json.dumps(
    [{"id": "c0", "index": 0, "count": 4, "devmem": 8000, "devcore": 100, "type": "A100", "health": True}]
)


def versions(made: Engine) -> tuple[int, ...]:
    state = made.state
    return (
        state.nodes.epoch,
        state.queues.epoch,
        state.volumes.version,
        state.jobs.epoch,
        state.coupling.tasks.size,
    )


def with_notes(document: Document, **notes: str) -> Document:
    meta = document["metadata"]
    return {**document, "metadata": {**meta, "annotations": {**meta.get("annotations", {}), **notes}}}


def placed(**more: Any) -> tuple[Engine, Document]:
    """An engine that has just bound the pod, and the pod."""
    waiting = pod("p", "g", **more)
    notes = {"hami.io/node-nvidia-register": CARDS}
    made = engine(
        node("n0", annotations=notes, amounts={"nvidia.com/gpu": "4"}), group("g"), waiting, config=CONFIG
    )
    decisions = made.cycle(0.0).decisions
    assert [decision.kind for decision in decisions] == ["bind"]
    made.cycle(1.0)
    return made, waiting


def on(document: Document, where: str, phase: str = "Pending") -> Document:
    status = {"phase": phase, "startTime": "2025-12-31T12:00:00Z"} if phase == "Running" else {"phase": phase}
    return {**document, "spec": {**document["spec"], "nodeName": where}, "status": status}


def test_a_pod_that_arrives_where_it_was_bound_and_runs_moves_no_amount() -> None:
    made, waiting = placed()
    before = versions(made)
    task = made.state.tasks.index["ml/p"]
    for event, status in ((on(waiting, "n0"), Status.BOUND), (on(waiting, "n0", "Running"), Status.RUNNING)):
        assert made.apply(event) == []
        assert made.state.tasks.status[task] == status
    assert versions(made) == before
    job = made.state.jobs.named("ml/g")
    assert job is not None
    assert (job.count(Status.RUNNING), job.count(Status.BINDING), job.allocated()) == (1, 0, 1)
    assert job.row in made.state.jobs.changed


def test_a_pod_that_arrives_elsewhere_is_booked_there() -> None:
    made, waiting = placed()
    made.apply(node("n1"))
    made.apply(on(waiting, "n1"))
    used = made.state.nodes.used[:, made.state.vocabulary.column("cpu")]
    assert used[made.state.nodes.index["n0"]] == 0
    assert used[made.state.nodes.index["n1"]] == 1000


def test_the_record_of_the_cards_that_were_chosen_moves_no_amount_and_another_one_does() -> None:
    made, waiting = placed(requests={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"})
    state = made.state
    task = state.tasks.index["ml/p"]
    stored = state.tasks.pods[task]
    choice = state.tasks.slices[task]
    assert stored is not None
    notes = state.card_source.record(stored, choice.slices, "n0", state.cards.specs[0], 0.0)
    before = versions(made)
    arrived = with_notes(on(waiting, "n0"), **notes)
    made.apply(arrived)
    assert versions(made) == before
    assert state.tasks.status[task] == Status.BOUND
    other = {key: text.replace(",1000,", ",3000,") for key, text in notes.items()}
    made.apply(with_notes(arrived, **other))
    assert int(state.cards.used_memory[0, 0]) == 3000


def test_notes_nobody_reads_change_nothing_and_those_that_are_read_do() -> None:
    made, waiting = placed()
    running = on(waiting, "n0", "Running")
    made.apply(running)
    before = versions(made)
    made.apply(with_notes(running, **{"example.com/seen": "1"}))
    assert versions(made) == before
    made.apply(with_notes(running, **{"volcano.sh/preemptable": "false"}))
    assert not made.state.tasks.interruptible[made.state.tasks.index["ml/p"]]


def test_the_echo_of_a_groups_own_status_changes_nothing() -> None:
    made, _ = placed()
    job = made.state.jobs.named("ml/g")
    assert job is not None
    assert job.phase == "Running"
    before = versions(made)
    made.state.jobs.changed.clear()
    made.apply(group("g", phase="Running"))
    assert versions(made) == before
    assert not made.state.jobs.changed
    made.apply(group("g", 2, phase="Running"))
    assert versions(made) != before
    assert job.min_member == 2


def test_a_handshake_of_a_device_plugin_is_no_change_of_the_node() -> None:
    made, _ = placed()
    before = versions(made)
    notes = {"hami.io/node-nvidia-register": CARDS, "hami.io/node-handshake": "Reported 1"}
    made.apply(node("n0", annotations=notes, amounts={"nvidia.com/gpu": "4"}))
    assert versions(made) == before
    made.apply(node("n0", annotations={**notes, "x": "y"}, amounts={"nvidia.com/gpu": "4"}))
    assert versions(made) != before


def test_what_is_written_of_a_queues_holdings_changes_nothing_and_its_state_does() -> None:
    made, _ = placed()
    asked = queue("default", 2)
    made.apply(asked)
    before = versions(made)
    made.apply({**asked, "status": {"state": "Open", "allocated": {"cpu": "1"}, "running": 1}})
    assert versions(made) == before
    made.apply({**asked, "status": {"state": "Closed"}})
    assert versions(made) != before
    made.delete("Queue", "default")
    made.apply(asked)
    assert int(made.state.queues.weight[made.state.queues.index["default"]]) == 2
