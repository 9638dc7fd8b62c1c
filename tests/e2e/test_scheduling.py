"""What a user sees on a live cluster: gangs, queues, borrowing and taking back, priorities."""

from __future__ import annotations

from collections import Counter

from tests.e2e import objects
from tests.e2e.cluster import Cluster


def waits_with(cluster: Cluster, group: str, *words: str) -> None:
    """Wait until the PodGroup says why it waits, with all *words* in the sentence."""
    cluster.until_says("PodGroup", f"{cluster.space}/{group}", "Unschedulable", *words)


def test_a_gang_starts_whole_or_not_at_all(cluster: Cluster) -> None:
    cluster.default_queue()
    cluster.nodes(2, cpu="2")
    cluster.scheduler()
    cluster.create(*objects.gang(cluster.space, "big", 5), *objects.gang(cluster.space, "small", 2))
    cluster.wait_bound(2, "small")
    waits_with(cluster, "big", "Insufficient cpu")
    assert cluster.bound("big") == {}
    for pod in cluster.pods("big"):  # what cluster autoscalers read, of each member
        condition = cluster.until_says("Pod", f"{cluster.space}/{pod}", "PodScheduled", "Insufficient cpu")
        assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    cluster.create(objects.node("n2", cpu="2"))
    waits_with(cluster, "big", "/3 nodes")
    assert cluster.bound("big") == {}
    cluster.create(objects.node("n3", cpu="1"))
    cluster.wait_bound(5, "big")
    cluster.until(lambda: _phase(cluster, "big") == "Running", what="the phase told")
    cluster.assert_sound()


def test_a_refused_pod_says_why(cluster: Cluster) -> None:
    cluster.default_queue()
    cluster.nodes(1, cpu="1")
    cluster.scheduler()
    cluster.create(*objects.gang(cluster.space, "wide", 1, cpu="3"))
    said = cluster.until_says("Pod", f"{cluster.space}/wide-0", "PodScheduled", "Insufficient cpu")
    assert (said["status"], said["reason"]) == ("False", "Unschedulable")
    assert cluster.until(lambda: cluster.events("FailedScheduling"), what="an event")


def test_a_queue_never_passes_its_max(cluster: Cluster) -> None:
    cluster.nodes(2, cpu="8")
    cluster.create(objects.queue("capped", capability={"cpu": "3"}))
    cluster.scheduler()
    pods = [objects.pod(cluster.space, f"p-{i}", group=f"p-{i}") for i in range(6)]
    groups = [objects.group(cluster.space, f"p-{i}", 1, "capped") for i in range(6)]
    cluster.create(*groups, *pods)
    bound = cluster.wait_bound(3)
    waiting = next(name for name in cluster.pods() if name not in bound)
    cluster.until_says("Pod", f"{cluster.space}/{waiting}", "PodScheduled", "capped")
    cluster.delete("Pod", f"{cluster.space}/{next(iter(bound))}", grace_s=0)
    cluster.wait_bound(3)
    cluster.assert_sound()


def test_lent_capacity_is_taken_back(cluster: Cluster) -> None:
    cluster.nodes(1, cpu="8")
    cluster.create(
        objects.queue("lender", deserved={"cpu": "4"}), objects.queue("borrower", deserved={"cpu": "4"})
    )
    conf = cluster.place / "conf.yaml"
    conf.write_text(CAPACITY)
    cluster.kubelets()
    cluster.scheduler("--scheduler-conf", str(conf))
    for number in range(8):
        cluster.create(*objects.gang(cluster.space, f"b{number}", 1, queue="borrower"))
    cluster.wait_bound(8, "b")
    cluster.create(*objects.gang(cluster.space, "owner", 3, queue="lender"))
    cluster.wait_bound(3, "owner")
    assert len(cluster.bound("b")) == 5
    cluster.until(lambda: len(cluster.events("Evict")) >= 6, what="all evictions told of")
    told = cluster.events("Evict")
    kinds = Counter(event["involvedObject"]["kind"] for event in told)
    assert kinds == {"Pod": 3, "PodGroup": 3}
    assert all(f"evicted for {cluster.space}/owner" in event["message"] for event in told)
    cluster.assert_sound()


def test_more_important_work_goes_first(cluster: Cluster) -> None:
    cluster.default_queue()
    cluster.nodes(1, cpu="2")
    cluster.create(objects.priority("urgent", 1000))
    cluster.kubelets()
    cluster.scheduler()
    cluster.create(*objects.gang(cluster.space, "old", 2))
    cluster.wait_bound(2, "old")
    group, pod = objects.gang(cluster.space, "new", 1, priorityClassName="urgent")
    group["spec"]["priorityClassName"] = "urgent"
    cluster.create(group, pod)
    cluster.wait_bound(1, "new")
    cluster.assert_sound()


def test_a_manifest_for_volcano_runs_unchanged(cluster: Cluster) -> None:
    cluster.default_queue()
    cluster.nodes(1)
    cluster.scheduler()
    cluster.create(*objects.gang(cluster.space, "theirs", 2, scheduler="volcano"))
    cluster.create(objects.pod(cluster.space, "other", scheduler="default-scheduler"))
    cluster.wait_bound(2, "theirs")
    assert cluster.bound("other") == {}


def test_plain_pods_get_a_group(cluster: Cluster) -> None:
    cluster.nodes(1)
    cluster.controller()
    cluster.scheduler()
    cluster.create(objects.pod(cluster.space, "lone"))
    cluster.wait_bound(1, "lone")
    pod = cluster.pods()["lone"]
    group = pod["metadata"]["annotations"][objects.GROUP]
    assert cluster.get("PodGroup", f"{cluster.space}/{group}") is not None
    cluster.delete("Pod", f"{cluster.space}/lone", grace_s=0)
    if cluster.server.has_garbage_collector:
        cluster.until_gone("PodGroup", f"{cluster.space}/{group}")


def test_a_closed_queue_takes_nothing_until_it_is_opened(cluster: Cluster) -> None:
    cluster.nodes(1)
    cluster.create(objects.queue("team"))
    cluster.controller()
    cluster.scheduler()
    cluster.until(lambda: _state(cluster, "team") == "Open", what="queue open")
    cluster.create(_command("CloseQueue", cluster))
    cluster.until(lambda: _state(cluster, "team") == "Closed", what="queue closed")
    cluster.create(*objects.gang(cluster.space, "late", 1, queue="team"))
    waits_with(cluster, "late", "queue team is closed")
    cluster.create(_command("OpenQueue", cluster))
    cluster.wait_bound(1, "late")


def _command(action: str, cluster: Cluster) -> objects.Document:
    queue = cluster.get("Queue", "team")
    assert queue is not None
    target = {
        "apiVersion": queue["apiVersion"],
        "kind": "Queue",
        "name": "team",
        "uid": queue["metadata"]["uid"],
        "controller": True,
    }
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": action.lower(), "namespace": cluster.space},
        "action": action,
        "target": target,
    }


def _state(cluster: Cluster, queue: str) -> str:
    found = cluster.get("Queue", queue) or {}
    return str(found.get("status", {}).get("state", ""))


def _phase(cluster: Cluster, group: str) -> str:
    found = cluster.get("PodGroup", f"{cluster.space}/{group}") or {}
    return str(found.get("status", {}).get("phase", ""))


CAPACITY = """
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}]
"""
