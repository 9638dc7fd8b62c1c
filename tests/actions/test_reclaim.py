"""reclaim: what queues take back, from whom first, and where it stops."""

from __future__ import annotations

from collections import Counter

from tests.actions.claims import HIGH, LOW, NOW, cluster, evicted, promised, reason
from tests.clusters import Document, group, node, pod, queue


def borrower(name: str, of: str, pods: int, on: str, **more: object) -> list[Document]:
    """One-pod jobs of 1 cpu in queue *of* on node *on*."""
    made: list[Document] = []
    for i in range(pods):
        made += [group(f"{name}{i}", 1, of, "Running", **more), pod(f"{name}{i}-0", f"{name}{i}", on=on)]
    return made


def claim(of: str, pods: int = 1, cpu: str = "1") -> list[Document]:
    return [group("c", pods, of), *(pod(f"c-{i}", "c", cpu) for i in range(pods))]


def test_furthest_over_gives_first_and_in_turn() -> None:
    """Queue a holds 8 of its 4, b 6 of its 4: a gives until level and by name, then b."""
    result = cluster(
        node("n1", cpu="14"),
        *(queue(name, deserved={"cpu": "4"}) for name in ("a", "b")),
        queue("owner", deserved={"cpu": "6"}),
        *borrower("a", "a", 8, "n1"),
        *borrower("b", "b", 6, "n1"),
        *claim("owner", 4),
        shares="capacity",
    ).cycle(NOW)
    assert Counter(name[0] for name in evicted(result)) == {"a": 3, "b": 1}


def test_the_claimant_stays_within_its_entitlement() -> None:
    result = cluster(
        node("n1", cpu="8"),
        queue("a", deserved={"cpu": "5"}),
        queue("owner", deserved={"cpu": "3"}),
        *borrower("a", "a", 8, "n1"),
        *claim("owner", 4),
        shares="capacity",
    ).cycle(NOW)
    assert evicted(result) == []
    assert "entitlement" in reason(result, "c-0")


def test_what_is_idle_may_be_borrowed_beside_what_is_taken() -> None:
    """Entitled to the card but to no cpu: the card is taken back, idle cpu is used."""
    cards = {"example.com/card": "1"}
    result = cluster(
        node("n1", cpu="4", amounts=cards),
        queue("a", deserved={"cpu": "4"}),
        queue("owner", deserved={"cpu": "0", "example.com/card": "1"}),
        group("v", 1, "a", "Running"),
        pod("v-0", "v", None, on="n1", requests=cards),
        group("c", 1, "owner"),
        pod("c-0", "c", "1", requests=cards),
        shares="capacity",
    ).cycle(NOW)
    assert evicted(result) == ["v-0"]


def test_idle_room_is_borrowed_only_once() -> None:
    """One cpu is idle; the cpu that comes free with the second card may not be taken."""
    cards = {"example.com/card": "1"}
    result = cluster(
        node("n1", cpu="5", amounts={"example.com/card": "2"}),
        queue("a", deserved={"cpu": "5"}),
        queue("owner", deserved={"cpu": "0", "example.com/card": "2"}),
        group("v", 1, "a", "Running"),
        pod("v-0", "v", "2", on="n1", requests=cards),
        group("w", 1, "a", "Running"),
        pod("w-0", "w", "2", on="n1", requests=cards),
        group("c", 2, "owner"),
        *(pod(f"c-{i}", "c", "1", requests=cards) for i in range(2)),
        shares="capacity",
    ).cycle(NOW)
    assert evicted(result) == []


CARD = {"example.com/card": "1"}


def of_gang(spares: str) -> list[Document]:
    """Claimant c asks two cards and two cpu, and may take no cpu.

    Gang g would free the card of n3, where cpu is idle, and with it a card and the only cpu of n2. x holds
    the card of n1, where *spares* cpu are idle.
    """
    return [
        node("n1", cpu=spares, amounts=CARD),
        node("n2", cpu="1", amounts=CARD),
        node("n3", cpu="1", amounts=CARD),
        queue("a", deserved={"cpu": "10"}),
        queue("owner", deserved={"cpu": "0", "example.com/card": "2"}),
        group("x", 1, "a", "Running", priorityClassName=LOW),
        pod("x-0", "x", None, on="n1", requests=CARD),
        group("g", 2, "a", "Running", priorityClassName=HIGH),
        pod("g-0", "g", "1", on="n2", requests=CARD),
        pod("g-1", "g", None, on="n3", requests=CARD),
        group("c", 2, "owner"),
        *(pod(f"c-{i}", "c", "1", requests=CARD) for i in range(2)),
    ]


def test_who_is_given_back_leaves_nobody_on_cpu_that_another_victim_had() -> None:
    """Job x could stay if c used the cpu of g, which is not c's to take."""
    result = cluster(*of_gang("1"), shares="capacity").cycle(NOW)
    assert evicted(result) == ["g-0", "g-1", "x-0"]
    assert promised(result) == {"c-0": "n1", "c-1": "n3"}


def test_cpu_that_a_gang_leaves_on_another_node_is_not_idle() -> None:
    """Without idle cpu on n1, c has a place only on n2, on the cpu that g had."""
    result = cluster(*of_gang("0"), shares="capacity").cycle(NOW)
    assert evicted(result) == []


def test_a_queue_is_never_taken_below_its_min() -> None:
    """One pod of 4 holds all that a has; with it a would fall below its min of 2."""
    documents = [
        node("n1", cpu="4"),
        queue("owner", deserved={"cpu": "2"}),
        group("v", 1, "a", "Running"),
        pod("v-0", "v", "4", on="n1"),
        *claim("owner"),
    ]
    held = cluster(queue("a", min={"cpu": "2"}, deserved={"cpu": "2"}), *documents, shares="capacity")
    assert evicted(held.cycle(NOW)) == []
    free = cluster(queue("a", deserved={"cpu": "2"}), *documents, shares="capacity")
    assert evicted(free.cycle(NOW)) == ["v-0"]


def test_a_set_that_keeps_queues_at_their_share_is_preferred() -> None:
    """Of two queues over by one, the one whose pod is small gives, though the other is further over."""
    result = cluster(
        node("n1", cpu="7"),
        queue("a", deserved={"cpu": "2"}),
        queue("b", deserved={"cpu": "3"}),
        queue("owner", deserved={"cpu": "2"}),
        group("large", 1, "a", "Running"),
        pod("large-0", "large", "3", on="n1"),
        *borrower("b", "b", 4, "n1"),
        *claim("owner"),
        shares="capacity",
    ).cycle(NOW)
    assert [name[0] for name in evicted(result)] == ["b"]
    assert len(evicted(result)) == 1


def test_the_lowest_priority_of_the_queue_goes() -> None:
    result = cluster(
        node("n1", cpu="4"),
        queue("a", deserved={"cpu": "2"}),
        queue("owner", deserved={"cpu": "2"}),
        *borrower("h", "a", 2, "n1", priorityClassName=HIGH),
        *borrower("l", "a", 2, "n1", priorityClassName=LOW),
        *claim("owner"),
        shares="capacity",
    ).cycle(NOW)
    assert [name[0] for name in evicted(result)] == ["l"]


def test_every_eviction_says_for_whom_by_which_rule_and_what_is_lost() -> None:
    result = cluster(
        node("n1", cpu="4"),
        queue("a", deserved={"cpu": "2"}),
        queue("owner", deserved={"cpu": "2"}),
        *borrower("v", "a", 4, "n1"),
        *claim("owner"),
        shares="capacity",
    ).cycle(NOW)
    (decision,) = (d for d in result.decisions if d.kind == "evict")
    assert decision.for_whom == "ml/c"
    assert decision.reason == (
        "reclaim: queue a holds 4 cpu, 2 over its entitlement of 2; queue owner claims its own"
    )
    assert decision.lost == "12 cpu-hours"


def test_a_queue_that_does_not_lend_gives_nothing() -> None:
    result = cluster(
        node("n1", cpu="4"),
        queue("a", deserved={"cpu": "2"}, reclaimable=False),
        queue("owner", deserved={"cpu": "2"}),
        *borrower("v", "a", 4, "n1"),
        *claim("owner"),
        shares="capacity",
    ).cycle(NOW)
    assert evicted(result) == []
    assert "no victim" in reason(result, "c-0")


def test_inside_a_full_parent_the_sibling_gives() -> None:
    """The other branch is over too, but only the sibling makes room under the parent's max."""
    result = cluster(
        node("n1", cpu="12"),
        queue("root"),
        queue("p", parent="root", capability={"cpu": "6"}, deserved={"cpu": "6"}),
        queue("left", parent="p", deserved={"cpu": "3"}),
        queue("right", parent="p", deserved={"cpu": "3"}),
        queue("far", parent="root", deserved={"cpu": "2"}),
        *borrower("l", "left", 6, "n1"),
        *borrower("f", "far", 6, "n1"),
        *claim("right", 2),
        shares="capacity, enableHierarchy: true",
    ).cycle(NOW)
    assert [name[0] for name in evicted(result)] == ["l", "l"]
    assert len(promised(result)) == 2


def test_a_gang_of_two_kinds_is_served_in_one_go() -> None:
    result = cluster(
        node("n1", cpu="4"),
        node("n2", cpu="4"),
        queue("a", deserved={"cpu": "3"}),
        queue("owner", deserved={"cpu": "5"}),
        *borrower("v", "a", 4, "n1"),
        *borrower("w", "a", 4, "n2"),
        group("c", 2, "owner"),
        pod("c-0", "c", "4"),
        pod("c-1", "c", "1"),
        shares="capacity",
    ).cycle(NOW)
    assert len(evicted(result)) == 5
    assert len(promised(result)) == 2


def test_no_claimant_evicts_twice_for_the_same_pod() -> None:
    """A controller makes victims anew at once; the claimant still starts, and nothing swings."""
    made = cluster(
        node("n1", cpu="8"),
        queue("q1", deserved={"cpu": "3"}),
        queue("q2", deserved={"cpu": "5"}),
        group("p1", 1, "q1", "Running"),
        pod("p1-0", "p1", "4", on="n1"),
        group("p2", 1, "q2", "Running"),
        pod("p2-0", "p2", "1", on="n1"),
        group("p3", 1, "q2"),
        pod("p3-0", "p3", "4"),
        shares="capacity",
    )
    total: list[str] = []
    for second in range(6):
        result = made.cycle(NOW + second)
        total += evicted(result)
        made.settle(NOW + second)
        if evicted(result):
            made.apply(pod("p1-0", "p1", "4", metadata={"uid": f"run-{second}"}))
    assert total in (["p1-0"], [])
