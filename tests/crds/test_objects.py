"""What holds for every kind: which model, names, unknown fields, nulls, times."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from tests.crds.objects import TASK, faults, manifest, parsed
from volcano_py.crds.base import unknown_fields
from volcano_py.crds.objects import KINDS, parse_object
from volcano_py.crds.podgroup import PodGroup
from volcano_py.crds.queue import Queue, QueueSpec

JOB = {"tasks": [TASK]}
SPECS: dict[str, Any] = {
    "Job": JOB,
    "JobTemplate": JOB,
    "CronJob": {"schedule": "@daily", "jobTemplate": {"spec": JOB}},
    "HyperNode": {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n"}}}]},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_found_by_version_and_kind(kind: type[Any]) -> None:
    found = parsed(manifest(kind.info.kind, SPECS.get(kind.info.kind)))
    assert type(found) is kind
    assert (found.api_version, found.kind) == (kind.info.api_version, kind.info.kind)
    assert unknown_fields(found) == []


@pytest.mark.parametrize(
    "document",
    [
        {"apiVersion": "v1", "kind": "Pod"},
        {"apiVersion": "batch/v1", "kind": "Job"},
        {"apiVersion": "scheduling.volcano.sh/v1", "kind": "Queue"},
        {"kind": "Queue"},
        {"apiVersion": ["x"], "kind": {}},
        {},
    ],
)
def test_other_kinds_are_nobody(document: dict[str, Any]) -> None:
    assert parse_object(document) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metadata", [None, {}, {"name": ""}, {"namespace": "x"}])
def test_a_name_is_required(kind: type[Any], metadata: Any) -> None:
    document = manifest(kind.info.kind, SPECS.get(kind.info.kind), metadata=metadata)
    assert faults(document) == [("metadata.name", "is required")]


def test_a_generated_name_is_a_name() -> None:
    found = parsed(manifest("PodGroup", metadata={"generateName": "x-"}))
    assert found.metadata.generate_name == "x-"


def test_a_name_of_10000_characters_is_refused_in_few() -> None:
    [(field, message)] = faults(manifest("Queue", metadata={"name": "x" * 10_000}))
    assert (field, message) == ("metadata.name", "must have at most 253 characters, not 10000")


def test_all_faults_of_an_object_are_told() -> None:
    document = manifest(
        "Queue",
        {"weight": 0, "priority": -1, "lendMin": 1, "lendingPaused": "yes"},
        metadata={"name": "a", "labels": {"x": 1}},
    )
    assert [field for field, _message in faults(document)] == [
        "metadata.labels.x",
        "spec.weight",
        "spec.priority",
        "spec.lendMin",
        "spec.lendingPaused",
    ]


@pytest.mark.parametrize(
    ("top", "field", "message"),
    [
        ({"spec": []}, "spec", "must be a mapping, not a list"),
        ({"metadata": "a"}, "metadata", 'must be a mapping, not "a"'),
        ({"spec": {5: 1}}, "spec[5]", "has a key that is not a text (put it in quotes)"),
        (
            {"metadata": {"name": "a", "annotations": {"volcano.sh/x": True}}},
            "metadata.annotations[volcano.sh/x]",
            "must be a text, not true (put it in quotes)",
        ),
        (
            {"metadata": {"name": "a", "creationTimestamp": "yesterday"}},
            "metadata.creationTimestamp",
            'must be a time such as 2026-01-01T00:00:00Z, not "yesterday"',
        ),
        (
            {"metadata": {"name": "a", "creationTimestamp": "2026-13-01T00:00:00Z"}},
            "metadata.creationTimestamp",
            'must be a time such as 2026-01-01T00:00:00Z, not "2026-13-01T00:00:00Z"',
        ),
        (
            {"metadata": {"name": "a", "creationTimestamp": 7}},
            "metadata.creationTimestamp",
            "must be a text, not 7 (put it in quotes)",
        ),
    ],
)
def test_wrong_types_are_named(top: dict[str, Any], field: str, message: str) -> None:
    assert faults(manifest("Queue", **top)) == [(field, message)]


def test_unknown_fields_are_told_and_dropped_as_an_api_server_would() -> None:
    document = manifest(
        "PodGroup",
        {"minMember": 1, "min_member": 7, "subGroupPolicy": [{"x": 1}], "networkTopology": {"y.z": 1}},
        metadata={"name": "a", "colour": "red"},
        wholly={"new": 1},
    )
    found = parsed(document)
    assert unknown_fields(found) == [
        "metadata.colour",
        "spec.min_member",
        "spec.networkTopology[y.z]",
        "spec.subGroupPolicy[0].x",
        "wholly",
    ]
    assert isinstance(found, PodGroup)
    assert found.spec.min_member == 1
    assert found.to_manifest() == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "a"},
        "spec": {
            "minMember": 1,
            "queue": "default",
            "networkTopology": {"mode": "hard"},
            "subGroupPolicy": [{"subGroupSize": 1, "minSubGroups": 0}],
        },
    }


def test_null_is_absent() -> None:
    found = parsed(manifest("Queue", {"weight": None, "capability": None, "max": {"cpu": 1}}, status=None))
    assert isinstance(found, Queue)
    assert (found.spec.weight, found.spec.max_resources, found.status) == (1, {"cpu": "1"}, None)


@pytest.mark.parametrize(
    "when",
    [
        "2026-01-01T01:00:00+01:00",
        "2026-01-01T00:00:00Z",
        datetime(2026, 1, 1, tzinfo=UTC),
        datetime(2026, 1, 1),
    ],
)
def test_times_as_yaml_gives_them(when: object) -> None:
    found = parsed(manifest("Queue", metadata={"name": "a", "creationTimestamp": when}))
    assert found.metadata.created == 1767225600.0


def test_what_is_written_is_read_back() -> None:
    found = parsed(manifest("Queue", {"capability": {"cpu": 0.5, "memory": "1Gi"}, "lendMin": True}))
    assert parsed(found.to_manifest()).to_manifest() == found.to_manifest()


def test_objects_can_be_made_in_code_and_not_changed() -> None:
    spec = QueueSpec(weight=3, lend_min=True)
    assert spec.to_manifest() == {"weight": 3, "dequeueStrategy": "traverse", "lendMin": True}
    with pytest.raises(ValidationError, match="frozen"):
        spec.weight = 4


@pytest.mark.parametrize(
    ("members", "field", "message"),
    [
        ([], "spec.members", "must have at least 1 entries"),
        (
            [{"type": "Node", "selector": {}}],
            "spec.members[0].selector",
            "set one of 'exactMatch', 'regexMatch' and 'labelMatch'",
        ),
        (
            [{"type": "Node", "selector": {"exactMatch": {"name": "n"}, "regexMatch": {"pattern": "n"}}}],
            "spec.members[0].selector",
            "set one of 'exactMatch', 'regexMatch' and 'labelMatch'",
        ),
        (
            [{"type": "node"}],
            "spec.members[0].type",
            'must be one of Node or HyperNode, not "node" (did you mean "Node"?)',
        ),
    ],
)
def test_a_bad_hyper_node(members: list[Any], field: str, message: str) -> None:
    assert faults(manifest("HyperNode", {"tier": 1, "members": members})) == [(field, message)]


def test_a_hyper_node_needs_a_tier() -> None:
    assert faults(manifest("HyperNode", {"tierName": "rack"})) == [("spec.tier", "is required")]
    assert faults(manifest("HyperNode", {"tier": -1})) == [("spec.tier", "must be at least 0, not -1")]


def test_numatopology_and_command_as_their_writers_make_them() -> None:
    numa = parsed(
        manifest(
            "Numatopology",
            {
                "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "best-effort"},
                "resReserved": {"cpu": "1"},
                "numares": {"cpu": {"allocatable": "0-3,8", "capacity": 16}},
                "cpuDetail": {"0": {"numa": 0, "socket": 0, "core": 0}},
                "podAllocations": [
                    {
                        "uid": "u",
                        "name": "p",
                        "namespace": "n",
                        "containerAllocations": [{"name": "c", "allocations": {"cpu": "0,2"}}],
                    }
                ],
            },
        )
    )
    target = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "j",
        "uid": "u",
        "controller": True,
    }
    command = parsed(
        manifest("Command", action="AbortJob", target=target, reason="CommandIssued", message="m")
    )
    assert unknown_fields(numa) == []
    assert unknown_fields(command) == []
