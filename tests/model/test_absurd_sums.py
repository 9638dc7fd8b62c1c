"""Thousands of pods that each ask for all that one may: their sum counts as too much, not as nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.clusters import Document, engine, group, node, pod, queue
from volcano_py.scheduler.engine import Engine
from volcano_py.scheduler.model.resources import MEMORY, UNLIMITED, summed

PROPORTION = "actions: enqueue, allocate\ntiers:\n- plugins: [{name: gang}, {name: proportion}]\n"
ABSURD = 8_200
"""One PiB each: together beyond 63 bits."""


def asking(of: str, count: int, memory: str) -> list[Document]:
    return [pod(f"{of}-{i}", of, requests={"memory": memory}) for i in range(count)]


@pytest.fixture(scope="module")
def crowded() -> Engine:
    return engine(
        node("n", "16", "60Gi"),
        queue("a", parent="team"), queue("a2", parent="team"), queue("team"), queue("b"),
        group("absurd", queue="a"), *asking("absurd", ABSURD, "1Pi"),
        group("absurd2", queue="a2"), *asking("absurd2", ABSURD, "1Pi"),
        group("sane", queue="b"), *asking("sane", 10, "10Gi"),
        config=PROPORTION,
    )  # fmt: skip


def test_a_queue_that_asks_for_too_much_gets_its_weights_share(crowded: Engine) -> None:
    session = crowded.open(0.0)
    assert session.shares is not None
    deserved = {
        queue.name: int(session.shares.deserved[queue.row, MEMORY]) for queue in session.state.queues.live()
    }
    half = 30 * 2**30
    assert (deserved["team"], deserved["b"]) == (half, half)
    assert deserved["a"] == half // 2


def test_what_is_too_much_to_count_is_read_as_that_and_the_rest_exactly(crowded: Engine) -> None:
    state = crowded.state
    awaited = {queue.name: int(state.awaited()[queue.row, MEMORY]) for queue in state.queues.live()}
    assert awaited["a"] == awaited["a2"] == awaited["team"] == UNLIMITED
    assert awaited["b"] == 100 * 2**30


def test_the_books_are_exact_again_when_such_pods_are_gone() -> None:
    made = engine(
        queue("a"), group("absurd", queue="a"), *asking("absurd", ABSURD, "1Pi"), *asking("sane", 1, "1Gi")
    )
    state = made.state
    row = state.queues.index["a"]
    assert state.awaited()[row, MEMORY] == UNLIMITED
    for number in range(ABSURD - 1):
        made.delete("Pod", f"ml/absurd-{number}")
    assert state.awaited()[row, MEMORY] == state.queues.pending[row, MEMORY] == 2**50
    assert state.classes.charged < 2 * 2**50


def test_sums_stop_where_nothing_is_limited() -> None:
    amounts = np.array([[2**61, 1], [2**61, 2], [2**61, 3], [2**62 - 1, 4]])
    assert summed(amounts).tolist() == [UNLIMITED, 10]
    assert summed(np.full((1 << 14, 1), 2**50)).tolist() == [UNLIMITED]
