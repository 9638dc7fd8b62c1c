"""capacity: what queues state, over a tree."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clusters import Document, group, node, pod, queue
from tests.plugins.sharing import claim, job, opened, room, voted
from tests.plugins.sharing import queue as named
from volcano_py.crds.arguments import ConfigError
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.framework.session import Session

TREE = ", enableHierarchy: true"


def cluster(*documents: Document, cpu: str = "20", options: str = TREE) -> Session:
    return opened(f"[{{name: capacity{options}}}]", node("n", cpu, "64Gi"), *documents)


def many(of: str, count: int, *, on: str = "n", first: int = 0) -> list[Document]:
    return [pod(f"{of}-{i}", of, on=on) for i in range(first, first + count)]


def owed(session: Session, name: str) -> int:
    """Entitlement of a queue in milli-CPU."""
    assert session.shares is not None
    return int(session.shares.entitlement[named(session, name).row, 0])


def gate(session: Session, name: str) -> str:
    (entry,) = session.points.job_enqueueable
    answer = entry.call(job(session, name))
    return answer.message if isinstance(answer, Refusal) else ""


def test_stated_shares_hold_and_silent_queues_split_the_rest() -> None:
    session = cluster(
        queue("a", deserved={"cpu": "8"}), group("x", queue="a"), *many("x", 1),
        queue("b", 2), group("y", queue="b"), *many("y", 1),
        queue("c"), group("z", queue="c"), *many("z", 1),
        queue("idle", deserved={"cpu": "9"}),
    )  # fmt: skip
    assert [owed(session, name) for name in ("a", "b", "c", "idle")] == [8_000, 8_000, 4_000, 0]


def test_a_queue_without_a_parent_stands_under_the_root() -> None:
    session = cluster(
        queue("root", capability={"cpu": "3"}), queue("a", parent="root"), queue("b"),
        group("x", queue="a"), *many("x", 2), group("y", queue="b"), *many("y", 2, on=""),
    )  # fmt: skip
    answer = room(session, "b", "y-0")
    assert answer.count == 1
    assert answer.refusal is not None
    assert answer.refusal.message == "queue root: 1 cpu asked with 3 in use, 1 over its max of 3"


def test_every_ancestors_limit_holds_at_the_gate_too() -> None:
    session = cluster(
        queue("p", capability={"cpu": "4"}, deserved={"cpu": "4"}),
        queue("a", parent="p", deserved={"cpu": "2"}), queue("b", parent="p", deserved={"cpu": "2"}),
        group("x", queue="a", minResources={"cpu": "2"}),
        group("y", queue="b", phase="Pending", minResources={"cpu": "3"}),
        group("w", queue="b", phase="Pending", minResources={"cpu": "2"}),
    )  # fmt: skip
    assert gate(session, "y") == "queue p: 3 cpu asked with 2 in use, 1 over its max of 4"
    assert gate(session, "w") == ""


def full_parent(entitled: str) -> Session:
    return cluster(
        queue("p", capability={"cpu": "10"}, deserved={"cpu": "10"}),
        queue("a", parent="p", deserved={"cpu": "6"}), queue("b", parent="p", deserved={"cpu": entitled}),
        group("v", queue="a", phase="Running"), *many("v", 10),
        group("c", 4, queue="b", phase="Pending", minResources={"cpu": "4"}),
    )  # fmt: skip


def test_a_job_inside_its_own_entitlement_passes_a_full_parent() -> None:
    assert gate(full_parent("4"), "c") == ""
    assert gate(full_parent("3"), "c") == "queue p: 4 cpu asked with 10 in use, 4 over its max of 10"


def family(options: str = TREE, **child: Any) -> Session:
    """Two branches of 8 and 4 on 12 CPU: the first is at its own with 7 in one child, the second over."""
    return cluster(
        queue("p", deserved={"cpu": "8"}),
        queue("p1", parent="p", deserved={"cpu": "4"}),
        queue("p2", parent="p", **(child or {"deserved": {"cpu": "4"}})),
        queue("q", deserved={"cpu": "4"}),
        group("v", queue="p1"), *many("v", 7), group("w", queue="q"), *many("w", 5),
        group("c", queue="p2"), *many("c", 1, on=""),
        cpu="12", options=options,
    )  # fmt: skip


def test_a_branch_that_is_below_its_own_takes_from_one_that_is_over() -> None:
    assert voted(family(), "reclaimable", "c-0", "v-0", "w-0") == [True, True]


def test_a_branch_that_has_all_it_is_owed_takes_from_itself_only() -> None:
    session = cluster(
        queue("p", deserved={"cpu": "8"}), queue("p1", parent="p", deserved={"cpu": "4"}),
        queue("p2", parent="p", deserved={"cpu": "4"}), queue("q", deserved={"cpu": "3"}),
        group("v", queue="p1"), *many("v", 8), group("w", queue="q"), *many("w", 4),
        group("c", queue="p2"), *many("c", 1, on=""), cpu="12",
    )  # fmt: skip
    assert voted(session, "reclaimable", "c-0", "v-0", "w-0") == [True, False]


def test_a_branch_within_its_own_keeps_what_its_children_lend_each_other() -> None:
    session = cluster(
        queue("p", deserved={"cpu": "8"}), queue("p1", parent="p", deserved={"cpu": "4"}),
        queue("p2", parent="p", deserved={"cpu": "4"}), queue("q", deserved={"cpu": "4"}),
        group("v", queue="p1"), *many("v", 8), group("c", queue="q"), *many("c", 1, on=""), cpu="12",
    )  # fmt: skip
    assert voted(session, "reclaimable", "c-0", "v-0") == [False]


def test_a_claim_may_be_measured_above_its_leaf() -> None:
    leaf = {"deserved": {"cpu": "0"}}
    assert voted(family(TREE, **leaf), "reclaimable", "c-0", "v-0", "w-0") == [False, False]
    above = TREE + ", arguments: {ancestorReclaimLevel: 1}"
    session = family(above, **leaf)
    # Against the other branch the parent's entitlement counts; inside it the leaf's own does.
    assert voted(session, "reclaimable", "c-0", "v-0", "w-0") == [False, True]
    (entry,) = session.points.preemptive
    assert entry.call(named(session, "p2"), session.state.vocabulary.vector({"cpu": 1000}), False) is None


def test_the_nearest_relatives_give_first() -> None:
    session = family()
    (entry,) = session.points.victim_queue_order
    keys = [entry.call(claim(session, "c-0"), named(session, name)) for name in ("p1", "q")]
    assert keys[0] < keys[1]


def test_shares_are_compared_from_the_top_of_the_tree() -> None:
    session = cluster(
        queue("p", deserved={"cpu": "10"}), queue("p1", parent="p", deserved={"cpu": "8"}),
        queue("p2", parent="p", deserved={"cpu": "2"}), queue("q", deserved={"cpu": "10"}),
        group("v", queue="p1"), *many("v", 6), group("c", queue="p2"), *many("c", 1),
        group("w", queue="q"), *many("w", 5),
    )  # fmt: skip
    queues = sorted((named(session, name) for name in ("p1", "p2", "q")), key=session.queue_order_key)
    # p holds 7 of 10, q 5 of 10; inside p: p1 6 of 8, p2 1 of 2.
    assert [each.name for each in queues] == ["q", "p2", "p1"]


def test_pods_of_a_queue_with_a_broken_tree_are_nobodys_victims() -> None:
    session = cluster(
        queue("lost", parent="nobody", deserved={"cpu": "0"}), group("v", queue="lost"), *many("v", 5),
        queue("b", deserved={"cpu": "10"}), group("c", queue="b"), *many("c", 1, on=""), cpu="5",
    )  # fmt: skip
    assert voted(session, "reclaimable", "c-0", "v-0") == [False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("ancestorReclaimLevel: -1", '"ancestorReclaimLevel" must be 0 or more, not -1'),
        ("ancestorReclaimLevel: '1'", '"ancestorReclaimLevel" must be a whole number'),
        ("capacity.nonInterruptibleBorrow: 3", '"capacity.nonInterruptibleBorrow" must be true or false'),
    ],
)
def test_wrong_arguments_are_named(arguments: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        cluster(options=f", arguments: {{{arguments}}}")
