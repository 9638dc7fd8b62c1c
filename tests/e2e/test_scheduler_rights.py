"""The scheduler as the service account of deploy/rbac, on the real server: the rights suffice, and no more.

The audit log of the server says what was asked for. Everything granted must have been used with success, and
everything asked for granted: so a verb that is taken out of the files is asked for in vain and fails the
test, and one that nothing needs fails it as well. The count of a repeated event, which a process writes after
five minutes, is written here by the same code with the same token.
"""

from __future__ import annotations

import pytest

from tests.e2e import objects
from tests.e2e.cluster import Cluster
from tests.e2e.components import Component
from tests.e2e.definitions import PODGROUPS, replaced, shipped, with_status
from tests.e2e.live import Document
from tests.e2e.rights import Account, MissingRight, Right, granted, live_without, repeats_an_event
from volcano_py.client.api import Api
from volcano_py.scheduler.cluster.orders import QueueOrder
from volcano_py.scheduler.cluster.writer import Writer

NAME = "volcano-py-scheduler"
FILES = ("scheduler.yaml", "scheduler-delete.yaml")
BAD_CARDS = {"hami.io/node-nvidia-register": "{nonsense"}
AMOUNT = {"storage": "1Gi"}


@pytest.mark.parametrize("server", ["real"], indirect=True)
def test_the_scheduler_needs_what_it_is_granted_and_nothing_more(cluster: Cluster) -> None:
    account = Account(cluster, NAME, *FILES)
    live_a_life(cluster, account)
    account.assert_all_is_granted_and_used()


@pytest.mark.parametrize("server", ["real"], indirect=True)
def test_its_rights_suffice_where_somebody_else_wrote_a_queues_first_status(cluster: Cluster) -> None:
    account = Account(cluster, NAME, *FILES)
    cluster.create(objects.queue("q"))
    queue = cluster.patch("Queue", "q", {"status": {"state": "Open"}}, sub="status")
    late = QueueOrder("q", queue["metadata"]["uid"], {"allocated": {"cpu": "1"}}, blank_at="1")

    async def write() -> None:
        async with await Api.connect(str(account.kubeconfig)) as api:
            writer = Writer(api)
            writer.submit([late])
            assert await writer.drain(60.0)
            assert writer.status_stats.last_refusal == ""
            await writer.close()

    cluster.call(write())
    found = cluster.get("Queue", "q")
    assert found is not None
    assert found["status"] == {"state": "Open", "allocated": {"cpu": "1"}}


@pytest.mark.long
@pytest.mark.parametrize("server", ["real"], indirect=True)
@pytest.mark.parametrize("right", sorted(granted(*FILES)), ids=" ".join)
def test_without_one_of_its_rights_the_scheduler_asks_for_it_in_vain(cluster: Cluster, right: Right) -> None:
    account = Account(cluster, NAME, *FILES)
    with pytest.raises(MissingRight):
        live_without(cluster, account, right, live_a_life)


def live_a_life(cluster: Cluster, account: Account) -> None:
    """Everything that the scheduler ever asks a server for."""
    cluster.kubelets()
    cluster.default_queue()
    cluster.create(objects.priority("urgent", 1000), objects.node("n0", cpu="4", annotations=BAD_CARDS))
    component = start(cluster, account, "--eviction-notice", "1s")
    starts_and_waits(cluster)
    binds_volumes(cluster)
    takes_the_place_of(cluster, "old", "first")
    assert component.stop() == 0
    component = start(cluster, account, "--evict-by-delete")
    takes_the_place_of(cluster, "first", "second")
    assert component.stop() == 0
    cluster.call(repeats_an_event(account))
    writes_statuses_apart(cluster, account)


def start(cluster: Cluster, account: Account, *arguments: str) -> Component:
    return cluster.scheduler(*arguments, instance=arguments[0], kubeconfig=account.kubeconfig)


def starts_and_waits(cluster: Cluster) -> None:
    """A gang starts, another is told why it waits, objects with faults are told so."""
    cluster.create(*objects.gang(cluster.space, "old", 2))
    cluster.wait_bound(2, "old")
    group, pod = objects.gang(cluster.space, "wide", 1, cpu="9")
    group["metadata"]["annotations"] = {"volcano-py.io/boost": "much"}
    cluster.create(group, pod)
    key = f"{cluster.space}/wide"
    for told in (("PodGroup", key), ("Node", "n0")):
        cluster.until(lambda: cluster.condition(*told, "volcano-py.io/Valid"), what=f"{told}")  # noqa: B023 - at once
    cluster.until(lambda: cluster.condition("Pod", f"{key}-0", "PodScheduled"), what="the pod told")
    cluster.until(lambda: (cluster.get("Queue", "default") or {}).get("status"), what="the queue's figures")
    cluster.until(lambda: cluster.events("FailedScheduling"), what="an event")


def takes_the_place_of(cluster: Cluster, old: str, new: str) -> None:
    """More important work has *old* evicted."""
    value = 2000 if old == "first" else 1000
    cluster.create(objects.priority(f"{new}-class", value))
    group, *pods = objects.gang(cluster.space, new, 2, cpu="2", priorityClassName=f"{new}-class")
    group["spec"]["priorityClassName"] = f"{new}-class"
    cluster.create(group, *pods)
    cluster.wait_bound(2, new)
    assert cluster.bound(old) == {}


def binds_volumes(cluster: Cluster) -> None:
    """One claim gets a volume that is there, one has it made; the volume controller is played here."""
    cluster.create(
        storage_class("there", "kubernetes.io/no-provisioner"), storage_class("made", "example.com/x")
    )
    cluster.create(volume("there"), claim(cluster.space, "there"), claim(cluster.space, "made"))
    cluster.patch("PersistentVolume", "there", {"status": {"phase": "Available"}}, sub="status")
    try:
        cluster.create(*using(cluster.space, "there"), *using(cluster.space, "made"))
        cluster.until(lambda: is_kept(cluster, "there"), what="volume kept")
        cluster.until(lambda: is_being_made(cluster, "made"), what="node chosen")
        for name in ("there", "made"):
            key = f"{cluster.space}/{name}"
            cluster.patch("PersistentVolumeClaim", key, {"spec": {"volumeName": name}})
            cluster.patch("PersistentVolumeClaim", key, {"status": {"phase": "Bound"}}, sub="status")
        cluster.wait_bound(2, "uses-")
    finally:
        for kind, name in (
            ("PersistentVolume", "there"),
            ("StorageClass", "there"),
            ("StorageClass", "made"),
        ):
            cluster.patch(kind, name, {"metadata": {"finalizers": None}})
            cluster.delete(kind, name)
    for name in ("there", "made"):
        cluster.delete("Pod", f"{cluster.space}/uses-{name}-0", grace_s=0)


def is_kept(cluster: Cluster, name: str) -> bool:
    return "claimRef" in (cluster.get("PersistentVolume", name) or {})["spec"]


def is_being_made(cluster: Cluster, name: str) -> bool:
    found = cluster.get("PersistentVolumeClaim", f"{cluster.space}/{name}") or {}
    return "volume.kubernetes.io/selected-node" in found["metadata"].get("annotations", {})


def storage_class(name: str, provisioner: str) -> Document:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume(name: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": name,
            "capacity": AMOUNT,
            "hostPath": {"path": "/nowhere"},
        },
    }


def claim(space: str, name: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": space},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": name,
            "resources": {"requests": AMOUNT},
        },
    }


def using(space: str, name: str) -> list[Document]:
    """A gang of one whose pod mounts the claim *name*."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    return objects.gang(space, f"uses-{name}", 1, volumes=volumes)


def writes_statuses_apart(cluster: Cluster, account: Account) -> None:
    """An edition of the CRD that has a status endpoint."""
    with replaced(cluster, with_status(shipped(PODGROUPS), apart=True)):
        component = start(cluster, account, "--leader-elect")
        cluster.create(*objects.gang(cluster.space, "apart", 1, cpu="9"))
        key = f"{cluster.space}/apart"
        cluster.until(lambda: cluster.condition("PodGroup", key, "Unschedulable"), what="the group told")
        assert component.stop() == 0
