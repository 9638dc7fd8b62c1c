"""proportion: limits, order and who takes from whom, by weight."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clusters import Document, group, node, pod, queue
from tests.plugins.sharing import claim, job, opened, room, rows, voted
from tests.plugins.sharing import queue as named
from volcano_py.scheduler.framework.decision import EvictionCause
from volcano_py.scheduler.framework.refusal import ENDLESS, Refusal
from volcano_py.scheduler.framework.session import Session

LEAVING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
FIRM = {"volcano.sh/preemptable": "false"}


def cluster(*documents: Document, cpu: str = "20", arguments: str = "") -> Session:
    return opened(f"[{{name: proportion{arguments}}}]", node("n", cpu, "64Gi"), *documents)


def many(
    of: str, count: int, *, on: str = "n", cpu: str = "1", firm: bool = False, first: int = 0
) -> list[Document]:
    annotations = FIRM if firm else {}
    return [
        pod(f"{of}-{i}", of, cpu, on=on, annotations=dict(annotations)) for i in range(first, first + count)
    ]


def owed(session: Session, name: str) -> tuple[int, int]:
    """(deserved, entitlement) of a queue in milli-CPU."""
    assert session.shares is not None
    row = named(session, name).row
    return int(session.shares.deserved[row, 0]), int(session.shares.entitlement[row, 0])


def test_deserved_follows_what_is_asked_and_entitlement_does_not() -> None:
    session = cluster(
        queue("a"), queue("b"), queue("idle", 8),
        group("x", queue="a"), *many("x", 30, on=""),
        group("y", queue="b"), *many("y", 4, on=""),
    )  # fmt: skip
    assert owed(session, "a") == (16_000, 10_000)
    assert owed(session, "b") == (4_000, 10_000)


@pytest.mark.parametrize("state", ["Closed", "Closing"])
def test_a_closed_queue_is_owed_what_it_holds_however_much_waits_in_it(state: str) -> None:
    shut: Document = {"status": {"state": state}}
    session = cluster(
        queue("a"), queue("up"), queue("b", parent="up") | shut, queue("c", parent="up") | shut,
        group("x", queue="a"), *many("x", 30, on=""),
        group("y", queue="b"), *many("y", 9, on=""),
        group("z", queue="c"), *many("z", 2), *many("z", 9, on="", first=2),
    )  # fmt: skip
    assert owed(session, "a") == (18_000, 18_000)
    assert owed(session, "b") == (0, 0)
    assert owed(session, "c") == owed(session, "up") == (2_000, 2_000)


def test_room_counts_pods_under_max_and_says_what_is_over() -> None:
    session = cluster(
        queue("a", max={"cpu": "18"}), group("x", queue="a"), *many("x", 8), pod("x-9", "x", "6"),
        pod("x-10", "x", "6"), pod("x-11", "x", "6"),
    )  # fmt: skip
    answer = room(session, "a", "x-9")
    assert answer.count == 1
    assert answer.refusal == Refusal(
        "QueueLimit", "queue a: 6 cpu asked with 14 in use, 2 over its max of 18", missing={"cpu": 2000}
    )


def test_only_asked_resources_are_looked_at() -> None:
    session = cluster(
        queue("a", max={"memory": "1Gi"}), group("x", queue="a"),
        pod("x-0", "x", on="n", requests={"memory": "3Gi"}), pod("x-1", "x"),
    )  # fmt: skip
    assert room(session, "a", "x-1").refusal is None


def test_terminating_pods_count_for_a_bind_and_not_for_a_reservation() -> None:
    session = cluster(
        queue("a", max={"cpu": "4"}), group("x", queue="a"), pod("x-0", "x", "3", on="n", metadata=LEAVING),
        pod("x-1", "x", "2"),
    )  # fmt: skip
    assert room(session, "a", "x-1").count == 0
    assert room(session, "a", "x-1", future=True).count == 2


def test_promised_room_counts_for_both() -> None:
    session = cluster(queue("a", max={"cpu": "4"}), group("x", queue="a"), *many("x", 4, on="", cpu="2"))
    session.statement("test").pipeline(rows(session, "x-0"), session.state.nodes.order[[0]])
    assert room(session, "a", "x-1").count == 1
    assert room(session, "a", "x-1", future=True).count == 1


def lenders(lend: bool, *, firm: bool = False, arguments: str = "") -> Session:
    return cluster(
        queue("held", min={"cpu": "12"}, lendMin=lend), queue("a"), group("x", queue="a"),
        *many("x", 30, on="", firm=firm), arguments=arguments,
    )  # fmt: skip


def test_an_idle_min_is_held() -> None:
    answer = room(lenders(False), "a", "x-0")
    assert answer.count == 8
    assert answer.refusal is not None
    assert "what guarantees of other queues and the cluster leave it, 8" in answer.refusal.message


def test_an_idle_min_may_be_lent_to_who_can_be_interrupted_only() -> None:
    assert room(lenders(True), "a", "x-0").count == ENDLESS
    assert room(lenders(True, firm=True), "a", "x-0", firm=True).count == 8
    borrow = ", arguments: {proportion.nonInterruptibleBorrow: true}"
    assert room(lenders(True, firm=True, arguments=borrow), "a", "x-0", firm=True).count == 8


def borrowers(arguments: str = "") -> Session:
    return cluster(
        queue("a"), queue("b"), group("x", queue="a"), *many("x", 7), *many("x", 4, firm=True, first=7),
        *many("x", 9, on="", first=20), group("y", queue="b"), *many("y", 1, on=""), arguments=arguments,
    )  # fmt: skip


def test_only_interruptible_pods_borrow() -> None:
    session = borrowers()
    assert room(session, "a", "x-20").count == ENDLESS
    answer = room(session, "a", "x-20", firm=True)
    assert answer.count == 6, "entitled to 10, 4 of them taken by pods that may not be interrupted"
    assert answer.refusal is not None
    assert answer.refusal.reason == "QueueEntitlement"


def test_volcanos_rule_that_all_borrow_can_be_restored() -> None:
    session = borrowers(", arguments: {proportion.nonInterruptibleBorrow: true}")
    assert room(session, "a", "x-20", firm=True).refusal is None


def order(session: Session, *names: str) -> list[str]:
    return [q.name for q in sorted((named(session, name) for name in names), key=session.queue_order_key)]


def test_the_smaller_share_goes_first_and_shares_move_while_placing() -> None:
    session = cluster(
        queue("a"), queue("b", 3), group("x", queue="a"), *many("x", 2), *many("x", 9, on="", first=5),
        group("y", queue="b"), *many("y", 3), *many("y", 30, on="", first=5),
    )  # fmt: skip
    assert order(session, "a", "b") == ["b", "a"]
    session.statement("test").allocate(
        rows(session, *(f"y-{i}" for i in range(5, 15))), session.state.nodes.order[[0] * 10]
    )
    assert order(session, "a", "b") == ["a", "b"]


def test_priority_goes_before_share_and_an_unmet_min_before_both() -> None:
    session = cluster(
        queue("important", priority=9), group("x", queue="important"), *many("x", 8),
        *many("x", 2, on="", first=9),
        queue("plain"), group("y", queue="plain"), *many("y", 2, on=""),
        queue("owed", min={"cpu": "4"}), group("z", queue="owed"), *many("z", 3),
        *many("z", 2, on="", first=5),
        queue("met", min={"cpu": "1"}), group("w", queue="met"), *many("w", 1), *many("w", 2, on="", first=5),
    )  # fmt: skip
    assert order(session, "plain", "important", "owed", "met")[:3] == ["owed", "important", "plain"]


def takers(*, lender: dict[str, Any] | None = None, asked: int = 5) -> Session:
    return cluster(
        queue("a", **(lender or {})), group("v", queue="a"), *many("v", 15),
        queue("b"), group("c", asked, queue="b"), *many("c", asked, on=""), *many("c", 5, first=50),
    )  # fmt: skip


def test_a_queue_gives_what_it_holds_above_its_entitlement() -> None:
    session = takers()
    assert voted(session, "reclaimable", "c-0", "v-0", "c-50") == [True, False]
    assert voted(session, "protects", "c-0", "v-0", "c-50") == [False, True]


def test_it_stops_at_its_entitlement_as_victims_go() -> None:
    session = takers()
    statement = session.statement("reclaim")
    given = 0
    for name in (f"v-{i}" for i in range(15)):
        if voted(session, "reclaimable", "c-0", name) == [True]:
            statement.evict(int(rows(session, name)[0]), EvictionCause("ml/c", "test"))
            given += 1
    assert given == 5


def test_nobody_takes_from_a_queue_that_does_not_lend() -> None:
    assert voted(takers(lender={"reclaimable": False}), "reclaimable", "c-0", "v-0") == [False]


def test_a_min_is_never_broken() -> None:
    session = cluster(
        queue("a", min={"memory": "8Gi"}), group("v", queue="a"),
        pod("v-0", "v", "6", on="n", requests={"memory": "4Gi"}),
        pod("v-1", "v", "9", on="n", requests={"memory": "2Gi"}),
        pod("v-2", "v", "1", on="n", requests={"memory": "3Gi"}),
        queue("b"), group("c", queue="b"), pod("c-0", "c", "4"),
    )  # fmt: skip
    # 9Gi are held, 8Gi guaranteed: no pod with more than 1Gi may go, though the queue is over in cpu.
    assert voted(session, "reclaimable", "c-0", "v-0", "v-1", "v-2") == [False, False, False]


def test_a_claim_stays_within_its_own_entitlement() -> None:
    session = takers()
    need = session.state.vocabulary.vector({"cpu": 5000})
    (entry,) = session.points.preemptive
    assert entry.call(named(session, "b"), need, False) is None
    refusal = entry.call(named(session, "b"), need * 2, False)
    assert refusal is not None
    assert refusal.message == "queue b: 10 cpu asked with 5 in use, 5 over its entitlement of 10"


def test_inside_a_queue_shares_protect_nobody() -> None:
    session = takers()
    (entry,) = session.points.protects
    mask, _ = entry.call(claim(session, "c-0", "preempt"), rows(session, "v-0", "c-50"))
    assert mask.tolist() == [False, False]


@pytest.mark.parametrize("cordoned", [True, False])
def test_pods_on_nodes_that_are_not_shared_out_count_on_neither_side(cordoned: bool) -> None:
    session = cluster(
        node("aside", "10", unschedulable=cordoned),
        queue("a"), group("v", queue="a"), *many("v", 10), *many("v", 8, on="aside", first=20),
        queue("b"), group("c", 5, queue="b"), *many("c", 9, on=""),
    )  # fmt: skip
    assert voted(session, "reclaimable", "c-0", "v-0") == [not cordoned]


def test_cards_on_nodes_set_apart_are_shared_out_all_the_same() -> None:
    taint = [{"key": "gpu", "effect": "NoSchedule"}]
    session = cluster(
        node("g", "8", amounts={"nvidia.com/gpu": "8"}, taints=taint),
        queue("a"), group("x", queue="a"), pod("x-0", "x", "1", requests={"nvidia.com/gpu": "1"}),
        queue("b", min={"nvidia.com/gpu": "6"}),
    )  # fmt: skip
    assert session.shares is not None
    gpu = session.state.vocabulary.column("nvidia.com/gpu")
    assert session.state.total()[[0, gpu]].tolist() == [20_000, 8_000]
    assert session.shares.limit[named(session, "a").row, gpu] == 2_000


def gate(session: Session, name: str) -> str:
    (entry,) = session.points.job_enqueueable
    answer = entry.call(job(session, name))
    return answer.message if isinstance(answer, Refusal) else ""


def test_the_gate_asks_the_same_limit_with_what_is_admitted_already() -> None:
    session = cluster(
        queue("a", max={"cpu": "10"}), group("run", 2, queue="a", phase="Running", minResources={"cpu": "3"}),
        *many("run", 2), *many("run", 1, on="", first=5),
        group("in", queue="a", minResources={"cpu": "4"}),
        group("new", queue="a", phase="Pending", minResources={"cpu": "4"}),
        group("small", queue="a", phase="Pending", minResources={"cpu": "3"}),
    )  # fmt: skip
    # In use 2, still to come 1 of "run" and 4 of "in".
    assert gate(session, "new") == "queue a: 4 cpu asked with 7 in use, 1 over its max of 10"
    assert gate(session, "small") == ""
    session.admit(job(session, "small"))
    assert gate(session, "new") == "queue a: 4 cpu asked with 10 in use, 4 over its max of 10"


@pytest.mark.parametrize(("said", "refused"), [({}, False), (FIRM, True)])
def test_elastic_members_do_not_block_the_gate_unless_they_stay(said: dict[str, str], refused: bool) -> None:
    session = cluster(
        queue("a", max={"cpu": "10"}),
        group("run", 5, queue="a", phase="Running", minResources={"cpu": "5"}, annotations=said),
        *many("run", 10),
        group("new", 5, queue="a", phase="Pending", minResources={"cpu": "5"}),
    )
    assert bool(gate(session, "new")) is refused


def test_work_that_may_not_be_interrupted_is_held_to_the_entitlement_at_the_gate() -> None:
    session = cluster(
        queue("a"), queue("b"), group("x", queue="b"), *many("x", 1, on=""),
        group("firm", queue="a", phase="Pending", minResources={"cpu": "11"}, annotations=FIRM),
        group("soft", queue="a", phase="Pending", minResources={"cpu": "11"}),
    )  # fmt: skip
    assert "over its entitlement" in gate(session, "firm")
    assert gate(session, "soft") == ""


def test_nobody_passes_the_gate_who_asks_more_than_there_is() -> None:
    session = cluster(group("x", phase="Pending", minResources={"cpu": "21"}))
    assert gate(session, "x").startswith("queue default: 21 cpu asked with 0 in use, 1 over")


def test_groups_that_ask_nothing_pass() -> None:
    assert gate(cluster(group("x", phase="Pending")), "x") == ""
