"""Room that is kept for who waits: nobody else gets it, and nobody keeps it for ever."""

from __future__ import annotations

from typing import Any

from tests.clusters import Document, engine, group, node, pod, queue
from volcano_py.scheduler.engine import CycleResult, Engine

NOW = 1767225600.0
ALLOCATE = """\
actions: allocate
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}]
"""
RECLAIM = """\
actions: allocate, reclaim
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}]
"""
LEAVING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def decided(result: CycleResult) -> list[tuple[str, str, str]]:
    return [(each.kind, each.pod.removeprefix("ml/"), each.node) for each in result.decisions]


def waiting() -> Engine:
    """A node of 4 CPU whose only pod is on its way out, and a gang of two that needs all of it."""
    return engine(
        node("n"),
        group("old", phase="Running"),
        pod("old-0", "old", "4", on="n", metadata=LEAVING),
        group("g", 2),
        *(pod(f"g-{number}", "g", "2") for number in range(2)),
        config=ALLOCATE,
    )


def test_a_gang_keeps_the_room_it_waits_for() -> None:
    known = waiting()
    first = known.cycle(NOW)
    assert decided(first) == [("pipeline", "g-0", "n"), ("pipeline", "g-1", "n")]
    known.apply(group("late", 1, created="2025-01-01T00:00:00Z", priorityClassName="high"))
    known.apply(pod("late-0", "late", "1"))
    known.delete("Pod", "ml/old-0")
    known.apply(group("late", 1))
    assert decided(known.cycle(NOW + 1)) == [("bind", "g-0", "n"), ("bind", "g-1", "n")]


def test_between_cycles_who_is_promised_room_is_pending() -> None:
    known = waiting()
    known.cycle(NOW)
    assert known.state.nodes.pipelined.sum() == 0
    assert len(known.state.tasks.nominated) == 2


def test_a_reservation_ends_when_nothing_is_on_its_way_out() -> None:
    """Somebody else, bound by another scheduler, took the room: nothing is left to wait for."""
    known = waiting()
    known.cycle(NOW)
    known.delete("Pod", "ml/old-0")
    known.apply(pod("other", "x", "3", on="n", schedulerName="other"))
    result = known.cycle(NOW + 1)
    assert decided(result) == []
    assert not known.state.tasks.nominated
    assert set(result.refusals) == {"ml/g-0", "ml/g-1"}


def test_a_reservation_goes_with_its_node() -> None:
    known = waiting()
    known.cycle(NOW)
    known.delete("Node", "n")
    known.apply(node("m"))
    assert decided(known.cycle(NOW + 1)) == [("bind", "g-0", "m"), ("bind", "g-1", "m")]
    assert not known.state.tasks.nominated


def test_a_reservation_goes_with_its_pod() -> None:
    known = waiting()
    known.cycle(NOW)
    for number in range(2):
        known.delete("Pod", f"ml/g-{number}")
    assert not known.state.tasks.nominated
    assert decided(known.cycle(NOW + 1)) == []


def alone(app: str) -> dict[str, Any]:
    """Labels and an affinity: no two pods of *app* on one node."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {"labels": {"app": app}, "affinity": affinity}


def claimed(**more: Any) -> list[Document]:
    """Queue b holds a node that a's pod can only have alone, and has another pod waiting for one."""
    return [
        node("n", cpu="8", labels={"zone": "z2"}),
        queue("a", deserved={"cpu": "4"}),
        queue("b", deserved={"cpu": "1"}),
        group("b1", 1, "b", "Running"),
        pod("b1-0", "b1", "2", on="n", **more),
        pod("b1-1", "b1", "2", **more),
        group("a1", 1, "a"),
        pod("a1-0", "a1", "2", **more),
    ]


def test_a_victims_sibling_does_not_slip_in_before_the_claimant() -> None:
    """There are CPUs for both; what they cannot share is the node itself."""
    known = engine(*claimed(**alone("x")), config=RECLAIM)
    assert decided(known.cycle(NOW)) == [("pipeline", "a1-0", "n"), ("evict", "b1-0", "n")]
    known.settle(NOW)
    assert decided(known.cycle(NOW + 1)) == [("bind", "a1-0", "n")]


def test_a_promise_outlives_the_entitlement_it_was_made_in() -> None:
    """Firm work took back its half; then a third queue comes into use, but somebody has gone already."""
    firm = {"volcano.sh/preemptable": "false"}
    known = engine(
        node("n", cpu="8"),
        *(queue(name) for name in "abc"),
        *(group(f"b{i}", 1, "b", "Running") for i in range(8)),
        *(pod(f"b{i}-0", f"b{i}", on="n") for i in range(8)),
        group("a1", 2, "a"),
        *(pod(f"a1-{i}", "a1", "2", annotations=firm) for i in range(2)),
        config=RECLAIM.replace("capacity", "proportion"),
    )
    assert [kind for kind, *_ in decided(known.cycle(NOW))].count("evict") == 4
    known.apply(group("c1", 1, "c"))
    known.apply(pod("c1-0", "c1"))
    kept = decided(known.cycle(NOW + 1))
    assert {("pipeline", "a1-0", "n"), ("pipeline", "a1-1", "n")} <= set(kept)
    known.settle(NOW + 1)
    bound = decided(known.cycle(NOW + 2))
    assert {("bind", "a1-0", "n"), ("bind", "a1-1", "n")} <= set(bound)


def test_a_host_port_is_kept_for_the_claimant() -> None:
    main = {"name": "main", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "2"}}}
    known = engine(*claimed(containers=[main]), config=RECLAIM)
    assert decided(known.cycle(NOW)) == [("pipeline", "a1-0", "n"), ("evict", "b1-0", "n")]
    known.settle(NOW)
    assert decided(known.cycle(NOW + 1)) == [("bind", "a1-0", "n")]


def test_the_claimant_starts_before_others_change_what_it_was_promised_for() -> None:
    """The sibling, bound first to the same zone, would make the claimant's pods spread too unevenly."""
    rule = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    rule["labelSelector"] = {"matchLabels": {"app": "x"}}
    *others, sibling, _, claimant = claimed(labels={"app": "x"})
    claimant["spec"]["topologySpreadConstraints"] = [rule]
    small = node("m", cpu="1", labels={"zone": "z1"})
    blocker = pod("s-0", "s", "5", on="n", schedulerName="other")
    known = engine(small, *others, group("a1", 1, "a"), claimant, blocker, config=RECLAIM)
    assert decided(known.cycle(NOW)) == [("pipeline", "a1-0", "n"), ("evict", "b1-0", "n")]
    known.settle(NOW)
    known.delete("Pod", "ml/s-0")
    known.apply(sibling)
    assert ("bind", "a1-0", "n") in decided(known.cycle(NOW + 1))


def test_who_was_promised_room_takes_no_more_than_that_before_others() -> None:
    """Its surplus members wait for their turn, behind the older job."""
    known = waiting()
    known.apply(pod("g-2", "g", "2"))
    known.cycle(NOW)
    known.apply(group("older", created="2025-01-01T00:00:00Z"))
    known.apply(pod("older-0", "older", "2"))
    known.apply(node("m", cpu="2"))
    known.delete("Pod", "ml/old-0")
    found = decided(known.cycle(NOW + 1))
    assert found[:2] == [("bind", "g-0", "n"), ("bind", "g-1", "n")]
    assert ("bind", "older-0", "m") in found


def test_a_promise_may_count_on_one_made_before() -> None:
    """The follower, of a queue and with a name that go first, was promised a place beside the leader."""
    near = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "leader"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [near]}
    known = engine(
        node("n"),
        group("old", phase="Running"),
        pod("old-0", "old", "4", on="n", metadata=LEAVING),
        queue("a"),
        queue("b"),
        group("z-leads", 1, "b"),
        pod("z-leads-0", "z-leads", "2", labels={"app": "leader"}),
        config=ALLOCATE,
    )
    assert decided(known.cycle(NOW)) == [("pipeline", "z-leads-0", "n")]
    known.apply(group("a-follows", 1, "a"))
    known.apply(pod("a-follows-0", "a-follows", "2", affinity={"podAffinity": required}))
    assert decided(known.cycle(NOW + 1))[-1] == ("pipeline", "a-follows-0", "n")
    known.delete("Pod", "ml/old-0")
    assert sorted(decided(known.cycle(NOW + 2))) == [("bind", "a-follows-0", "n"), ("bind", "z-leads-0", "n")]


def test_while_the_promised_waits_nobody_sits_down_whom_it_would_not_bear() -> None:
    """There is idle room for the newcomer, but beside it the promised pod could not start."""
    rule = alone("x")
    known = engine(
        node("n"),
        group("old", phase="Running"),
        pod("old-0", "old", "3", on="n", metadata=LEAVING),
        group("g"),
        pod("g-0", "g", "2", **rule),
        config=ALLOCATE,
    )
    assert decided(known.cycle(NOW)) == [("pipeline", "g-0", "n")]
    known.apply(group("late"))
    known.apply(pod("late-0", "late", "1", **rule))
    assert decided(known.cycle(NOW + 1)) == [("pipeline", "g-0", "n")]
    known.delete("Pod", "ml/old-0")
    assert decided(known.cycle(NOW + 2)) == [("bind", "g-0", "n")]
