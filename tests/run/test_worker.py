"""What a turn orders, and what it does when it must not decide, or when something breaks."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.clusters import Document, group, node, pod, queue
from tests.run.lives import change_of, deletion_of
from volcano_py.scheduler.cluster.feed import Change
from volcano_py.scheduler.cluster.orders import (
    BindFailed,
    BindOrder,
    EvictOrder,
    GroupOrder,
    KeepOrder,
    NominateOrder,
    Order,
    ProblemOrder,
    QueueOrder,
    RefusalOrder,
)
from volcano_py.scheduler.cluster.sayings import MOST_EVENTS
from volcano_py.scheduler.model.kube.errors import Problem
from volcano_py.scheduler.run.carry import Carrier, EvictionStyle
from volcano_py.scheduler.run.metrics import Metrics
from volcano_py.scheduler.run.reload import read_config
from volcano_py.scheduler.run.triggers import NEVER, Triggers
from volcano_py.scheduler.run.worker import Given, Turn, Worker

CONFIG = """\
actions: enqueue, allocate, preempt, backfill
tiers:
- plugins: [{name: gang}, {name: priority}, {name: predicates}, {name: proportion}, {name: deviceshare}]
"""
HIGH: Document = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}


def worker(style: EvictionStyle | None = None) -> Worker:
    carrier = Carrier(style or EvictionStyle(), "me")
    return Worker(read_config(CONFIG), ("volcano-py",), carrier, Triggers(1.0), Metrics())


def turn(made: Worker, now: float, *told: Document | Change, leads: bool = True) -> Turn:
    changes = [each if isinstance(each, Change) else change_of(each) for each in told]
    return made.turn(Given(now, changes, may_cycle=leads, leads=leads))


def of(orders: list[Order], kind: type) -> list[Order]:
    return [each for each in orders if isinstance(each, kind)]


def test_a_gang_that_fits_is_bound_and_its_group_and_queue_are_told_of() -> None:
    made = worker()
    documents = (node("n0"), queue("default"), group("g", 2), pod("g-0", "g"), pod("g-1", "g"))
    orders = turn(made, 1.0, *documents).orders
    binds = of(orders, BindOrder)
    assert [(each.name, each.node, each.group) for each in binds] == [  # type: ignore[union-attr]
        ("g-0", "n0", "ml/g"),
        ("g-1", "n0", "ml/g"),
    ]
    (status,) = of(orders, GroupOrder)
    assert isinstance(status, GroupOrder)
    assert status.status["phase"] == "Running"
    (told,) = of(orders, QueueOrder)
    assert isinstance(told, QueueOrder)
    assert told.status["allocated"]["cpu"] == "2"
    assert turn(made, 2.0).orders == []


def test_card_slices_ride_on_the_bind() -> None:
    made = worker()
    cards = [
        {"id": "c0", "index": 0, "count": 4, "devmem": 8000, "devcore": 100, "type": "A", "health": True}
    ]
    notes = {"hami.io/node-nvidia-register": json.dumps(cards)}
    asks = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}
    shared = node("n0", annotations=notes, amounts={"nvidia.com/gpu": "4"})
    (bind,) = of(turn(made, 12.9, shared, group("g"), pod("p", "g", requests=asks)).orders, BindOrder)
    assert isinstance(bind, BindOrder)
    assert bind.annotations["hami.io/vgpu-node"] == "n0"
    assert bind.annotations["hami.io/vgpu-devices-allocated"] == "c0,NVIDIA,1000,0:;"
    assert bind.annotations["hami.io/bind-time"] == "12"
    assert bind.annotations["scheduling.volcano.sh/queue-name"] == "default"
    told = {"volcano.sh/queue-name": "mine"}  # its Job has said so
    (bind,) = of(
        turn(made, 13.0, group("h"), pod("q", "h", requests=asks, annotations=told)).orders, BindOrder
    )
    assert isinstance(bind, BindOrder)
    assert "scheduling.volcano.sh/queue-name" not in bind.annotations


def test_a_pod_that_waits_is_told_once_and_again_when_the_reason_changes() -> None:
    made = worker()
    documents = (node("n0"), group("g"), pod("p", "g", "9"))
    (told,) = of(turn(made, 1.0, *documents).orders, RefusalOrder)
    assert isinstance(told, RefusalOrder)
    assert "Insufficient cpu" in told.message
    assert of(turn(made, 2.0).orders, RefusalOrder) == []
    taints = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    (again,) = of(turn(made, 3.0, node("n0", taints=taints)).orders, RefusalOrder)
    assert isinstance(again, RefusalOrder)
    assert again.message != told.message


def refused(made: Worker, now: float, *told: Document | Change) -> list[RefusalOrder]:
    return [each for each in turn(made, now, *told).orders if isinstance(each, RefusalOrder)]


def test_other_figures_alone_are_no_news_though_the_pod_does_not_show_them_yet() -> None:
    made = worker()
    (first,) = refused(made, 1.0, node("n0"), group("g"), pod("p", "g", "9"))
    (figures,) = refused(made, 2.0, node("n1"))
    assert (first.minor, first.event) == (False, True)
    assert (figures.minor, figures.event) == (True, False)
    assert figures.message != first.message


def test_what_is_true_again_before_it_was_taken_back_on_the_pod_is_said_again() -> None:
    """The pod still shows the first reason; the second may be on its way."""
    made = worker()
    (first,) = refused(made, 1.0, node("n0"), group("g"), pod("p", "g", "9"))
    said = {"type": "PodScheduled", "status": "False", "reason": first.reason, "message": first.message}
    shows = pod("p", "g", "9", status={"conditions": [said]})
    taints = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    (second,) = refused(made, 2.0, shows, node("n0", taints=taints))
    (again,) = refused(made, 3.0, node("n0"))
    assert second.message != first.message
    assert again.message == first.message


def test_a_pod_made_anew_between_two_cycles_is_told_what_the_one_before_it_was() -> None:
    made = worker()
    waits = pod("p", "g", "9")
    (first,) = refused(made, 1.0, node("n0"), group("g"), waits)
    another = waits | {"metadata": {**waits["metadata"], "uid": "another"}}
    (again,) = refused(made, 2.0, deletion_of(("Pod", "ml/p")), another)
    assert (again.uid, again.message, again.event) == ("another", first.message, True)


def test_what_stands_on_the_pod_already_is_not_said_again() -> None:
    made = worker()
    (told,) = of(turn(made, 1.0, node("n0"), group("g"), pod("p", "g", "9")).orders, RefusalOrder)
    assert isinstance(told, RefusalOrder)
    said = {"type": "PodScheduled", "status": "False", "reason": told.reason, "message": told.message}
    fresh = worker()
    noted = pod("p", "g", "9", status={"conditions": [said]})
    assert of(turn(fresh, 1.0, node("n0"), group("g"), noted).orders, RefusalOrder) == []


def test_of_a_large_gang_all_pods_get_the_condition_and_some_an_event() -> None:
    made = worker()
    size = 3 * MOST_EVENTS
    pods = [pod(f"g-{i}", "g") for i in range(size)]
    refusals = of(turn(made, 1.0, node("n0"), group("g", size), *pods).orders, RefusalOrder)
    assert len(refusals) == size
    told = [each for each in refusals if isinstance(each, RefusalOrder)]
    by_message = Counter(each.message for each in told)
    loud = Counter(each.message for each in told if each.event)
    assert max(by_message.values()) > MOST_EVENTS
    assert loud == Counter({text: min(count, MOST_EVENTS) for text, count in by_message.items()})


def preempting(made: Worker) -> list[Order]:
    """Orders of a cycle in which a gang takes the place of less important work."""
    low = [pod(f"low-{i}", "low", on="n0", priority=1) for i in range(2)]
    first = pod("first-0", "first", priority=9, priorityClassName="high")
    groups = (group("low", phase="Running"), group("first", priorityClassName="high"))
    return turn(made, 1.0, {**HIGH, "value": 9}, node("n0", "2"), *groups, *low, first).orders


def test_an_eviction_says_for_whom_and_why_and_the_claimant_keeps_the_room() -> None:
    made = worker(EvictionStyle(notice_s=30.0, delete=True))
    orders = preempting(made)
    (eviction,) = of(orders, EvictOrder)
    assert isinstance(eviction, EvictOrder)
    assert (eviction.for_whom, eviction.action, eviction.notice_s, eviction.delete) == (
        "ml/first",
        "preempt",
        30.0,
        True,
    )
    assert eviction.reason
    assert eviction.group is not None
    assert (eviction.group.kind, eviction.group.key) == ("PodGroup", f"ml/{eviction.name[:-2]}")
    assert eviction.lost
    (kept,) = of(orders, NominateOrder)
    assert isinstance(kept, NominateOrder)
    assert (kept.name, kept.node) == ("first-0", "n0")
    gone = deletion_of(("Pod", eviction.key))
    (bind,) = of(turn(made, 2.0, gone).orders, BindOrder)
    assert isinstance(bind, BindOrder)
    assert bind.name == "first-0"


def test_an_eviction_names_whom_the_claimant_was_made_for() -> None:
    """The group of a plain pod is called by a UID, which tells nobody anything."""
    made = worker()
    claimant = group("podgroup-1", priorityClassName="high")
    claimant["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "train", "controller": True}]
    first = pod("first-0", "podgroup-1", priority=9, priorityClassName="high")
    low = [group("low", phase="Running"), pod("low-0", "low", on="n0", priority=1)]
    orders = turn(made, 1.0, {**HIGH, "value": 9}, node("n0", "1"), *low, claimant, first).orders
    [eviction] = of(orders, EvictOrder)
    assert isinstance(eviction, EvictOrder)
    assert eviction.for_whom == "ml/podgroup-1"
    rule = "ml/podgroup-1 (Job train, priority 9) goes before ml/low (priority 0) in queue default"
    assert eviction.message.startswith(f"evicted for ml/podgroup-1 (Job train) by preempt: {rule}")
    assert eviction.message.endswith(f"(lost: {eviction.lost})")


def test_room_that_is_given_up_before_the_pod_shows_it_is_taken_back() -> None:
    made = worker()
    assert of(preempting(made), NominateOrder)
    (given_up,) = of(turn(made, 2.0, node("n0", "2", unschedulable=True)).orders, NominateOrder)
    assert (given_up.name, given_up.node) == ("first-0", "")  # type: ignore[union-attr]


def test_a_standby_takes_everything_in_and_orders_nothing() -> None:
    made = worker()
    documents = (node("n0"), group("g"), pod("p", "g"))
    idle = turn(made, 1.0, *documents, leads=False)
    assert (idle.orders, idle.cycle_s) == ([], None)
    led = turn(made, 2.0)
    assert [type(each) for each in of(led.orders, BindOrder)] == [BindOrder]


def test_who_takes_over_goes_on_with_evictions_that_were_announced() -> None:
    made = worker()
    notes = {
        "volcano-py.io/evicted-for": "ml/first",
        "volcano-py.io/evicted-by-rule": "a rule",
        "volcano-py.io/evicted-by-action": "preempt/eviction",
        "volcano-py.io/evicted-lost": "1 cpu-second",
        "volcano-py.io/eviction-deadline": "2026-01-01T00:00:30Z",
    }
    told = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    going = pod("p", "g", on="n0", annotations=notes)
    going["status"] = {**going.get("status", {}), "conditions": [told]}
    documents = (node("n0", "1"), group("g", phase="Running"), going)
    assert turn(made, 1.0, *documents, leads=False).orders == []
    (resumed,) = of(turn(made, 2.0).orders, EvictOrder)
    assert isinstance(resumed, EvictOrder)
    assert (resumed.key, resumed.for_whom, resumed.deadline) == ("ml/p", "ml/first", 1767225630.0)
    state = made.owner.engine.state
    assert int(state.nodes.releasing[state.nodes.index["n0"], 0]) == 1000
    assert of(turn(made, 3.0).orders, EvictOrder) == []


def test_objects_with_faults_are_told_and_told_when_they_are_mended() -> None:
    made = worker()
    unreadable = Change("Pod", "ml/bad", None, (Problem("spec.x", "is no number"),), "1", "u1")
    doubtful = pod("p", "g", annotations={"volcano.sh/task-priority": "much"})
    orders = turn(made, 1.0, node("n0"), group("g"), unreadable, doubtful).orders
    problems = {each.subject.key: each for each in orders if isinstance(each, ProblemOrder)}
    assert problems["ml/bad"].problems == ("spec.x: is no number",)
    assert (problems["ml/bad"].subject.uid, problems["ml/bad"].used) == ("u1", False)
    assert problems["ml/p"].used
    again = turn(made, 2.0, node("n1"))
    assert of(again.orders, ProblemOrder) == []
    (mended,) = of(turn(made, 3.0, pod("bad", "g")).orders, ProblemOrder)
    assert isinstance(mended, ProblemOrder)
    assert (mended.subject.key, mended.problems) == ("ml/bad", ())


def invalid(document: Document, status: str = "False", reason: str = "Unreadable") -> Document:
    """*document* as an earlier leader left it."""
    said = {"type": "volcano-py.io/Valid", "status": status, "reason": reason, "message": "spec: bad"}
    conditions = [*document.get("status", {}).get("conditions", []), said]
    return {**document, "status": {**document.get("status", {}), "conditions": conditions}}


def test_a_new_leader_takes_back_what_an_earlier_one_said_and_holds_no_more() -> None:
    """Objects were mended, and room given up, while nobody led."""
    made = worker()
    healed = (invalid(node("n0")), invalid(group("g")), invalid(pod("p", "g", "9"), "True", "Doubtful"))
    mended = invalid(node("n1"), "True", "Readable")
    promised = pod("q", "g", "9", status={"nominatedNodeName": "n1"})
    assert turn(made, 1.0, *healed, mended, promised, leads=False).orders == []
    orders = turn(made, 2.0).orders
    told = {each.subject.key: each.problems for each in orders if isinstance(each, ProblemOrder)}
    assert told == {"n0": (), "ml/g": (), "ml/p": ()}
    (status,) = [each for each in orders if isinstance(each, GroupOrder)]
    valid = {each["type"]: each["reason"] for each in status.status["conditions"]}
    assert valid["volcano-py.io/Valid"] == "Readable"
    kept = [(each.name, each.node) for each in orders if isinstance(each, NominateOrder)]
    assert kept == [("q", "")]
    assert of(turn(made, 3.0, node("n2", "1")).orders, ProblemOrder) == []


def test_a_group_is_told_again_what_was_lost_with_the_lead() -> None:
    made = worker()
    assert of(turn(made, 1.0, node("n0"), group("g"), pod("p", "g")).orders, GroupOrder)
    assert turn(made, 2.0, leads=False).orders == []
    (again,) = of(turn(made, 3.0).orders, GroupOrder)
    assert again.status["phase"] == "Running"  # type: ignore[union-attr]
    assert of(turn(made, 4.0, node("n1")).orders, GroupOrder) == []


def test_a_new_leader_does_not_repeat_what_is_wrong_still() -> None:
    made = worker()
    bad = pod("p", "g", annotations={"volcano.sh/task-priority": "much"})
    turn(made, 1.0, node("n0"), group("g"), bad, leads=False)
    (told,) = of(turn(made, 2.0).orders, ProblemOrder)
    assert isinstance(told, ProblemOrder)
    said = {"type": "volcano-py.io/Valid", "status": "True", "reason": "Doubtful"}
    shows = bad | {"status": {"phase": "Pending", "conditions": [{**said, "message": told.problems[0]}]}}
    fresh = worker()
    turn(fresh, 1.0, node("n0"), group("g"), shows, leads=False)
    assert of(turn(fresh, 2.0).orders, ProblemOrder) == []


def test_a_group_with_a_fault_says_so_whenever_its_status_is_written() -> None:
    """Its conditions are written as a whole, and the object does not show the fault yet."""
    made = worker()
    doubtful = group("g", annotations={"volcano.sh/cooldown-time": "soon"})
    orders = turn(made, 1.0, node("n0"), doubtful, pod("p", "g")).orders
    assert [each.subject.kind for each in orders if isinstance(each, ProblemOrder)] == ["PodGroup"]
    (status,) = [each for each in orders if isinstance(each, GroupOrder)]
    reasons = {each["type"]: each["reason"] for each in status.status["conditions"]}
    assert reasons["volcano-py.io/Valid"] == "Doubtful"


def test_a_failed_bind_is_decided_anew() -> None:
    made = worker()
    (bind,) = of(turn(made, 1.0, node("n0"), group("g"), pod("p", "g")).orders, BindOrder)
    assert isinstance(bind, BindOrder)
    failed = BindFailed(bind.key, bind.uid, bind.node, bind.group, "the server said no", "refused")
    again = made.turn(Given(2.0, outcomes=[failed], may_cycle=True, leads=True))
    assert [type(each) for each in of(again.orders, BindOrder)] == [BindOrder]


def test_another_configuration_loses_nothing_that_was_decided() -> None:
    made = worker()
    assert of(turn(made, 1.0, node("n0", "1"), group("g"), pod("p", "g")).orders, BindOrder)
    other = read_config("actions: allocate\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n")
    told = [change_of(group("h")), change_of(pod("q", "h"))]
    after = made.turn(Given(2.0, told, config=other, may_cycle=True, leads=True))
    assert after.cycle_s is not None
    assert of(after.orders, BindOrder) == []  # the node is full with what is on its way
    assert made.owner.engine.config == other.config


def test_a_fault_in_a_cycle_is_reported_and_the_next_one_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    made = worker()
    turn(made, 0.0, node("n0"))
    monkeypatch.setattr(made.owner.engine.actions[1], "run", lambda session: 1 / 0)
    broken = turn(made, 1.0, group("g"), pod("p", "g"))
    assert broken.fault
    assert of(broken.orders, BindOrder) == []
    assert broken.due.now
    assert len(of(turn(made, 2.0).orders, BindOrder)) == 1


def test_a_queue_made_anew_is_told_what_it_holds_though_that_is_what_it_was() -> None:
    made = worker()
    turn(made, 1.0, node("n0"), queue("q"), group("g", queue="q"), pod("p", "g"))
    anew = queue("q")
    anew["metadata"] = {**anew["metadata"], "uid": "another"}
    orders = turn(made, 5.0, deletion_of(("Queue", "q")), anew, group("late"), pod("late", "late")).orders
    (told,) = of(orders, QueueOrder)
    assert isinstance(told, QueueOrder)
    assert (told.uid, told.status["allocated"]["cpu"]) == ("another", "1")


@pytest.mark.parametrize("period_s", [1.0, 0.2])
def test_the_last_thing_that_a_queue_held_is_told(period_s: float) -> None:
    carrier = Carrier(EvictionStyle(), "me", period_s)
    made = Worker(read_config(CONFIG), ("volcano-py",), carrier, Triggers(period_s), Metrics())
    told = {"status": {"allocated": {"cpu": "1", "pods": "1"}}}
    waits = (group("large", queue="q"), pod("large", "large", "9"))
    turn(made, 1.0, node("n0"), queue("q"), group("g", queue="q"), pod("p", "g"), *waits)
    turn(made, 1.2, pod("p", "g", on="n0"), queue("q") | told)
    for quiet in (3.0, 5.0, 66.0):
        turn(made, quiet)
    orders = turn(made, 66.1, deletion_of(("Pod", "ml/p")), deletion_of(("PodGroup", "ml/g"))).orders
    for later in (66.35, 67.2, 68.5):
        orders += turn(made, later).orders
    assert [each.status for each in orders if isinstance(each, QueueOrder)] == [{"allocated": {}}]


MARKS = {"volcano-py.io/evicted-for": "ml/high"}
GONE = (("Pod", "ml/high"), ("PodGroup", "ml/high"))


def under_notice(*, marked: bool = True) -> Worker:
    """Pod ``low`` is told that it has to go for ``high``; *marked*: the server has shown it so."""
    made = worker(EvictionStyle(notice_s=60.0))
    low = (group("low"), pod("low", "low", "4", on="n0"))
    high = (group("high", priorityClassName="high"), pod("high", "high", "4", priorityClassName="high"))
    turn(made, 1.0, {**HIGH, "value": 10}, node("n0", cpu="4"), *low, *high)
    if marked:
        turn(made, 2.0, pod("low", "low", "4", on="n0", annotations=MARKS))
    return made


def test_an_eviction_under_notice_is_withdrawn_as_soon_as_its_claimant_is_gone() -> None:
    made = under_notice()
    assert not of(turn(made, 2.1).orders, KeepOrder)
    kept = of(turn(made, 2.2, *(deletion_of(key) for key in GONE)).orders, KeepOrder)
    assert [order.name for order in kept] == ["low"]  # type: ignore[union-attr]


def test_an_eviction_is_withdrawn_too_if_its_marks_are_seen_after_its_claimant_is_gone() -> None:
    made = under_notice(marked=False)
    turn(made, 3.0, *(deletion_of(key) for key in GONE))
    turn(made, 4.0)
    kept = of(turn(made, 4.1, pod("low", "low", "4", on="n0", annotations=MARKS)).orders, KeepOrder)
    assert [order.name for order in kept] == ["low"]  # type: ignore[union-attr]


def test_a_standby_withdraws_nothing() -> None:
    made = under_notice()
    assert turn(made, 2.2, *(deletion_of(key) for key in GONE), leads=False).orders == []


def test_an_eviction_under_notice_is_withdrawn_when_its_claimant_starts_elsewhere() -> None:
    made = under_notice()
    orders = turn(made, 3.0, node("n1", cpu="4")).orders
    assert [order.node for order in of(orders, BindOrder)] == ["n1"]  # type: ignore[union-attr]
    assert [order.name for order in of(orders, KeepOrder)] == ["low"]  # type: ignore[union-attr]


def told_alone(made: Worker, now: float, *documents: Document) -> list[str]:
    orders = of(turn(made, now, *documents).orders, RefusalOrder)
    return [f"{each.key} {each.reason}" for each in orders if isinstance(each, RefusalOrder)]


def test_a_pod_that_nobody_puts_into_a_group_is_told_after_a_while() -> None:
    """As where no controller runs. While one may be about to, nothing is said."""
    made = worker()
    assert told_alone(made, 100.0, node("n0"), pod("p", ""), pod("q", "g"), group("g")) == []
    assert turn(made, 101.0).tell_at == 110.0
    assert told_alone(made, 109.9) == []
    assert told_alone(made, 110.0) == ["ml/p NoPodGroup"]
    assert turn(made, 130.0).tell_at == NEVER
    assert told_alone(made, 140.0, pod("p", "")) == []
    assert told_alone(made, 150.0, pod("p", "", metadata={"uid": "another"})) == []
    assert told_alone(made, 160.0) == ["ml/p NoPodGroup"]


@pytest.mark.parametrize(
    "later",
    [
        pod("p", "g"),
        pod("p", "", on="n0"),
        pod("p", "", schedulingGates=[{"name": "wait"}]),
        pod("p", "", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        pod("p", "", schedulerName="other"),
    ],
    ids=["grouped", "bound", "gated", "leaving", "another's"],
)
def test_a_pod_that_needs_no_group_any_more_is_not_told(later: Document) -> None:
    made = worker()
    assert told_alone(made, 100.0, node("n0"), pod("p", ""), group("g")) == []
    turn(made, 105.0, later)
    assert told_alone(made, 120.0) == []


def test_a_new_leader_tells_pods_without_a_group_only_what_they_do_not_say_yet() -> None:
    made = worker()
    turn(made, 100.0, pod("p", ""), leads=False)
    assert of(turn(made, 120.0, leads=False).orders, RefusalOrder) == []
    assert told_alone(made, 121.0) == []
    [order] = of(turn(made, 131.0).orders, RefusalOrder)
    assert isinstance(order, RefusalOrder)
    said = {"type": "PodScheduled", "status": "False", "reason": order.reason, "message": order.message}
    again = worker()
    turn(again, 200.0, pod("p", "", status={"conditions": [said]}))
    assert told_alone(again, 220.0) == []
