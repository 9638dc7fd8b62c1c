"""PodGroups for plain pods: what is made for whom, when it goes, and what it costs."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.controllers.objects import owner, pod_parts, workload_parts
from tests.controllers.process import Process, settled
from tests.controllers.server import Server
from volcano_py.controllers.podgroup.build import Rules

GROUP = "scheduling.k8s.io/group-name"


def groups(server: Server) -> dict[str, Any]:
    return server.of("PodGroup")


def group_of(server: Server, pod: str) -> str:
    return str(server.of("Pod")[pod]["metadata"]["annotations"].get(GROUP, ""))


def test_a_pod_alone_gets_a_group_that_goes_with_it_in_two_writes() -> None:
    server = Server()
    server.put("Pod", "p", "ns", "u1", **pod_parts(requests={"cpu": "500m"}, priorityClassName="high"))
    settled(server)
    assert group_of(server, "ns/p") == "podgroup-u1"
    group = groups(server)["ns/podgroup-u1"]
    assert group["spec"] == {
        "minMember": 1,
        "minResources": {"cpu": "500m", "requests.cpu": "500m", "pods": "1", "count/pods": "1"},
        "priorityClassName": "high",
    }
    assert [it["uid"] for it in group["metadata"]["ownerReferences"]] == ["u1"]
    assert [write for write in server.writes if write[1] != "Queue"] == [
        ("create", "PodGroup", "podgroup-u1"),
        ("patch", "Pod", "p"),
    ]
    server.remove("Pod", "p", "ns")
    settled(server)
    assert not groups(server)


def test_pods_of_other_schedulers_and_pods_with_a_group_and_finished_pods_are_left_alone() -> None:
    server = Server()
    server.put("Pod", "other", "ns", "u1", **pod_parts(scheduler="default-scheduler"))
    server.put("Pod", "grouped", "ns", "u2", **pod_parts(annotations={GROUP: "mine"}))
    server.put("Pod", "done", "ns", "u3", **{**pod_parts(), "status": {"phase": "Succeeded"}})
    settled(server)
    assert not groups(server)
    assert not [write for write in server.writes if write[1] != "Queue"]


def test_pods_of_one_owner_share_a_group_that_the_owner_describes() -> None:
    server = Server()
    notes = {
        "scheduling.volcano.sh/group-min-member": "2",
        "volcano.sh/preemptable": "true",
        "volcano.sh/anything": "x",
        "example.com/other": "y",
    }
    server.put("ReplicaSet", "rs", "ns", "rs1", **workload_parts(2, notes))
    for name in ("a", "b"):
        pod = pod_parts(
            owner("ReplicaSet", "rs", "rs1"),
            requests={"cpu": "1", "nvidia.com/gpu": "1"},
            limits={"memory": "1Gi"},
            annotations={
                "scheduling.volcano.sh/queue-name": "team",
                "volcano.sh/preemptable": "false",
                "volcano.sh/network-topology-mode": "Soft",
                "volcano.sh/network-topology-highest-tier": "2",
                "volcano.sh/jdb-max-unavailable": "1",
            },
            labels={"volcano.sh/cooldown-time": "10m", "app": "a"},
        )
        server.put("Pod", name, "ns", f"u-{name}", **pod)
    settled(server)
    assert {group_of(server, "ns/a"), group_of(server, "ns/b")} == {"podgroup-rs1"}
    (group,) = groups(server).values()
    assert group["spec"] == {
        "minMember": 2,
        "minResources": {
            "cpu": "2",
            "requests.cpu": "2",
            "pods": "2",
            "count/pods": "2",
            "memory": "2Gi",
            "requests.memory": "2Gi",
            "limits.memory": "2Gi",
            "nvidia.com/gpu": "2",
            "requests.nvidia.com/gpu": "2",
        },
        "queue": "team",
        "networkTopology": {"mode": "soft", "highestTierAllowed": 2},
    }
    notes = {
        key: text for key, text in group["metadata"]["annotations"].items() if key.startswith("volcano.sh/")
    }
    assert notes == {
        "volcano.sh/preemptable": "false",
        "volcano.sh/anything": "x",
        "volcano.sh/jdb-max-unavailable": "1",
    }
    assert group["metadata"]["labels"] == {"volcano.sh/cooldown-time": "10m"}
    assert [it["kind"] for it in group["metadata"]["ownerReferences"]] == ["ReplicaSet"]


def test_owners_that_are_not_watched_are_asked_and_a_missing_one_says_nothing() -> None:
    server = Server()
    server.put(
        "K8sJob", "j", "ns", "j1", metadata={"annotations": {"scheduling.volcano.sh/group-min-member": "3"}}
    )
    server.put("Pod", "a", "ns", "u1", **pod_parts(owner("Job", "j", "j1")))
    server.put("DaemonSet", "of-another-name", "ns", "d1")
    server.put("Pod", "b", "ns", "u2", **pod_parts(owner("DaemonSet", "gone", "d1")))
    settled(server)
    assert groups(server)["ns/podgroup-j1"]["spec"]["minMember"] == 3
    assert groups(server)["ns/podgroup-d1"]["spec"]["minMember"] == 1


def test_owners_say_nothing_where_they_are_not_to() -> None:
    server = Server()
    notes = {"scheduling.volcano.sh/group-min-member": "2"}
    server.put("ReplicaSet", "rs", "ns", "rs1", **workload_parts(2, notes))
    server.put("Pod", "a", "ns", "u1", **pod_parts(owner("ReplicaSet", "rs", "rs1")))
    settled(server, rules=Rules(inherit=False))
    assert groups(server)["ns/podgroup-rs1"]["spec"]["minMember"] == 1


@pytest.mark.parametrize("tier", ["-1", "4294967296"])
def test_what_cannot_be_used_is_left_out_and_told_to_the_pod(tier: str) -> None:
    server = Server()
    notes = {"scheduling.volcano.sh/group-min-member": "many"}
    server.put("ReplicaSet", "rs", "ns", "rs1", **workload_parts(1, notes))
    pod = pod_parts(
        owner("ReplicaSet", "rs", "rs1"), annotations={"volcano.sh/network-topology-highest-tier": tier}
    )
    server.put("Pod", "a", "ns", "u1", **pod)
    process = settled(server)
    assert groups(server)["ns/podgroup-rs1"]["spec"]["minMember"] == 1
    (told,) = process.said
    assert told.target.name == "a"
    assert "group-min-member" in told.message
    assert "highest-tier" in told.message


def test_a_group_that_is_gone_is_made_again_for_its_live_pods() -> None:
    server = Server()
    server.put("Pod", "p", "ns", "u1", **pod_parts())
    settled(server)
    server.remove("PodGroup", "podgroup-u1", "ns")
    settled(server)
    assert list(groups(server)) == ["ns/podgroup-u1"]


def test_an_owner_that_wants_no_pods_loses_its_group_when_the_last_is_gone() -> None:
    server = Server()
    server.put("ReplicaSet", "rs", "ns", "rs1", **workload_parts(1))
    pod = pod_parts(owner("ReplicaSet", "rs", "rs1"), labels={"app": "a"})
    server.put("Pod", "a", "ns", "u1", **pod)
    settled(server)
    server.change("ReplicaSet", "rs", "ns", spec={"replicas": 0})
    settled(server)
    assert list(groups(server)) == ["ns/podgroup-rs1"]
    server.remove("Pod", "a", "ns")
    settled(server)
    assert not groups(server)


@pytest.mark.parametrize(("replicas", "pods"), [(1, 1), (1, 0), (0, 1)])
def test_a_late_zero_does_not_cost_the_new_pod_its_group(replicas: int, pods: int) -> None:
    """1 -> 0 -> 1, while the watch still tells of 0 and not yet of what came after."""

    async def course() -> Server:
        server = Server()
        ours = owner("ReplicaSet", "rs", "rs1")
        server.put("ReplicaSet", "rs", "ns", "rs1", **workload_parts(0))
        server.put("PodGroup", "podgroup-rs1", "ns", metadata={"ownerReferences": [ours]})
        process = Process(server)
        await process.start()
        server.change("ReplicaSet", "rs", "ns", spec={"replicas": replicas})
        for number in range(pods):
            parts = pod_parts(ours, labels={"app": "a"}, annotations={GROUP: "podgroup-rs1"})
            server.put("Pod", f"p{number}", "ns", f"u{number}", **parts)
        late = list(server.events)
        server.events.clear()
        await process.settle()
        assert ("delete", "PodGroup", "podgroup-rs1") not in server.writes
        server.events += late
        await process.settle()
        return server

    assert list(groups(asyncio.run(course()))) == ["ns/podgroup-rs1"]


def test_the_group_follows_the_newest_template_but_keeps_what_people_changed() -> None:
    server = Server()
    server.put("StatefulSet", "s", "ns", "s1", **workload_parts(2, updateRevision="r1"))
    ours = owner("StatefulSet", "s", "s1")
    server.put("Pod", "s-0", "ns", "u1", **pod_parts(ours, labels={"controller-revision-hash": "r1"}))
    settled(server)
    server.change("PodGroup", "podgroup-s1", "ns", spec={"queue": "moved", "minMember": 2})
    server.put("Pod", "s-1", "ns", "u2", **pod_parts(ours, labels={"controller-revision-hash": "r1"}))
    settled(server)
    spec = groups(server)["ns/podgroup-s1"]["spec"]
    assert (spec["queue"], spec["minMember"]) == ("moved", 2)
    server.change("StatefulSet", "s", "ns", status={"updateRevision": "r2"})
    old = pod_parts(ours, labels={"controller-revision-hash": "r1"}, requests={"cpu": "8"})
    new = pod_parts(ours, labels={"controller-revision-hash": "r2"}, requests={"cpu": "4"})
    server.put("Pod", "s-2", "ns", "u3", **old)
    server.put("Pod", "s-3", "ns", "u4", **new)
    settled(server)
    assert groups(server)["ns/podgroup-s1"]["spec"]["minResources"]["cpu"] == "4"


def test_a_new_pod_of_the_same_name_is_not_taken_for_the_old_one() -> None:
    server = Server()
    server.put("Pod", "p", "ns", "u1", **pod_parts())
    settled(server)
    server.remove("Pod", "p", "ns")
    server.put("Pod", "p", "ns", "u2", **pod_parts())
    settled(server)
    assert group_of(server, "ns/p") == "podgroup-u2"
    assert list(groups(server)) == ["ns/podgroup-u2"]


def test_nothing_is_written_when_nothing_changed() -> None:
    server = Server()
    server.put("Pod", "p", "ns", "u1", **pod_parts())
    settled(server)
    before = list(server.writes)
    settled(server)
    server.change("Pod", "p", "ns", status={"phase": "Running"})
    settled(server)
    assert server.writes == before


def test_a_group_that_is_deleted_as_fast_as_it_is_made_is_made_with_pauses() -> None:
    """Its owner is gone, and the garbage collector takes the group before the pod."""

    async def course() -> float:
        server = Server()
        server.put("Pod", "p", "ns", "u1", **pod_parts(owner("ReplicaSet", "gone", "r1")))
        process = Process(server, remake_after_s=0.1)
        await process.start()
        began = time.monotonic()
        work = asyncio.create_task(process.settle())
        while server.writes.count(("create", "PodGroup", "podgroup-r1")) < 3 and not work.done():
            await asyncio.sleep(0.001)
        took_s = time.monotonic() - began
        server.remove("Pod", "p", "ns")
        await work
        return took_s

    assert asyncio.run(course()) >= 0.2
