"""What the writer relies on, on both servers: merged annotations, identities, budgets, status patches."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from tests.e2e import objects
from tests.e2e.cluster import Cluster
from tests.e2e.live import Document
from volcano_py.scheduler.cluster.orders import (
    BindDone,
    BindFailed,
    BindOrder,
    ClaimOrder,
    EvictDone,
    EvictFailed,
    EvictOrder,
    GroupOrder,
    NominateOrder,
    Note,
    Order,
    Outcome,
    ProblemOrder,
    QueueOrder,
    RefusalOrder,
    Subject,
)
from volcano_py.scheduler.cluster.writer import Writer, WriterSettings

OTHER = "00000000-0000-0000-0000-000000000000"


def carry_out(cluster: Cluster, orders: Iterable[Order], **settings: Any) -> list[Outcome]:
    """Carry *orders* out; what became of them."""

    async def work() -> list[Outcome]:
        writer = Writer(cluster.api, settings=WriterSettings(**settings))
        writer.submit(orders)
        assert await writer.drain(60.0)
        outcomes = writer.take_outcomes()
        assert writer.status_stats.last_refusal == writer.event_stats.last_refusal == ""
        await writer.close()
        return outcomes

    return cluster.call(work())


def make_pod(cluster: Cluster, name: str, *, on: str = "", **more: Any) -> str:
    """Create a pod, running on node *on* where that is said; its uid."""
    document = objects.pod(cluster.space, name)
    document["metadata"].update(more)
    cluster.create(document)
    uid = str(pod(cluster, name)["metadata"]["uid"])
    if on:
        carry_out(cluster, [BindOrder(cluster.space, name, uid, on)])
        ready = {"type": "Ready", "status": "True"}
        change = {"status": {"phase": "Running", "conditions": [ready]}}
        path = f"/api/v1/namespaces/{cluster.space}/pods/{name}/status"
        cluster.call(cluster.api.patch(path, change, kind="strategic"))
    return uid


def pod(cluster: Cluster, name: str) -> Document:
    found = cluster.get("Pod", f"{cluster.space}/{name}")
    assert found is not None
    return found


def test_a_bind_writes_node_and_annotations_together(cluster: Cluster) -> None:
    cluster.nodes(1)
    uid = make_pod(cluster, "a", annotations={"mine": "stays"})
    order = BindOrder(cluster.space, "a", uid, "n0", {"hami.io/vgpu-node": "n0"})
    (outcome,) = carry_out(cluster, [order])
    assert isinstance(outcome, BindDone)
    bound = pod(cluster, "a")
    assert bound["spec"]["nodeName"] == "n0"
    assert bound["metadata"]["annotations"] == {"mine": "stays", "hami.io/vgpu-node": "n0"}
    condition = cluster.condition("Pod", f"{cluster.space}/a", "PodScheduled")
    assert condition is not None
    assert condition["status"] == "True"
    assert isinstance(carry_out(cluster, [order])[0], BindDone)


def test_a_bind_writes_annotations_of_any_text(cluster: Cluster) -> None:
    """As long as all annotations of an object may be together, empty, and of any letters."""
    cluster.nodes(1)
    uid = make_pod(cluster, "a")
    notes = {"x/empty": "", "x/letters": 'ä€\U0001f642\x00\x7f\n"\\', "x/long": "é" * 130_000}
    (done,) = carry_out(cluster, [BindOrder(cluster.space, "a", uid, "n0", annotations=notes)])
    assert isinstance(done, BindDone)
    assert pod(cluster, "a")["metadata"]["annotations"] == notes


def test_a_bind_of_another_pod_of_the_name_is_refused(cluster: Cluster) -> None:
    make_pod(cluster, "a")
    make_pod(cluster, "b", on="n1")
    orders = [
        BindOrder(cluster.space, "a", OTHER, "n0"),
        BindOrder(cluster.space, "b", str(pod(cluster, "b")["metadata"]["uid"]), "n0"),
        BindOrder(cluster.space, "never", OTHER, "n0"),
    ]
    outcomes = carry_out(cluster, orders)
    assert [each.trouble for each in outcomes if isinstance(each, BindFailed)] == ["gone"] * 3
    assert "nodeName" not in pod(cluster, "a")["spec"]
    assert pod(cluster, "b")["spec"]["nodeName"] == "n1"


def test_a_pod_that_is_being_deleted_is_not_bound(cluster: Cluster) -> None:
    uid = make_pod(cluster, "a", finalizers=["example.com/hold"])
    cluster.delete("Pod", f"{cluster.space}/a")
    (outcome,) = carry_out(cluster, [BindOrder(cluster.space, "a", uid, "n0")])
    assert isinstance(outcome, BindFailed)
    assert outcome.trouble == "gone"
    cluster.patch("Pod", f"{cluster.space}/a", {"metadata": {"finalizers": None}})


def evict(cluster: Cluster, name: str, uid: str, **more: Any) -> EvictOrder:
    return EvictOrder(
        cluster.space, name, uid, reason="queue a is over", for_whom="x/g", action="reclaim", **more
    )


@pytest.mark.parametrize("delete", [False, True])
def test_an_evicted_pod_tells_for_whom_it_left(cluster: Cluster, *, delete: bool) -> None:
    uid = make_pod(cluster, "a", on="n0")
    outcomes = carry_out(cluster, [evict(cluster, "a", uid, delete=delete)])
    assert outcomes == [EvictDone(f"{cluster.space}/a", uid, "x/g")]
    left = pod(cluster, "a")
    assert left["metadata"]["deletionTimestamp"]
    assert left["metadata"]["annotations"]["volcano-py.io/evicted-for"] == "x/g"
    assert left["metadata"]["annotations"]["volcano-py.io/evicted-by-rule"] == "queue a is over"
    condition = cluster.condition("Pod", f"{cluster.space}/a", "DisruptionTarget")
    assert condition is not None
    # The Eviction API gives the condition words of its own.
    assert condition["reason"] == ("PreemptionByScheduler" if delete else "EvictionByEvictionAPI")
    (event,) = cluster.events("Evict")
    assert (event["involvedObject"]["name"], event["type"]) == ("a", "Warning")


@pytest.mark.parametrize("delete", [False, True])
def test_an_eviction_of_another_pod_of_the_name_touches_nothing(cluster: Cluster, *, delete: bool) -> None:
    make_pod(cluster, "a", on="n0")
    before = pod(cluster, "a")
    marked = evict(cluster, "a", OTHER, delete=delete, deadline=0.0)
    for order in (evict(cluster, "a", OTHER, delete=delete), marked):
        assert carry_out(cluster, [order]) == [EvictDone(f"{cluster.space}/a", OTHER, "x/g")]
    assert pod(cluster, "a") == before


def test_a_disruption_budget_keeps_its_pod_and_the_marks_come_off(cluster: Cluster) -> None:
    uid = make_pod(cluster, "a", on="n0", labels={"app": "a"})
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": cluster.space},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
    }
    cluster.create(budget)
    (outcome,) = carry_out(cluster, [evict(cluster, "a", uid)], patience_s=0.5)
    assert isinstance(outcome, EvictFailed)
    assert "disruption budget" in outcome.why
    kept = pod(cluster, "a")
    assert "deletionTimestamp" not in kept["metadata"]
    assert not kept["metadata"].get("annotations")
    assert cluster.condition("Pod", f"{cluster.space}/a", "DisruptionTarget") is None


def test_a_waiting_pod_says_why_and_where_room_is_kept(cluster: Cluster) -> None:
    cluster.nodes(1)
    uid = make_pod(cluster, "a")
    orders: list[Order] = [
        RefusalOrder(cluster.space, "a", uid, "0/1 nodes are available: 1 Insufficient cpu."),
        NominateOrder(cluster.space, "a", uid, "n0"),
    ]
    carry_out(cluster, orders)
    condition = cluster.condition("Pod", f"{cluster.space}/a", "PodScheduled")
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert pod(cluster, "a")["status"]["nominatedNodeName"] == "n0"
    (event,) = cluster.events("FailedScheduling")
    assert event["involvedObject"]["uid"] == uid
    version = pod(cluster, "a")["metadata"]["resourceVersion"]
    carry_out(cluster, [RefusalOrder(cluster.space, "a", OTHER, "not this one", event=False)])
    assert pod(cluster, "a")["metadata"]["resourceVersion"] == version
    carry_out(cluster, [NominateOrder(cluster.space, "a", uid, "")])
    assert "nominatedNodeName" not in pod(cluster, "a")["status"]


def test_podgroup_and_queue_say_how_they_stand(cluster: Cluster) -> None:
    cluster.create(objects.queue("writer"), objects.group(cluster.space, "g", 2, "writer"))
    group, queue = cluster.get("PodGroup", f"{cluster.space}/g"), cluster.get("Queue", "writer")
    assert group is not None
    assert queue is not None
    status = {"phase": "Running", "running": 2, "succeeded": 0, "failed": 0}
    uid = group["metadata"]["uid"]
    orders: list[Order] = [
        GroupOrder(cluster.space, "g", uid, status, (Note("Scheduled", "2 of 2 members started"),)),
        QueueOrder("writer", queue["metadata"]["uid"], {"allocated": {"cpu": "2", "memory": "1Gi"}}),
    ]
    carry_out(cluster, orders)
    carry_out(cluster, [QueueOrder("writer", queue["metadata"]["uid"], {"allocated": {"cpu": "3"}})])
    carry_out(cluster, [GroupOrder(cluster.space, "g", OTHER, {"phase": "Unknown"})])
    group, queue = cluster.get("PodGroup", f"{cluster.space}/g"), cluster.get("Queue", "writer")
    assert group is not None
    assert queue is not None
    assert group["status"] == status
    assert queue["status"]["allocated"] == {"cpu": "3"}
    assert [event["involvedObject"]["kind"] for event in cluster.events("Scheduled")] == ["PodGroup"]


def test_objects_that_cannot_be_read_are_told_so(cluster: Cluster) -> None:
    cluster.nodes(1)
    cluster.create(objects.queue("writer"), objects.group(cluster.space, "g", 1, "writer"))
    uid = make_pod(cluster, "a")
    subjects = [Subject("Pod", cluster.space, "a", uid)]
    for kind, space, name in (("Node", "", "n0"), ("PodGroup", cluster.space, "g"), ("Queue", "", "writer")):
        found = cluster.get(kind, f"{space}/{name}" if space else name)
        assert found is not None
        subjects.append(Subject(kind, space, name, found["metadata"]["uid"]))
    carry_out(cluster, [ProblemOrder(each, ("spec.x: is bad",), waits=True) for each in subjects])
    for subject in subjects[:3]:
        condition = cluster.condition(subject.kind, subject.key, "volcano-py.io/Valid")
        assert condition is not None
        assert (condition["status"], condition["message"]) == ("False", "spec.x: is bad")
    waits = cluster.condition("Pod", f"{cluster.space}/a", "PodScheduled")
    assert waits is not None
    assert waits["reason"] == "SchedulerError"
    told = [event["involvedObject"]["kind"] for event in cluster.list("Event").values()]
    assert {"Pod", "Node", "PodGroup", "Queue"} <= set(told)


def test_a_volume_is_kept_for_its_claim_before_the_pod_is_bound(cluster: Cluster) -> None:
    """The volume controller does not run here: the test plays its part."""
    amounts = {"storage": "1Gi"}
    shape = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late"}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{cluster.space}-pv"},
        "spec": {**shape, "capacity": amounts, "hostPath": {"path": "/nowhere"}},
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": cluster.space},
        "spec": {**shape, "resources": {"requests": amounts}},
    }
    cluster.create(volume, claim)
    uid = make_pod(cluster, "a")
    name = volume["metadata"]["name"]  # type: ignore[index]
    order = BindOrder(cluster.space, "a", uid, "n0", claims=(ClaimOrder("data", name),))

    async def work() -> list[Outcome]:
        writer = Writer(cluster.api, settings=WriterSettings(claims_wait_s=120.0))
        writer.submit([order])
        path = f"/api/v1/namespaces/{cluster.space}/persistentvolumeclaims/data"
        while "claimRef" not in (await cluster.api.get(f"/api/v1/persistentvolumes/{name}"))["spec"]:
            assert await writer.drain(0.05) is False
        await cluster.api.patch(path, {"spec": {"volumeName": name}})
        await cluster.api.patch(f"{path}/status", {"status": {"phase": "Bound"}})
        assert await writer.drain(120.0)
        outcomes = writer.take_outcomes()
        await writer.close()
        return outcomes

    (outcome,) = cluster.call(work())
    assert isinstance(outcome, BindDone)
    owner = cluster.call(cluster.api.get(f"/api/v1/persistentvolumes/{name}"))["spec"]["claimRef"]
    assert (owner["namespace"], owner["name"]) == (cluster.space, "data")
    cluster.call(cluster.api.delete(f"/api/v1/persistentvolumes/{name}"))


def test_binds_and_evictions_outlive_a_crash_of_the_server(cluster: Cluster) -> None:
    """Whatever the crash cuts off is found out and done; nothing is done twice or forgotten."""
    count = 150
    pods = [objects.pod(cluster.space, f"p{i}") for i in range(count)]
    cluster.create(*pods)
    uids = {name: str(found["metadata"]["uid"]) for name, found in cluster.pods().items()}
    orders = [BindOrder(cluster.space, name, uid, "n0") for name, uid in uids.items()]

    async def start() -> Writer:
        writer = Writer(cluster.api, settings=WriterSettings(in_flight=4))
        writer.submit(orders)
        while not writer.stats.bound:
            await asyncio.sleep(0.001)
        cluster.server.freeze()  # here, where nothing is bound meanwhile
        return writer

    async def finish(writer: Writer) -> list[Outcome]:
        assert await writer.drain(60.0)  # a pod that is evicted before it is bound is gone at once
        writer.submit([evict(cluster, name, uid) for name, uid in list(uids.items())[:10]])
        assert await writer.drain(60.0)
        outcomes = writer.take_outcomes()
        await writer.close()
        return outcomes

    writer = cluster.call(start())
    cluster.server.crash()
    assert writer.stats.binding
    cluster.server.revive()
    outcomes = cluster.call(finish(writer))
    done = [each.key for each in outcomes if isinstance(each, BindDone)]
    assert sorted(done) == sorted(f"{cluster.space}/{name}" for name in uids)
    assert sum(isinstance(each, EvictDone) for each in outcomes) == 10
    assert len(outcomes) == count + 10
    assert all(each["spec"].get("nodeName") == "n0" for each in cluster.pods().values())


def test_a_status_of_another_object_of_the_name_is_not_written(cluster: Cluster) -> None:
    cluster.create(objects.group(cluster.space, "g", 1))
    carry_out(cluster, [GroupOrder(cluster.space, "g", OTHER, {"phase": "Running"})])
    group = cluster.get("PodGroup", f"{cluster.space}/g")
    assert group is not None
    assert not group.get("status")


@pytest.mark.parametrize("has_status", [False, True])
def test_a_queue_made_anew_does_not_get_what_an_earlier_one_held(
    cluster: Cluster, *, has_status: bool
) -> None:
    """On a custom object's status endpoint the identity that a merge patch names guards nothing."""
    cluster.create(objects.queue("q"))
    if has_status:
        cluster.patch("Queue", "q", {"status": {"state": "Open"}}, sub="status")
    before = cluster.get("Queue", "q")
    assert before is not None
    meta = before["metadata"]
    blank_at = "" if has_status else meta["resourceVersion"]
    carry_out(cluster, [QueueOrder("q", OTHER, {"allocated": {"cpu": "3"}}, blank_at)])
    assert cluster.get("Queue", "q") == before
    carry_out(cluster, [QueueOrder("q", meta["uid"], {"allocated": {"cpu": "1"}}, blank_at)])
    after = cluster.get("Queue", "q")
    assert after is not None
    assert after["status"]["allocated"] == {"cpu": "1"}
    assert after["status"].get("state") == before.get("status", {}).get("state")
