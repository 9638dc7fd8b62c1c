from datetime import UTC, datetime
from typing import Any

import pytest

from volcano_py.scheduler.model.kube.objects import (
    CSINode,
    Node,
    ObjectError,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    ResourceQuota,
    StorageClass,
    decode,
)


def doc(kind: str = "Pod", version: str = "v1", **rest: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, **rest}


def problems(manifest: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ObjectError) as caught:
        decode(manifest)
    return {problem.field: problem.message for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1", "Secret"),
        ("apps/v1", "Pod"),
        ("v1", "StorageClass"),
        ("batch.volcano.sh/v1alpha1", "Job"),
        (1, []),
    ],
)
def test_kinds_of_others_are_none(version: Any, kind: Any) -> None:
    assert decode(doc(kind, version)) is None
    assert decode({}) is None


def test_identity_is_filled_in() -> None:
    pod, node = decode(doc()), decode(doc("Node"))
    assert pod is not None
    assert node is not None
    assert (pod.kind, pod.name, pod.namespace, pod.uid, pod.key) == (
        "Pod",
        "a",
        "default",
        "Pod/default/a",
        "default/a",
    )
    assert (node.kind, node.namespace, node.uid, node.key) == ("Node", "", "Node/a", "a")


def test_stated_identity_stays_and_the_manifest_is_not_changed() -> None:
    manifest = doc(status={"startTime": "2026-01-01T00:00:01Z"})
    manifest["metadata"] |= {"namespace": "b", "uid": "u-1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    before = {"metadata": dict(manifest["metadata"]), "status": dict(manifest["status"])}
    pod = decode(manifest)
    assert isinstance(pod, Pod)
    assert (pod.key, pod.uid, pod.metadata.creation_timestamp) == ("b/a", "u-1", 1767225600.0)
    assert pod.status.start_time == 1767225601.0
    assert {"metadata": manifest["metadata"], "status": manifest["status"]} == before


@pytest.mark.parametrize("metadata", [None, {}, {"name": ""}, {"name": None}, {"generateName": "a-"}, "a"])
def test_an_object_needs_a_name(metadata: Any) -> None:
    assert problems({**doc(), "metadata": metadata}) == {"metadata.name": "an object needs a name"}


def test_nulls_are_absent_values() -> None:
    manifest = doc(
        spec={"nodeSelector": None, "tolerations": None, "containers": [{"name": "c", "resources": None}]},
        status=None,
    )
    manifest["metadata"] |= {"labels": None, "creationTimestamp": None, "annotations": {"a": None, "b": "c"}}
    pod = decode(manifest)
    assert isinstance(pod, Pod)
    assert (dict(pod.metadata.labels), pod.metadata.annotations) == ({}, {"a": "", "b": "c"})
    assert pod.metadata.creation_timestamp == 0.0
    assert (dict(pod.spec.node_selector), pod.spec.tolerations) == ({}, ())
    assert (pod.spec.containers[0].name, pod.status.phase) == ("c", "Pending")


@pytest.mark.parametrize(
    ("where", "value", "field"),
    [
        ("labels", {"ok": "x", "bad": 1}, "metadata.labels.bad"),
        ("labels", {"a.b/c": True}, "metadata.labels[a.b/c]"),
        ("labels", {7: "x"}, "metadata.labels.7"),
        ("labels", ["x"], "metadata.labels"),
        ("annotations", {"volcano.sh/preemptable": False}, "metadata.annotations[volcano.sh/preemptable]"),
        ("name", 5, "metadata.name"),
        ("creationTimestamp", "yesterday", "metadata.creationTimestamp"),
        ("deletionTimestamp", 12, "metadata.deletionTimestamp"),
    ],
)
def test_bad_metadata_names_its_field(where: str, value: Any, field: str) -> None:
    manifest = doc()
    manifest["metadata"][where] = value
    assert list(problems(manifest)) == [field]


def test_every_bad_label_is_named() -> None:
    manifest = doc()
    manifest["metadata"]["labels"] = {"a": 1, "b": "fine", "c": [2]}
    assert list(problems(manifest)) == ["metadata.labels.a", "metadata.labels.c"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"containers": "x"}, "spec.containers"),
        ({"containers": [{"name": "a"}, {"name": 1}]}, "spec.containers[1].name"),
        ({"containers": [{"resources": {"requests": ["cpu"]}}]}, "spec.containers[0].resources.requests"),
        ({"priority": "high"}, "spec.priority"),
        ({"priority": 2**31}, "spec.priority"),
        ({3: "x", "containers": []}, "spec.3"),
        (
            {"containers": [{"resources": {"requests": {1: "2", "cpu": 3}}}]},
            "spec.containers[0].resources.requests.1",
        ),
        ({"nodeSelector": {"zone": 3}}, "spec.nodeSelector.zone"),
        ({"affinity": {"nodeAffinity": 3}}, "spec.affinity.nodeAffinity"),
    ],
)
def test_bad_spec_names_its_field(spec: dict[str, Any], field: str) -> None:
    assert list(problems(doc(spec=spec))) == [field]


def test_a_spec_that_is_no_map_is_refused() -> None:
    assert problems(doc(spec=5)) == {"spec": "Expected `object`, got `int`"}


def test_bottomless_nesting_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"x": deep}
    assert problems(doc(spec={"priority": "high", "unknown": deep})) == {"": "nested too deeply"}


def test_yaml_times_are_read() -> None:
    manifest = doc()
    manifest["metadata"]["creationTimestamp"] = datetime(2026, 1, 1, tzinfo=UTC)
    pod = decode(manifest)
    assert pod is not None
    assert pod.metadata.creation_timestamp == 1767225600.0


def test_a_whole_pod() -> None:
    pod = decode(
        doc(
            spec={
                "schedulerName": "volcano",
                "priority": 7,
                "schedulingGates": [{"name": "wait"}],
                "containers": [
                    {"image": "i", "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "1.2.3.4"}]}
                ],
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
                "volumes": [
                    {"name": "v", "persistentVolumeClaim": {"claimName": "c", "readOnly": True}},
                    {"name": "h"},
                ],
                "someNewField": {"x": 1},
            },
            status={
                "phase": "Running",
                "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 3}}}],
            },
        )
    )
    assert isinstance(pod, Pod)
    assert (pod.spec.scheduler_name, pod.spec.priority, pod.spec.scheduling_gates[0].name) == (
        "volcano",
        7,
        "wait",
    )
    assert (pod.spec.containers[0].ports[0].host_ip, pod.spec.containers[0].ports[0].host_port) == (
        "1.2.3.4",
        8080,
    )
    claim = pod.spec.volumes[0].persistent_volume_claim
    assert claim is not None
    assert (claim.claim_name, claim.read_only) == ("c", True)
    assert pod.status.container_statuses[0].state.terminated is not None
    assert pod.status.container_statuses[0].state.terminated.exit_code == 3


def test_the_other_kinds() -> None:
    node = decode(doc("Node", status={"images": [{"names": ["i:1"], "sizeBytes": 5}]}))
    assert isinstance(node, Node)
    assert node.status.images[0].size_bytes == 5
    csi = decode(
        doc("CSINode", "storage.k8s.io/v1", spec={"drivers": [{"name": "d", "allocatable": {"count": 3}}]})
    )
    assert isinstance(csi, CSINode)
    assert csi.spec.drivers[0].allocatable is not None
    assert csi.spec.drivers[0].allocatable.count == 3
    volume = decode(
        doc("PersistentVolume", spec={"csi": {"driver": "d", "volumeHandle": "h"}, "claimRef": {"name": "c"}})
    )
    assert isinstance(volume, PersistentVolume)
    assert volume.spec.csi is not None
    assert (volume.spec.csi.volume_handle, volume.namespaced) == ("h", False)
    claim = decode(
        doc("PersistentVolumeClaim", spec={"accessModes": ["ReadWriteOncePod"], "volumeName": "v"})
    )
    assert isinstance(claim, PersistentVolumeClaim)
    assert (claim.spec.access_modes, claim.spec.volume_name, claim.key) == (
        ("ReadWriteOncePod",),
        "v",
        "default/a",
    )
    kind = decode(doc("StorageClass", "storage.k8s.io/v1", volumeBindingMode="WaitForFirstConsumer"))
    assert isinstance(kind, StorageClass)
    assert kind.volume_binding_mode == "WaitForFirstConsumer"
    priority = decode(doc("PriorityClass", "scheduling.k8s.io/v1", value=9, globalDefault=True))
    assert isinstance(priority, PriorityClass)
    assert (priority.value, priority.global_default) == (9, True)
    quota = decode(doc("ResourceQuota", spec={"hard": {"requests.cpu": "4"}}))
    assert isinstance(quota, ResourceQuota)
    assert quota.spec.hard == {"requests.cpu": "4"}
    budget = decode(doc("PodDisruptionBudget", "policy/v1", status={"disruptionsAllowed": 2}))
    assert isinstance(budget, PodDisruptionBudget)
    assert budget.status.disruptions_allowed == 2
