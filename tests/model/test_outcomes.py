"""Decisions hold through echo events until the server confirms them or their order failed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clusters import Document, engine, group, node, pod
from volcano_py.scheduler.cluster.orders import (
    BindDone,
    BindFailed,
    ClaimOrder,
    EvictDone,
    EvictFailed,
    KeepOrder,
    Trouble,
)
from volcano_py.scheduler.engine import Engine
from volcano_py.scheduler.model.holds import LONGEST_WAIT_S, SPARED_S
from volcano_py.scheduler.model.tasks import Status
from volcano_py.scheduler.outcomes import evict_resumed, settle, withdrawals
from volcano_py.scheduler.run.claims import pin_claims

BOTH = "actions: enqueue, allocate, preempt\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n"
PATIENT = "actions: allocate\ntiers: []\n"


def status_of(made: Engine, key: str) -> Status:
    return Status(made.state.tasks.status[made.state.tasks.index[key]])


def uid_of(made: Engine, key: str) -> str:
    return made.state.tasks.uids[made.state.tasks.index[key]]


def used_cpu(made: Engine, name: str) -> int:
    state = made.state
    return int(state.nodes.used[state.nodes.index[name], state.vocabulary.column("cpu")])


def bind_failed(made: Engine, key: str, trouble: Trouble = "refused", why: str = "webhook says no") -> None:
    settle(made.state, BindFailed(key, uid_of(made, key), "n0", "ml/g", why, trouble))


def evict_failed(made: Engine, key: str, trouble: Trouble = "refused") -> None:
    settle(made.state, EvictFailed(key, uid_of(made, key), "ml/high", "disruption budget", trouble))


def noted(document: Document, **notes: str) -> Document:
    meta = document["metadata"]
    return {**document, "metadata": {**meta, "annotations": {**meta["annotations"], **notes}}}


def labelled(document: Document) -> Document:
    return {**document, "metadata": {**document["metadata"], "labels": {"a": "b"}}}


def evicting() -> tuple[Engine, Document]:
    """An engine that has just evicted pod ``low`` for ``high``, and the victim."""
    low = pod("low", "low", "4", on="n0")
    high = pod("high", "high", "4", priority=10)
    made = engine(node("n0"), group("low", phase="Running"), low, group("high"), high, config=BOTH)
    made.apply({**group("high"), "spec": {"minMember": 1, "queue": "default", "priorityClassName": "top"}})
    made.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "top"},
            "value": 10,
        }
    )
    kinds = [(one.kind, one.pod) for one in made.cycle(1000.0).decisions]
    assert ("evict", "ml/low") in kinds
    return made, low


def test_a_node_made_anew_with_less_takes_nothing_until_what_was_bound_meanwhile_is_off_it() -> None:
    """The server binds to whatever has the name; what does not fit there is refused by the kubelet."""
    made = engine(node("n0", "4"), group("g"), pod("a", "g", "3"), config=PATIENT)
    assert [one.pod for one in made.cycle(1.0).decisions] == ["ml/a"]
    made.delete("Node", "n0")
    for document in (node("n0", "2"), group("late"), pod("late", "late", "1")):
        made.apply(document)
    assert made.cycle(2.0).decisions == []
    bound = pod("a", "g", "3", on="n0")
    made.apply(bound)
    assert used_cpu(made, "n0") == 3000
    assert made.cycle(3.0).decisions == []
    made.apply({**bound, "status": {"phase": "Failed", "reason": "OutOfcpu"}})
    assert [(one.kind, one.pod) for one in made.cycle(4.0).decisions] == [("bind", "ml/late")]


@pytest.mark.parametrize("echo", ["same", "noted", "labelled"])
def test_an_eviction_holds_through_events_of_the_pod(echo: str) -> None:
    made, low = evicting()
    events: dict[str, Any] = {
        "same": low,
        "noted": noted(low, **{"volcano-py.io/evicted-for": "ml/high"}),
        "labelled": labelled(low),
    }
    made.apply(events[echo])
    assert status_of(made, "ml/low") == Status.RELEASING
    assert not [one for one in made.cycle(1001.0).decisions if one.kind == "evict"]


def test_a_pod_that_ends_by_itself_is_not_on_its_way_out_any_more() -> None:
    made, low = evicting()
    made.apply({**low, "status": {"phase": "Succeeded"}})
    assert status_of(made, "ml/low") == Status.SUCCEEDED
    assert used_cpu(made, "n0") == 0


def test_a_pod_made_anew_is_not_on_its_way_out() -> None:
    made, low = evicting()
    made.apply({**low, "metadata": {**low["metadata"], "uid": "another"}})
    assert status_of(made, "ml/low") == Status.RUNNING


def test_a_failed_eviction_brings_the_victim_back_and_spares_it_for_a_while() -> None:
    made, _ = evicting()
    used = used_cpu(made, "n0")
    evict_failed(made, "ml/low")
    assert status_of(made, "ml/low") == Status.RUNNING
    assert used_cpu(made, "n0") == used
    assert not [one for one in made.cycle(1001.0).decisions if one.kind == "evict"]
    assert made.state.holds.next_due() == 1001.0 + SPARED_S
    again = made.cycle(1001.0 + SPARED_S).decisions
    assert [one.pod for one in again if one.kind == "evict"] == ["ml/low"]


def test_a_clock_that_is_set_back_lengthens_no_wait() -> None:
    made = engine(node("n0"), group("g", phase="Running"), pod("p", "g", on="n0"))
    task = made.state.tasks.index["ml/p"]
    made.state.holds.eviction_failed(task, "budget")
    made.cycle(10_000.0)
    made.cycle(1_000.0)
    assert made.state.holds.next_due() == 1_000.0 + SPARED_S


def test_an_eviction_that_failed_for_want_of_a_leader_spares_nobody() -> None:
    made, _ = evicting()
    evict_failed(made, "ml/low", "fenced")
    assert [one.pod for one in made.cycle(1001.0).decisions if one.kind == "evict"] == ["ml/low"]


def test_a_pod_that_somebody_else_deletes_stays_on_its_way_out() -> None:
    made, low = evicting()
    gone = {**low, "metadata": {**low["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    made.apply(gone)
    evict_failed(made, "ml/low")
    assert status_of(made, "ml/low") == Status.RELEASING


def test_an_eviction_under_notice_is_gone_on_with_after_a_restart() -> None:
    made = engine(node("n0"), group("g", phase="Running"), pod("p", "g", on="n0"), config=PATIENT)
    uid = uid_of(made, "ml/p")
    assert evict_resumed(made.state, "ml/p", uid)
    assert status_of(made, "ml/p") == Status.RELEASING
    assert not evict_resumed(made.state, "ml/p", "another")
    settle(made.state, EvictDone("ml/p", uid, "ml/x"))
    assert status_of(made, "ml/p") == Status.RELEASING


def test_an_eviction_is_withdrawn_when_its_claimant_needs_it_no_more() -> None:
    made, low = evicting()
    assert list(withdrawals(made.state)) == []
    marked = noted(low, **{"volcano-py.io/evicted-for": "ml/high"})
    made.apply(marked)
    assert list(withdrawals(made.state)) == []
    made.delete("Pod", "ml/high")
    keep = KeepOrder("ml", "low", uid_of(made, "ml/low"))
    assert list(withdrawals(made.state)) == [keep]
    made.apply({**marked, "metadata": {**marked["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    assert list(withdrawals(made.state)) == []


def test_who_has_started_and_has_no_room_kept_needs_no_eviction() -> None:
    made, low = evicting()
    made.apply(noted(low, **{"volcano-py.io/evicted-for": "ml/high"}))
    made.apply(pod("high", "high", "4", on="n9", priority=10))
    made.apply(pod("more", "high", "9", priority=10))
    made.cycle(2000.0)
    assert [order.name for order in withdrawals(made.state)] == ["low"]


def test_an_eviction_for_nobody_is_not_withdrawn() -> None:
    made, low = evicting()
    made.apply(noted(low, **{"volcano-py.io/evicted-for": ""}))
    made.delete("PodGroup", "ml/high")
    assert list(withdrawals(made.state)) == []


def binding(**more: Any) -> Engine:
    made = engine(node("n0", cpu="1"), group("g"), pod("p", "g", **more), config=PATIENT)
    assert [one.kind for one in made.cycle(1000.0).decisions] == ["bind"]
    return made


@pytest.mark.parametrize("event", [noted(pod("p", "g"), a="b"), labelled(pod("p", "g")), pod("p", "g")])
def test_a_bind_holds_through_events_of_the_pod(event: Document) -> None:
    made = binding()
    made.apply(event)
    assert status_of(made, "ml/p") == Status.BINDING
    assert used_cpu(made, "n0") == 1000


def test_a_failed_bind_frees_the_room_and_is_tried_again_at_once() -> None:
    made = binding()
    bind_failed(made, "ml/p")
    assert status_of(made, "ml/p") == Status.PENDING
    assert used_cpu(made, "n0") == 0
    assert [one.kind for one in made.cycle(1001.0).decisions] == ["bind"]


def test_an_outcome_of_an_earlier_pod_of_the_name_changes_nothing() -> None:
    made = binding()
    settle(made.state, BindFailed("ml/p", "another", "n0", "ml/g", "late", "refused"))
    assert status_of(made, "ml/p") == Status.BINDING


def test_a_bind_that_always_fails_lets_others_have_the_room() -> None:
    made = engine(node("n0", cpu="1"), group("g"), pod("a", "g"), group("h"), pod("b", "h"), config=PATIENT)
    now = 1000.0
    for _ in range(2):
        assert [one.pod for one in made.cycle(now).decisions] == ["ml/a"]
        bind_failed(made, "ml/a")
        now += 1.0
    result = made.cycle(now)
    assert [one.pod for one in result.decisions] == ["ml/b"]
    assert "webhook says no" in result.refusals["ml/a"].message


def test_who_is_held_comes_back_later_each_time_and_events_do_not_free_it() -> None:
    made = binding()
    now = 1000.0
    waits: list[float] = []
    for _ in range(10):
        bind_failed(made, "ml/p")
        made.apply(labelled(pod("p", "g")) if len(waits) % 2 else pod("p", "g"))
        began = now
        while not made.cycle(now).decisions:
            due = made.state.holds.next_due()
            assert due is not None
            assert due > now
            now = due
        waits.append(now - began)
    assert waits[:5] == [0.0, 5.0, 10.0, 20.0, 40.0]
    assert waits[-1] == LONGEST_WAIT_S
    settle(made.state, BindDone("ml/p", uid_of(made, "ml/p"), "n0", "ml/g", 0.1))
    assert not made.state.holds.binds


def test_nobody_is_remembered_who_is_gone() -> None:
    made = binding()
    bind_failed(made, "ml/p")
    made.delete("Pod", "ml/p")
    made.cycle(1001.0)
    assert not made.state.holds.binds


def test_a_gate_of_the_pods_own_stays_shut_when_its_wait_is_over() -> None:
    made = binding()
    for _ in range(2):
        bind_failed(made, "ml/p")
        made.cycle(1000.0)
    made.apply(pod("p", "g", schedulingGates=[{"name": "x"}]))
    made.cycle(1001.0)
    assert not made.cycle(9000.0).decisions
    made.apply(pod("p", "g"))
    assert [one.kind for one in made.cycle(9001.0).decisions] == ["bind"]


# -- volumes ------------------------------------------------------------------------------------

WITH_VOLUMES = "actions: allocate\ntiers:\n- plugins: [{name: predicates}]\n"


def volume(name: str, size: str, **spec: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": size},
            "storageClassName": "slow",
            **spec,
        },
        "status": {"phase": "Available"},
    }


def claim(name: str, bound_to: str = "") -> Document:
    spec: Document = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "slow",
        **({"volumeName": bound_to} if bound_to else {}),
    }
    meta = {"name": name, "namespace": "ml"}
    status = {"phase": "Bound" if bound_to else "Pending"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": meta,
        "spec": spec,
        "status": status,
    }


def taken(made: Engine) -> dict[str, str]:
    return {key: name for plugin in made.plugins for key, name in plugin.volumes_taken().items()}


def with_claims() -> Engine:
    """An engine that has just bound a pod whose claim gets the only free volume."""
    slow = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "slow"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    named = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    made = engine(
        *(node("n0"), slow, volume("large", "9Gi"), claim("data"), claim("more")),
        *(group("g"), pod("p", "g", volumes=named)),
        config=WITH_VOLUMES,
    )
    assert [one.kind for one in made.cycle(1000.0).decisions] == ["bind"]
    assert taken(made) == {"ml/data": "large"}
    made.state.volumes.pin("ml/p", taken(made))
    return made


def test_a_volume_that_was_ordered_is_kept_though_a_better_one_comes() -> None:
    made = with_claims()
    made.apply(volume("small", "1Gi"))
    made.apply(
        labelled(pod("p", "g", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]))
    )
    assert taken(made) == {"ml/data": "large"}
    named = [{"name": "more", "persistentVolumeClaim": {"claimName": "more"}}]
    made.apply(group("h"))
    made.apply(pod("q", "h", volumes=named))
    assert [one.pod for one in made.cycle(1001.0).decisions] == ["ml/q"]
    assert taken(made) == {"ml/data": "large", "ml/more": "small"}


@pytest.mark.parametrize("done", [False, True])
def test_a_bind_that_ended_keeps_no_volume(*, done: bool) -> None:
    made = with_claims()
    if done:
        settle(made.state, BindDone("ml/p", uid_of(made, "ml/p"), "n0", "ml/g", 0.1))
        made.apply(volume("large", "9Gi", claimRef={"namespace": "ml", "name": "data"}))
        made.apply(claim("data", "large"))
    else:
        bind_failed(made, "ml/p", "volumes")
    assert not made.state.volumes.pinned
    assert taken(made) == {}


def test_a_claim_that_is_to_be_bound_comes_with_its_class_and_who_serves_it() -> None:
    """One that names no class and is still to be made gets the default."""
    fast = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "disk.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}]
    made = engine(node("n0"), fast, group("g"), pod("p", "g", volumes=volumes), config=WITH_VOLUMES)
    (order,) = pin_claims(made, made.cycle(1000.0).decisions)["ml/p"]
    assert order == ClaimOrder("p-scratch", "", "fast", "disk.example.com")
