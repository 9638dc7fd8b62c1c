"""What is taken for the state of the cluster when news is late, or about another object of the name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.controllers.objects import owner, pod_parts, workload_parts
from volcano_py.controllers.carrier import selector_text
from volcano_py.controllers.observed import Observed
from volcano_py.controllers.podgroup.amounts import min_resources
from volcano_py.controllers.records import Owner
from volcano_py.scheduler.model.kube.objects import Pod, decode


def document(uid: str, version: int, **parts: Any) -> dict[str, Any]:
    parts = parts or pod_parts()
    meta = {
        **parts.pop("metadata", {}),
        "name": "p",
        "namespace": "ns",
        "uid": uid,
        "resourceVersion": str(version),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, **parts}


def seen_uid(seen: Observed) -> str | None:
    pod = seen.pod("ns/p")
    return pod.identity.uid if pod else None


def test_an_older_version_changes_nothing() -> None:
    seen = Observed(("volcano-py",))
    assert seen.put("Pod", document("u1", 5)) is not None
    assert seen.put("Pod", document("u1", 4)) is None
    assert seen.put("Pod", document("u1", 5)) is None


def test_a_list_knows_fields_that_a_watch_by_an_old_definition_left_out() -> None:
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "q", "uid": "u1", "resourceVersion": "5"},
        "spec": {},
    }
    seen = Observed(("volcano-py",))
    assert seen.put("Queue", queue) is not None
    assert seen.put("Queue", queue) is None
    assert seen.put("Queue", {**queue, "spec": {"parent": "other"}}) is not None


def test_the_end_of_the_old_object_is_not_the_end_of_the_new_one() -> None:
    seen = Observed(("volcano-py",))
    seen.put("Pod", document("u1", 5))
    seen.put("Pod", document("u2", 8))
    assert seen.drop("Pod", "ns/p", "u1") is None
    assert seen_uid(seen) == "u2"
    assert [pod.identity.uid for pod in seen.pods_of("ns", "podgroup-u2")] == ["u2"]
    assert seen.pods_of("ns", "podgroup-u1") == []


def test_what_is_gone_does_not_come_back() -> None:
    seen = Observed(("volcano-py",))
    seen.put("Pod", document("u1", 5))
    seen.drop("Pod", "ns/p", "u1")
    assert seen.put("Pod", document("u1", 6)) is None
    assert seen_uid(seen) is None


def test_a_list_drops_what_it_does_not_hold_unless_that_is_newer() -> None:
    seen = Observed(("volcano-py",))
    seen.put("Pod", document("u1", 5))
    assert not seen.drop_unlisted("Pod", {"u1"}, 9)
    assert not seen.drop_unlisted("Pod", set(), 4)
    assert [change.after for change in seen.drop_unlisted("Pod", set(), 5)] == [None]


def test_a_workload_is_found_by_name_and_identity() -> None:
    seen = Observed(("volcano-py",))
    meta = {"name": "rs", "namespace": "ns", "uid": "r1", "resourceVersion": "1"}
    seen.put("ReplicaSet", {**workload_parts(1), "metadata": meta})
    assert seen.workload("ns", Owner("ReplicaSet", "rs", "r1")) is not None
    assert seen.workload("ns", Owner("ReplicaSet", "rs", "r0")) is None
    assert seen.workload("ns", Owner("Deployment", "rs", "r1")) is None


def test_nothing_is_left_behind_of_objects_that_came_and_went() -> None:
    seen = Observed(("volcano-py",))
    for number in range(50):
        parts = pod_parts(owner("ReplicaSet", "rs", f"r{number}"))
        seen.put("Pod", document(f"u{number}", 2 * number + 1, **parts))
        seen.drop("Pod", "ns/p", f"u{number}")
    assert seen.size("Pod") == 0
    assert not seen._pods_of


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({"matchLabels": {"a": "1", "b": "2"}}, "a=1,b=2"),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, "a in (1,2)"),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, "a notin (1)"),
        (
            {
                "matchExpressions": [
                    {"key": "a", "operator": "Exists"},
                    {"key": "b", "operator": "DoesNotExist"},
                ]
            },
            "a,!b",
        ),
    ],
)
def test_a_selector_is_written_as_a_query_takes_it(selector: dict[str, Any], text: str) -> None:
    assert selector_text(selector) == text


def test_a_group_asks_what_its_pods_count_for_in_a_quota() -> None:
    pod = decode(
        document(
            "u1",
            1,
            spec={
                "containers": [
                    {"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}},
                    {"resources": {"requests": {"cpu": "500m"}}},
                ],
                "initContainers": [{"resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}}],
                "overhead": {"cpu": "100m"},
            },
        )
    )
    assert isinstance(pod, Pod)
    assert min_resources(pod, 2) == {
        "pods": "2",
        "count/pods": "2",
        "cpu": "6200m",
        "requests.cpu": "6200m",
        "memory": "2Gi",
        "requests.memory": "2Gi",
        "limits.cpu": "8200m",
        "limits.memory": "2Gi",
    }
    assert min_resources(pod, 0) == {}
