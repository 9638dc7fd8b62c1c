"""Claims and pretend volumes on both servers, with the scheduler that chooses nodes for them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.e2e import objects
from tests.e2e.cluster import Cluster
from tests.e2e.live import Document
from tests.vcctl.person import Person
from volcano_py.simulator.volumes.keeping import keep_volumes
from volcano_py.simulator.volumes.plan import PROVISIONER

CLAIM, VOLUME, CLASS = "PersistentVolumeClaim", "PersistentVolume", "StorageClass"
SELECTED = "volume.kubernetes.io/selected-node"
ENOUGH_S = 60.0


@pytest.fixture
def tidy(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster that loses at the end what the cases here make."""
    yield cluster
    cluster.end_background()
    for kind in (CLAIM, VOLUME, CLASS):
        for key in cluster.list(kind):
            remove(cluster, kind, key)


@pytest.fixture
def storage(tidy: Cluster) -> Cluster:
    """A cluster whose volumes are kept."""
    tidy.background(keep_volumes(tidy.api))
    return tidy


def remove(cluster: Cluster, kind: str, key: str) -> None:
    """Delete the object, and be the controllers that allow it on a real server."""
    cluster.delete(kind, key)
    if cluster.get(kind, key) is not None:
        cluster.patch(kind, key, {"metadata": {"finalizers": None}})
    cluster.until_gone(kind, key)


def storage_class(name: str, *, provisioner: str = PROVISIONER, waits: bool = True) -> Document:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": CLASS,
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
    }


def claim(cluster: Cluster, name: str, kind: str, *, node: str = "", **spec: Any) -> Document:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": CLAIM,
        "metadata": {
            "name": name,
            "namespace": cluster.space,
            "annotations": {SELECTED: node} if node else {},
        },
        "spec": {**asked, "storageClassName": kind, **spec},
    }


def volume(name: str, kind: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": VOLUME,
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": kind,
            "capacity": {"storage": "5Gi"},
            "hostPath": {"path": "/nowhere"},
        },
    }


def until_phase(cluster: Cluster, kind: str, key: str, phase: str) -> Document:
    def look() -> Document | None:
        found = cluster.get(kind, key)
        return found if found and found.get("status", {}).get("phase") == phase else None

    return cluster.until(look, within_s=ENOUGH_S, what=f"{kind} {key} {phase}")


def until_bound(cluster: Cluster, name: str) -> Document:
    return until_phase(cluster, CLAIM, f"{cluster.space}/{name}", "Bound")


def hosts_of(volume: Document) -> list[str]:
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    (wish,) = term["matchExpressions"]
    assert (wish["key"], wish["operator"]) == ("kubernetes.io/hostname", "In")
    return list(wish["values"])


def using(cluster: Cluster, member: str, group: str) -> Document:
    """A pod that mounts the claim of its name."""
    mounted = [{"name": "data", "persistentVolumeClaim": {"claimName": member}}]
    return objects.pod(cluster.space, member, group=group, cpu="6", volumes=mounted)


def test_a_gang_with_a_claim_each_runs_where_its_volumes_are_made(storage: Cluster) -> None:
    cluster, space, members = storage, storage.space, ("w-0", "w-1")
    cluster.create(storage_class("pretend"))
    cluster.nodes(3)
    cluster.default_queue()
    cluster.kubelets()
    cluster.scheduler()
    cluster.create(*(claim(cluster, one, "pretend") for one in members))
    cluster.create(objects.group(space, "train", 2), *(using(cluster, one, "train") for one in members))
    for one in members:
        until_phase(cluster, "Pod", f"{space}/{one}", "Running")

    at = cluster.bound()
    assert at["w-0"] != at["w-1"], "6 of 8 CPUs each"
    claims = {one: until_bound(cluster, one) for one in members}
    names = {one: claims[one]["spec"]["volumeName"] for one in members}
    volumes = {one: until_phase(cluster, VOLUME, names[one], "Bound") for one in members}
    assert {one: hosts_of(volumes[one]) for one in members} == {one: [at[one]] for one in members}
    assert all(found["status"]["capacity"] == {"storage": "2Gi"} for found in claims.values())

    cluster.background(keep_volumes(cluster.api))  # one that starts anew
    cluster.create(storage_class("now", waits=False), claim(cluster, "later", "now"))
    until_bound(cluster, "later")
    versions = {one: until_bound(cluster, one)["metadata"]["resourceVersion"] for one in members}
    assert versions == {one: claims[one]["metadata"]["resourceVersion"] for one in members}

    for one in members:
        cluster.delete("Pod", f"{space}/{one}", grace_s=0)
        remove(cluster, CLAIM, f"{space}/{one}")
        if cluster.server.kind == "real":  # which waits for a controller that takes its finalizer away
            cluster.until(partial(_is_leaving, cluster, names[one]), what="its deletion")
            remove(cluster, VOLUME, names[one])
        cluster.until_gone(VOLUME, names[one])


def _is_leaving(cluster: Cluster, name: str) -> bool:
    found = cluster.get(VOLUME, name)
    return found is None or "deletionTimestamp" in found["metadata"]


def test_volumes_that_are_there_are_bound_and_the_claims_of_others_left_alone(storage: Cluster) -> None:
    cluster = storage
    cluster.create(storage_class("theirs", provisioner="ebs.csi.aws.com", waits=False))
    odd = volume("odd", "manual")
    odd["spec"]["claimRef"] = {"uid": "nobody's"}
    cluster.create(odd, volume("named", "manual"), volume("free", "manual"))
    until_phase(cluster, VOLUME, "odd", "Released")
    cluster.create(
        claim(cluster, "foreign", "theirs"),
        claim(cluster, "naming", "manual", volumeName="named"),
        claim(cluster, "any", "manual"),
    )
    assert until_bound(cluster, "naming")["spec"]["volumeName"] == "named"
    assert until_bound(cluster, "any")["spec"]["volumeName"] == "free"
    foreign = cluster.get(CLAIM, f"{cluster.space}/foreign") or {}
    assert foreign["status"]["phase"] == "Pending"
    (event,) = cluster.until(lambda: cluster.events("ExternalProvisioning"), what="a word on the claim")
    assert event["involvedObject"]["name"] == "foreign"
    assert "waits for a volume from ebs.csi.aws.com" in event["message"]
    assert "volume.kubernetes.io/storage-provisioner" not in foreign["metadata"].get("annotations", {})
    remove(cluster, CLAIM, f"{cluster.space}/any")
    until_phase(cluster, VOLUME, "free", "Released")


def test_kubelets_of_their_own_make_volumes_when_asked(tidy: Cluster) -> None:
    cluster = tidy
    kubelets = cluster.component("kubelets", "--nodes", "1", "--volumes")
    cluster.create(claim(cluster, "other", "missing"))  # a volume controller says what becomes of it
    cluster.create(storage_class("now", waits=False), claim(cluster, "c", "now"))
    until_bound(cluster, "c")
    assert not cluster.events("ProvisioningFailed")
    assert kubelets.stop() == 0


def test_a_node_that_is_gone_is_chosen_anew(storage: Cluster) -> None:
    cluster = storage
    cluster.create(storage_class("pretend"), claim(cluster, "c", "pretend", node="gone"))

    def is_free() -> bool:
        found = cluster.get(CLAIM, f"{cluster.space}/c") or {}
        return SELECTED not in found["metadata"]["annotations"]

    cluster.until(is_free, within_s=ENOUGH_S, what="the wish taken back")
    (name,) = cluster.nodes(1)
    cluster.patch(CLAIM, f"{cluster.space}/c", {"metadata": {"annotations": {SELECTED: name}}})
    bound = until_bound(cluster, "c")
    assert hosts_of(cluster.get(VOLUME, bound["spec"]["volumeName"]) or {}) == [name]


def test_a_pod_whose_provisioner_nobody_plays_is_told_so_until_its_claim_is_bound(storage: Cluster) -> None:
    cluster, space, key = storage, storage.space, f"{storage.space}/w-0"
    served_by = "w-0 (storage class theirs, provisioner disk.example.com)"
    cluster.create(storage_class("theirs", provisioner="disk.example.com"), claim(cluster, "w-0", "theirs"))
    (node,) = cluster.nodes(1)
    cluster.default_queue()
    cluster.scheduler()
    cluster.create(objects.group(space, "train", 1), using(cluster, "w-0", "train"))
    condition = cluster.until_says("Pod", key, "PodScheduled", f"bound for node {node}: {served_by}")
    assert (condition["status"], condition["reason"]) == ("False", "VolumeClaims")
    cluster.until(lambda: "w-0" in _told_in_events(cluster, "FailedScheduling"), what="an event")
    cluster.until(lambda: cluster.events("ExternalProvisioning"), what="a word on the claim")

    told = Person(cluster).data("explain", "pod", "w-0", "-n", space)
    assert told["verdict"] == f"has node {node} chosen and waits for its claims to be bound"
    (why,) = told["reasons"]
    assert f"claim {served_by}, whose volume is to be made for node {node}, is not bound" in why["message"]
    assert "ExternalProvisioning: waits for a volume from disk.example.com" in why["message"]
    assert any(condition["message"] in note for note in told["notes"])

    made = volume("made", "theirs")
    made["spec"]["claimRef"] = {"namespace": space, "name": "w-0"}
    cluster.create(made)
    cluster.wait_bound(1, "w-0")
    assert (cluster.condition("Pod", key, "PodScheduled") or {})["status"] == "True"


def _told_in_events(cluster: Cluster, reason: str) -> str:
    return " ".join(str(event.get("message", "")) for event in cluster.events(reason))
