"""The controllers as a process on both servers: groups for plain pods, the queue tree, crashes in between."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.controlplane.flags import hold_port, port_of
from tests.e2e import objects
from tests.e2e.cluster import Cluster
from tests.e2e.components import Component
from tests.e2e.live import Document

MARK = "volcano.sh/closed-by-parent"
ALONE = ("--no-leader-elect", "--listen-address", "0")


def start(cluster: Cluster) -> Component:
    return cluster.controller(*ALONE)


def group_names(cluster: Cluster) -> dict[str, str]:
    """Pod -> the PodGroup it names."""
    return {
        name: pod["metadata"].get("annotations", {}).get(objects.GROUP, "")
        for name, pod in cluster.pods().items()
    }


def groups(cluster: Cluster) -> dict[str, Any]:
    """PodGroups of the test's namespace by name."""
    prefix = f"{cluster.space}/"
    return {
        key.removeprefix(prefix): group
        for key, group in cluster.list("PodGroup").items()
        if key.startswith(prefix)
    }


def command(cluster: Cluster, action: str, queue: str) -> None:
    """What vcctl creates to have *queue* opened or closed; waits until it is taken."""
    name = f"{action.lower()}-{queue}"
    target = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": queue}
    document = {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": name, "namespace": cluster.space},
        "action": action,
        "target": {**target, "uid": cluster.list("Queue")[queue]["metadata"]["uid"]},
    }
    cluster.create(document)
    cluster.until_gone("Command", f"{cluster.space}/{name}")


def states(cluster: Cluster, *names: str) -> list[str]:
    queues = cluster.list("Queue")
    return [queues.get(name, {}).get("status", {}).get("state", "") for name in names]


def becomes(cluster: Cluster, wanted: dict[str, str]) -> None:
    """Wait until the queues have these states."""
    names = list(wanted)
    cluster.until(
        lambda: states(cluster, *names) == list(wanted.values()), what=f"{wanted}: {states(cluster, *names)}"
    )


def replica_set(cluster: Cluster, replicas: int) -> dict[str, Any]:
    """A ReplicaSet with *replicas* pods, which the test makes itself where no controller does."""
    template = objects.pod(cluster.space, "")
    labels = {"app": "web"}
    document = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": "web",
            "namespace": cluster.space,
            "annotations": {"scheduling.volcano.sh/group-min-member": str(replicas)},
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }
    cluster.create(document)
    made = cluster.get("ReplicaSet", f"{cluster.space}/web")
    assert made is not None
    if cluster.server.kind == "embedded":
        for number in range(replicas):
            pod = objects.pod(cluster.space, f"web-{number}")
            owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}
            pod["metadata"] |= {
                "labels": labels,
                "ownerReferences": [{**owner, "uid": made["metadata"]["uid"]}],
            }
            cluster.create(pod)
    return made


def test_pods_of_one_owner_get_one_group_that_goes_when_none_are_wanted(cluster: Cluster) -> None:
    start(cluster)
    name = f"podgroup-{replica_set(cluster, 3)['metadata']['uid']}"
    cluster.until(lambda: list(group_names(cluster).values()) == [name] * 3, what="three pods in one group")
    group = groups(cluster)[name]
    assert (group["spec"]["minMember"], group["spec"]["minResources"]["cpu"]) == (3, "3")
    assert group["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"
    cluster.patch("ReplicaSet", f"{cluster.space}/web", {"spec": {"replicas": 0}})
    if cluster.server.kind == "embedded":
        for pod in cluster.pods():
            cluster.delete("Pod", f"{cluster.space}/{pod}", grace_s=0)
    cluster.until_gone("PodGroup", f"{cluster.space}/{name}")


def test_a_pod_alone_gets_a_group_that_goes_with_it(cluster: Cluster) -> None:
    start(cluster)
    note = {"scheduling.volcano.sh/queue-name": "team"}
    cluster.create(objects.pod(cluster.space, "alone", annotations=note))
    cluster.create(objects.pod(cluster.space, "theirs", scheduler="default-scheduler"))
    name = cluster.until(lambda: group_names(cluster).get("alone"), what="a group")
    assert groups(cluster)[name]["spec"]["queue"] == "team"
    assert list(groups(cluster)) == [name]
    meta = cluster.pods()["alone"]["metadata"]
    assert meta["annotations"] == {**note, objects.GROUP: name}
    assert "finalizers" not in meta
    cluster.delete("Pod", f"{cluster.space}/alone", grace_s=0)
    if cluster.server.has_garbage_collector:
        cluster.until_gone("PodGroup", f"{cluster.space}/{name}")


def test_a_group_that_somebody_deletes_comes_back(cluster: Cluster) -> None:
    start(cluster)
    cluster.create(objects.pod(cluster.space, "alone"))
    name = cluster.until(lambda: group_names(cluster).get("alone"), what="a group")
    old = groups(cluster)[name]["metadata"]["uid"]
    cluster.delete("PodGroup", f"{cluster.space}/{name}")
    cluster.until(
        lambda: groups(cluster).get(name, {}).get("metadata", {}).get("uid") not in (None, old),
        what="the group again",
    )


def test_a_pod_that_names_no_possible_queue_is_told_so_and_the_others_go_on(cluster: Cluster) -> None:
    start(cluster)
    note = {"scheduling.volcano.sh/queue-name": "Not A Name"}
    cluster.create(objects.pod(cluster.space, "bad", annotations=note))
    cluster.create(objects.pod(cluster.space, "good"))
    (event,) = cluster.until(lambda: cluster.events("Refused"), what="an event")
    assert event["involvedObject"]["name"] == "bad"
    assert "spec.queue" in event["message"]
    cluster.until(lambda: group_names(cluster)["good"], what="the other pod has its group")


def test_the_queues_that_must_exist_do(cluster: Cluster) -> None:
    start(cluster)
    becomes(cluster, {"root": "Open", "default": "Open"})
    assert cluster.list("Queue")["root"]["spec"]["reclaimable"] is False
    cluster.delete("Queue", "root")
    cluster.delete("Queue", "default")
    becomes(cluster, {"root": "Open", "default": "Open"})


def test_a_tree_is_closed_and_opened(cluster: Cluster) -> None:
    cluster.create(objects.queue("p"), objects.queue("a", parent="p"), objects.queue("b", parent="p"))
    cluster.create(objects.queue("leaf", parent="a"), objects.group(cluster.space, "g", 1, "leaf"))
    start(cluster)
    becomes(cluster, {"p": "Open", "a": "Open", "b": "Open", "leaf": "Open"})
    cluster.until(
        lambda: cluster.list("Queue")["leaf"]["status"].get("pending") == 1, what="the group is counted"
    )
    command(cluster, "CloseQueue", "b")
    command(cluster, "CloseQueue", "p")
    becomes(cluster, {"p": "Closed", "a": "Closed", "b": "Closed", "leaf": "Closing"})
    marked = {
        name for name, it in cluster.list("Queue").items() if MARK in it["metadata"].get("annotations", {})
    }
    assert marked == {"a", "leaf"}
    cluster.delete("PodGroup", f"{cluster.space}/g")
    becomes(cluster, {"leaf": "Closed"})
    command(cluster, "OpenQueue", "a")
    assert states(cluster, "a") == ["Closed"]
    command(cluster, "OpenQueue", "p")
    becomes(cluster, {"p": "Open", "a": "Open", "b": "Closed", "leaf": "Open"})


def test_a_broken_queue_says_so_and_the_others_go_on(cluster: Cluster) -> None:
    cluster.create(objects.queue("x", parent="y"), objects.queue("y", parent="x"))
    cluster.create(objects.queue("lost", parent="nowhere"), objects.queue("fine"))
    start(cluster)
    becomes(cluster, {"x": "Unknown", "y": "Unknown", "lost": "Unknown", "fine": "Open"})
    cluster.create(objects.queue("nowhere"))
    cluster.patch("Queue", "y", {"spec": {"parent": None}})
    becomes(cluster, {"x": "Open", "y": "Open", "lost": "Open"})


def test_it_may_be_killed_at_any_time(cluster: Cluster) -> None:
    """Each pod ends with one group, whatever was written when it was killed."""
    wanted = 60
    cluster.create(*(objects.pod(cluster.space, f"p-{number}") for number in range(wanted)))
    for part in (5, 20, 40):
        component = start(cluster)
        cluster.until(lambda: len(groups(cluster)) >= part, what=f"{part} groups")  # noqa: B023 - at once
        component.kill()
    start(cluster)
    cluster.until(lambda: all(group_names(cluster).values()), what="all pods have a group")
    named = group_names(cluster)
    uids = {name: pod["metadata"]["uid"] for name, pod in cluster.pods().items()}
    assert named == {name: f"podgroup-{uid}" for name, uid in uids.items()}
    assert set(groups(cluster)) == set(named.values())


def test_it_goes_on_after_the_server_was_away(cluster: Cluster) -> None:
    cluster.create(objects.queue("q"), objects.group(cluster.space, "g", 1, "q"))
    start(cluster)
    cluster.until(lambda: cluster.list("Queue")["q"].get("status", {}).get("pending") == 1, what="counted")
    command(cluster, "CloseQueue", "q")
    becomes(cluster, {"q": "Closing"})
    cluster.server.crash()
    cluster.server.revive()
    cluster.create(objects.pod(cluster.space, "late"))
    cluster.delete("PodGroup", f"{cluster.space}/g")
    cluster.until(lambda: group_names(cluster)["late"], what="the pod has its group")
    becomes(cluster, {"q": "Closed"})


def test_of_two_only_one_leads_and_the_other_takes_over(cluster: Cluster) -> None:
    lease = ("--lease-namespace", cluster.space, "--listen-address", "0")
    first = cluster.controller(*lease)
    path = f"{cluster.space}/volcano-py-controller"
    holder = cluster.until(lambda: held_by(cluster, path), what="a leader")
    second = cluster.component("controller", *lease, instance="2")
    cluster.create(objects.pod(cluster.space, "one"))
    cluster.until(lambda: group_names(cluster)["one"], what="a group")
    assert held_by(cluster, path) == holder
    assert first.stop() == 0
    assert held_by(cluster, path) != holder, "it is given back, and need not run out"
    cluster.create(objects.pod(cluster.space, "two"))
    cluster.until(lambda: group_names(cluster)["two"], what="a group from the other one")
    assert held_by(cluster, path) not in ("", holder)
    assert second.stop() == 0


@pytest.mark.long
def test_when_the_leader_is_killed_the_other_takes_over_within_the_lease(cluster: Cluster) -> None:
    lease = ("--lease-namespace", cluster.space, "--listen-address", "0")
    first = cluster.controller(*lease)
    path = f"{cluster.space}/volcano-py-controller"
    cluster.until(lambda: held_by(cluster, path), what="a leader")
    cluster.component("controller", *lease, instance="2")
    first.kill()
    last = lease_spec(cluster, path)
    cluster.create(objects.pod(cluster.space, "one"))
    cluster.until(lambda: group_names(cluster)["one"], what="a group from the other one")
    after = lease_spec(cluster, path)
    assert after["holderIdentity"] != last["holderIdentity"]
    silent = datetime.fromisoformat(after["acquireTime"]) - datetime.fromisoformat(last["renewTime"])
    assert silent >= timedelta(seconds=last["leaseDurationSeconds"]), "the dead leader's time had run out"


@pytest.fixture
def port() -> Iterator[int]:
    """A port for a component, which nobody else gets."""
    with hold_port() as held:
        yield port_of(held)


def test_it_says_how_it_is_and_what_it_counts(cluster: Cluster, port: int) -> None:
    cluster.create(objects.queue("q"), objects.group(cluster.space, "g", 1, "q"))
    cluster.controller("--no-leader-elect", "--listen-address", f"127.0.0.1:{port}")
    cluster.until(lambda: asked(port, "readyz") == (200, "ok\n"), what="ready")
    assert asked(port, "healthz") == (200, "ok\n")
    line = 'volcano_queue_pod_group_pending_count{queue_name="q"} 1.0'
    cluster.until(lambda: line in asked(port, "metrics")[1], what="the group is counted")
    assert "volcano_controller_leading 1.0" in asked(port, "metrics")[1]


def test_without_a_place_for_its_lease_it_is_not_ready_and_says_why(cluster: Cluster, port: int) -> None:
    cluster.controller("--lease-namespace", "nowhere", "--listen-address", f"127.0.0.1:{port}")
    reason = '"nowhere" not found'
    said = cluster.until(lambda: _refusal(port, reason), what=f"not ready, since {reason}")
    assert said == 503


def _refusal(port: int, reason: str) -> int:
    """The status with which readiness is answered, once *reason* is in it."""
    status, text = asked(port, "readyz")
    return status if reason in text else 0


def asked(port: int, what: str) -> tuple[int, str]:
    """Status and text of a page that the controllers serve; 0 while nobody listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{what}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


def held_by(cluster: Cluster, lease: str) -> str:
    return str(lease_spec(cluster, lease).get("holderIdentity") or "")


def lease_spec(cluster: Cluster, lease: str) -> Document:
    spec: Document = (cluster.get("Lease", lease) or {}).get("spec", {})
    return spec
