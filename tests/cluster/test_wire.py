"""Lists and events as sent, against the careful reader: the same objects, and none stops the others."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano_py.client.resources import RESOURCES
from volcano_py.crds.podgroup import PodGroup
from volcano_py.scheduler.cluster.shared import Shared
from volcano_py.scheduler.cluster.wire import Event, Garbage, Page, Reader
from volcano_py.scheduler.model.kube.objects import Node, Pod, decode

CONTAINER = {
    "name": "main",
    "image": "train:1",
    "env": [{"name": "INDEX", "value": "3"}],
    "resources": {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": 1}},
    "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1"}],
    "volumeMounts": [{"name": "kube-api-access-abcde", "mountPath": "/var/run"}],
}


def pod_doc(name: str = "p", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "a",
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "creationTimestamp": "2026-03-01T10:00:00Z",
            "labels": {"app": "train"},
            "annotations": {"scheduling.k8s.io/group-name": "g"},
            "ownerReferences": [{"kind": "Job", "name": "j", "uid": "u", "controller": True}],
            "managedFields": [{"manager": "x", "fieldsV1": {"f:spec": {}}}],
        },
        "spec": {
            "containers": [CONTAINER],
            "initContainers": [{"name": "init", "restartPolicy": "Always"}],
            "nodeSelector": {"pool": "a"},
            "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 300}],
            "priority": 5,
            "schedulerName": "volcano-py",
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
                {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["RWO"]}}}},
            ],
            **spec,
        },
        "status": {
            "phase": "Running",
            "startTime": "2026-03-01T10:00:05.5+01:00",
            "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None}],
            "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 3}}}],
        },
    }  # fmt: skip


def node_doc(name: str = "n") -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "8",
            "creationTimestamp": "2026-03-01T10:00:00Z",
            "labels": {"zone": "z"},
        },
        "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": None}]},
        "status": {
            "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"},
            "capacity": {"cpu": "8"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "images": [{"names": ["a:1", "a@sha256:1"], "sizeBytes": 5}],
        },
    }


def page(kind: str, *docs: Any, **meta: str) -> Page:
    body = {"kind": f"{kind}List", "metadata": {"resourceVersion": "9", **meta}, "items": list(docs)}
    return Reader(RESOURCES[kind]).page(json.dumps(body).encode())


def event(kind: str, what: str, doc: Any) -> Event:
    return Reader(RESOURCES[kind]).event(json.dumps({"type": what, "object": doc}).encode())


def careful(kind: str, doc: dict[str, Any]) -> Any:
    return decode({**doc, "apiVersion": RESOURCES[kind].api_version, "kind": kind})


@pytest.mark.parametrize(
    ("kind", "doc"),
    [
        ("Pod", pod_doc()),
        ("Pod", pod_doc(nodeName="n1")),
        ("Pod", {"metadata": {"name": "bare", "namespace": "a", "uid": "u"}}),
        ("Node", node_doc()),
        ("Node", {"metadata": {"name": "bare", "uid": "u"}}),
    ],
    ids=["pod", "placed pod", "bare pod", "node", "bare node"],
)
def test_the_fast_way_reads_what_the_careful_way_reads(kind: str, doc: dict[str, Any]) -> None:
    wanted = careful(kind, doc)
    (seen,) = page(kind, doc).items
    assert seen.item == wanted
    assert event(kind, "MODIFIED", doc).seen == seen
    meta = doc["metadata"]
    assert (seen.key, seen.uid, seen.version) == (wanted.key, meta["uid"], meta.get("resourceVersion", ""))


def test_what_equal_pods_ask_is_held_once_but_not_where_they_stand() -> None:
    docs = [pod_doc(f"p{at}", nodeName=node) for at, node in enumerate(["n1", "n2", "n1"])]
    for at, doc in enumerate(docs):
        doc["spec"]["volumes"].append({"name": f"kube-api-access-{at}", "projected": {}})
        doc["status"]["startTime"] = f"2026-03-01T10:00:0{at}Z"
    pods = [seen.item for seen in page("Pod", *docs).items]
    assert [pod.spec.node_name for pod in pods] == ["n1", "n2", "n1"]
    assert [pod.status.start_time % 60 for pod in pods] == [0.0, 1.0, 2.0]
    assert pods[0].spec.containers is pods[1].spec.containers
    assert pods[0].status.conditions is pods[2].status.conditions
    assert pods[0].metadata.labels is pods[1].metadata.labels
    assert [volume.name for volume in pods[0].spec.volumes] == ["data", "own"]


def test_waiting_pods_of_a_job_share_their_whole_spec() -> None:
    first, second = (seen.item for seen in page("Pod", pod_doc("a"), pod_doc("b")).items)
    assert first.spec is second.spec


def test_what_is_held_once_is_bounded() -> None:
    shared = Shared[tuple[int, ...]](limit=3)
    assert [shared((number,)) for number in range(10)] == [(number,) for number in range(10)]
    assert len(shared) <= 3
    kept = shared((9,))
    assert shared((9,)) is kept


def test_a_page_says_where_the_list_stands_and_goes_on() -> None:
    read = page("Pod", **{"continue": "token"})
    assert (read.items, read.version, read.more) == ([], "9", "token")
    assert page("Node").more == ""


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        ({"labels": {"a": 5}}, "metadata.labels.a"),
        ({"creationTimestamp": "yesterday"}, "metadata.creationTimestamp"),
        ({"annotations": {"a": "\ud800"}}, "no character"),
        ({"deletionGracePeriodSeconds": 2**70}, "deletionGracePeriodSeconds"),
    ],
    ids=["label", "time", "half a character", "number"],
)
def test_one_bad_pod_has_problems_and_the_rest_of_the_page_is_read(spoil: dict[str, Any], field: str) -> None:
    bad = pod_doc("bad")
    bad["metadata"].update(spoil)
    first, second, third = page("Pod", pod_doc("a"), bad, pod_doc("b")).items
    assert first.item == careful("Pod", pod_doc("a"))
    assert third.item == careful("Pod", pod_doc("b"))
    assert (second.key, second.uid, second.version) == ("a/bad", "uid-bad", "7")
    if field == "no character":  # kept as it is: the state says what is wrong with it
        assert second.item is not None or "no character" in str(second.problems[0])
    else:
        assert second.item is None
        assert field in str(second.problems[0])
    assert event("Pod", "MODIFIED", bad).seen == second


def test_nulls_are_as_if_absent() -> None:
    doc = pod_doc(tolerations=None, affinity=None)
    doc["metadata"]["labels"] = None
    (seen,) = page("Pod", doc).items
    assert seen.item.spec.tolerations == ()
    assert seen.item.metadata.labels == {}


def test_pod_groups_are_models_of_their_kind_without_the_ledger_of_writers() -> None:
    doc = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": "g",
            "namespace": "a",
            "uid": "u",
            "resourceVersion": "3",
            "managedFields": [{}],
        },
        "spec": {"minMember": 2},
    }
    bad = {**doc, "metadata": {"name": "bad", "namespace": "a"}, "spec": {"minMember": -1}}
    good, wrong = page("PodGroup", doc, bad).items
    assert isinstance(good.item, PodGroup)
    assert good.item.spec.min_member == 2
    assert good.item.metadata.managed_fields == []
    assert wrong.item is None
    assert wrong.problems[0].field == "spec.minMember"


def test_kinds_without_a_model_stay_mappings() -> None:
    doc = {"metadata": {"name": "c", "namespace": "a"}, "spec": {"k": "v"}}
    (seen,) = page("Lease", doc).items
    assert seen.item["spec"] == {"k": "v"}
    assert (seen.item["kind"], seen.item["apiVersion"]) == ("Lease", "coordination.k8s.io/v1")


@pytest.mark.parametrize("kind", ["Pod", "PodGroup"])
def test_bookmarks_and_errors(kind: str) -> None:
    mark = event(kind, "BOOKMARK", {"metadata": {"resourceVersion": "12", "creationTimestamp": None}})
    assert (mark.type, mark.version, mark.seen, mark.complete) == ("BOOKMARK", "12", None, False)
    last = {"metadata": {"resourceVersion": "12", "annotations": {"k8s.io/initial-events-end": "true"}}}
    assert event(kind, "BOOKMARK", last).complete
    error = event(
        kind, "ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    ).error
    assert error is not None
    assert error.is_gone
    assert "too old" in str(error)


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"null", b'{"items": 5}', b'{"items": [5]}', b'{"items": [{"metadata": {}}]}'],
)
@pytest.mark.parametrize("kind", ["Pod", "PodGroup"])
def test_what_is_no_list_is_garbage(kind: str, body: bytes) -> None:
    with pytest.raises(Garbage):
        Reader(RESOURCES[kind]).page(body)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
WHERE = [
    ("metadata",), ("metadata", "labels"), ("metadata", "uid"), ("metadata", "creationTimestamp"),
    ("metadata", "name"), ("metadata", "namespace"), ("metadata", "resourceVersion"),
    ("metadata", "annotations"), ("metadata", "ownerReferences"),
    ("spec",), ("spec", "containers"), ("spec", "affinity"), ("spec", "nodeName"), ("spec", "tolerations"),
    ("spec", "minMember"), ("status",), ("status", "startTime"), ("status", "conditions"),
    ("status", "images"), ("status", "allocatable"),
]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["Pod", "Node", "PodGroup", "Queue", "PersistentVolume"]),
    st.sampled_from(["ADDED", "DELETED", "BOOKMARK", "ERROR", "NEWS"]),
    st.sampled_from(WHERE),
    ANY,
)
def test_no_object_makes_the_reader_fail(kind: str, what: str, where: tuple[str, ...], value: Any) -> None:
    doc = node_doc() if kind == "Node" else pod_doc()
    part = doc
    for step in where[:-1]:
        part = part[step]
    part[where[-1]] = value
    reader = Reader(RESOURCES[kind])
    line = msgspec.json.encode({"type": what, "object": doc})
    try:
        read = reader.event(line)
    except Garbage:
        return
    if read.seen is not None:
        assert (read.seen.item is None) == bool(read.seen.problems)
        assert read.seen.item is None or isinstance(read.seen.item, Pod | Node) or kind not in ("Pod", "Node")
