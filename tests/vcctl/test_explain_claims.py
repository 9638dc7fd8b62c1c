"""What explain says of a pod that has a node chosen and waits for its claims."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clusters import group, node, pod, queue
from tests.vcctl.evidence import NOW, Document
from volcano_py.cli.vcctl.explain.claims import awaited, tell_claims, told_of_members
from volcano_py.cli.vcctl.explain.groups import pod_story
from volcano_py.cli.vcctl.explain.story import Story
from volcano_py.cli.vcctl.live_config import Source
from volcano_py.cli.vcctl.snapshot import Snapshot, as_listed, fed, outlook
from volcano_py.crds.schedulerconfig import DEFAULT_CONFIG, load_scheduler_config
from volcano_py.scheduler.model.kube.times import format_time

FAST: Document = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": "disk.example.com",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def claim(name: str, chosen: str = "", volume: str = "") -> Document:
    notes = {"volume.kubernetes.io/selected-node": chosen} if chosen else {}
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "ml", "annotations": notes},
        "spec": {**asked, "storageClassName": "fast", "volumeName": volume},
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(name: str, claim: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "capacity": {"storage": "5Gi"},
            "claimRef": {"namespace": "ml", "name": claim},
        },
    }


def using(claim: str, *, name: str = "g-0", **more: Any) -> Document:
    mounted = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return pod(name, "g", volumes=mounted, **more)


def snapshot_of(*documents: Document) -> Snapshot:
    cluster = (node("n1"), node("n2"), queue("default"), group("g"), FAST, *documents)
    source, objects = (
        Source(load_scheduler_config(DEFAULT_CONFIG), "the test"),
        tuple(map(as_listed, cluster)),
    )
    return Snapshot(fed(source, objects), source, NOW, objects)


def of_pod(*documents: Document, events: dict[str, Document] | None = None) -> Story:
    snapshot = snapshot_of(*documents)
    story = pod_story(snapshot, outlook(snapshot.engine, NOW), "ml/g-0", "volcano-py")
    tell_claims(story, awaited(snapshot, "ml/g-0").get("ml/g-0", []), events or {})
    return story


def test_a_pod_whose_volume_is_being_made_names_who_makes_it_and_where() -> None:
    said = {"reason": "ProvisioningFailed", "message": "no space", "eventTime": format_time(NOW)}
    story = of_pod(claim("c", chosen="n2"), using("c"), events={"ml/c": said})
    assert story.verdict == "has node n2 chosen and waits for its claims to be bound"
    (why,) = story.reasons
    assert why["message"].startswith(
        "claim c (storage class fast, provisioner disk.example.com), whose volume is to be made for node n2, "
        "is not bound; its last event, "
    )
    assert why["message"].endswith(" ago: ProvisioningFailed: no space")
    assert (why["claim"], why["storageClass"], why["provisioner"], why["node"]) == (
        "ml/c",
        "fast",
        "disk.example.com",
        "n2",
    )
    assert story.changes == [
        "provisioner disk.example.com has to serve claim c; does it run? kubectl describe pvc c -n ml"
    ]


def test_a_claim_with_a_volume_kept_for_it_waits_for_the_volume_controller() -> None:
    story = of_pod(claim("c"), volume("v1", "c"), using("c"))
    assert story.verdict == "waits for its claims to be bound"
    assert [why["code"] for why in story.reasons] == ["VolumeClaims"]
    assert "claim c (storage class fast, volume v1) is not bound" in story.reasons[0]["message"]
    assert "the cluster's volume controller has to serve claim c" in story.changes[0]


@pytest.mark.parametrize(
    "documents",
    [
        pytest.param([claim("c"), using("c")], id="no-node-chosen-yet"),
        pytest.param([claim("c", "n1", "v1"), volume("v1", "c"), using("c")], id="bound"),
        pytest.param([claim("c", "n1"), using("c", on="n1")], id="pod-is-on-its-node"),
        pytest.param([claim("c", "n1"), pod("g-0", "g")], id="claim-of-others"),
    ],
)
def test_claims_that_nobody_waits_for_are_not_named(documents: list[Document]) -> None:
    story = of_pod(*documents)
    assert not story.reasons
    assert "claims" not in story.verdict


def test_a_gang_says_how_many_of_its_pods_wait_for_claims() -> None:
    pods = [using("c"), *(using(f"c{i}", name=f"g-{i}") for i in (1, 2))]
    snapshot = snapshot_of(claim("c", "n1"), claim("c1", "n2"), claim("c2"), *pods)
    assert told_of_members(snapshot, "ml/g") == [
        "2 pods wait for claims to be bound before the start: vcctl-py explain pod g-0 -n ml"
    ]
    assert told_of_members(snapshot_of(claim("c"), using("c")), "ml/g") == []
