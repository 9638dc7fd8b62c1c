"""Other editions of the CRDs, changed under a running scheduler; and two schedulers side by side."""

from __future__ import annotations

import pytest

from tests.e2e import objects
from tests.e2e.cluster import Cluster
from tests.e2e.definitions import (
    PODGROUPS,
    QUEUES,
    apply,
    replaced,
    shipped,
    with_status,
    without_columns,
    without_field,
)
from tests.e2e.live import Document


def older_editions() -> list[Document]:
    """CRDs of a release before: without columns, and without fields that came later."""
    groups = without_columns(without_field(shipped(PODGROUPS), "spec", "minTaskMember"))
    queues = without_columns(without_field(shipped(QUEUES), "spec", "max"))
    return [groups, queues]


def phase(cluster: Cluster, name: str) -> str:
    found = cluster.get("PodGroup", f"{cluster.space}/{name}") or {}
    return str(found.get("status", {}).get("phase", ""))


def test_crds_are_upgraded_under_a_running_scheduler(cluster: Cluster) -> None:
    cluster.default_queue()
    cluster.nodes(2, cpu="4")
    with replaced(cluster, *older_editions()):
        scheduler = cluster.scheduler()
        cluster.create(*objects.gang(cluster.space, "before", 3))
        cluster.wait_bound(3, "before")
        cluster.create(*objects.gang(cluster.space, "waiting", 6))
        cluster.until_says("PodGroup", f"{cluster.space}/waiting", "Unschedulable", "Insufficient cpu")
        cluster.until(lambda: phase(cluster, "before") == "Running", what="all told that is to be told")
        before = objects_of(cluster)
        apply(cluster, shipped(PODGROUPS), shipped(QUEUES))
        assert objects_of(cluster) == before, "nothing is lost"
        cluster.create(objects.queue("capped", max={"cpu": "1"}))
        # The server's watches go by the old edition, which knows no max, until it ends them.
        cluster.until(
            lambda: scheduler.figures()["volcano_py_feed_relists_total Queue"],
            what="queues are listed by the new edition",
        )
        for number in range(2):
            cluster.create(*objects.gang(cluster.space, f"after{number}", 1, queue="capped"))
        cluster.wait_bound(1, "after")
        cluster.create(objects.node("n2", cpu="4"))
        cluster.wait_bound(6, "waiting")
        cluster.until(lambda: phase(cluster, "waiting") == "Running", what="the phase told")
        assert scheduler.alive()
        assert len(cluster.bound("after")) == 1
    cluster.assert_sound()


def objects_of(cluster: Cluster) -> dict[str, Document]:
    """Spec, phase and identity of the PodGroups and queues; counts go on by themselves."""
    return {
        f"{kind} {key}": {
            "uid": item["metadata"]["uid"],
            "spec": item["spec"],
            "phase": item.get("status", {}).get("phase"),
        }
        for kind in ("PodGroup", "Queue")
        for key, item in cluster.list(kind).items()
    }


@pytest.mark.parametrize("apart", [False, True])
def test_a_podgroup_edition_with_its_status_elsewhere(cluster: Cluster, *, apart: bool) -> None:
    """Volcano's edition has the status in the object, others apart; ours may change under the scheduler."""
    cluster.default_queue()
    cluster.nodes(1, cpu="4")
    with replaced(cluster, with_status(shipped(PODGROUPS), apart=apart)):
        cluster.scheduler()
        cluster.create(*objects.gang(cluster.space, "a", 2))
        cluster.wait_bound(2, "a")
        cluster.until(lambda: phase(cluster, "a") == "Running", what="the phase told")
        apply(cluster, with_status(shipped(PODGROUPS), apart=not apart))
        cluster.create(*objects.gang(cluster.space, "b", 2))
        cluster.wait_bound(2, "b")
        cluster.until(lambda: phase(cluster, "b") == "Running", what="the phase told there")
        assert phase(cluster, "a") == "Running"


def test_two_schedulers_serve_a_name_each(cluster: Cluster) -> None:
    cluster.nodes(2, cpu="4")
    cluster.create(objects.queue("left"), objects.queue("right"))
    for name in ("left", "right"):
        lock = ["--lock-object-name", f"volcano-py-{name}"]
        cluster.scheduler("--scheduler-name", name, *lock, instance=name)
    for name in ("left", "right"):
        cluster.create(*objects.gang(cluster.space, name, 2, queue=name, scheduler=name))
    cluster.create(*objects.gang(cluster.space, "nobody", 1, queue="left", scheduler="nobody"))
    cluster.wait_bound(4)
    assert set(cluster.bound()) == {"left-0", "left-1", "right-0", "right-1"}
    holders = {name: cluster.get("Lease", f"volcano-system/volcano-py-{name}") for name in ("left", "right")}
    held = [lease["spec"]["holderIdentity"] for lease in holders.values() if lease is not None]
    assert len(set(held)) == 2
    cluster.assert_sound()


def test_two_schedulers_share_nodes_and_give_no_room_twice(cluster: Cluster) -> None:
    """Each sees what the other has bound; what both order at the same time is for the kubelet to refuse."""
    cluster.nodes(4, cpu="4")
    cluster.create(objects.queue("left"), objects.queue("right"))
    for name in ("left", "right"):
        lock = ["--lock-object-name", f"volcano-py-{name}"]
        cluster.scheduler("--scheduler-name", name, *lock, instance=name)
        cluster.create(*objects.gang(cluster.space, name, 6, queue=name, scheduler=name))
        cluster.wait_bound(6, name)
    cluster.create(*objects.gang(cluster.space, "left-more", 6, queue="left", scheduler="left"))
    key = f"{cluster.space}/left-more"
    cluster.until(lambda: cluster.condition("PodGroup", key, "Unschedulable"), what="no room for more")
    assert cluster.bound("left-more") == {}
    cluster.assert_sound()
