"""A queue says what it is owed in one spelling, and in amounts that make sense together."""

from typing import Any

import pytest

from tests.crds.objects import faults, manifest, parsed
from volcano_py.crds.base import unknown_fields
from volcano_py.crds.queue import Queue


def queue(spec: dict[str, Any]) -> Queue:
    found = parsed(manifest("Queue", spec))
    assert isinstance(found, Queue)
    return found


def test_defaults() -> None:
    spec = parsed(manifest("Queue"))
    assert isinstance(spec, Queue)
    assert (spec.spec.weight, spec.spec.priority, spec.spec.parent) == (1, 0, "")
    assert spec.spec.reclaimable is None
    assert spec.spec.interruptible is None
    assert spec.spec.lend_min is False
    assert spec.spec.lending_paused is False
    assert spec.spec.guarantee_resources == {}
    assert spec.spec.max_resources == {}
    assert spec.spec.deserved == {}
    assert spec.spec.min_run_time_s == 0.0
    assert spec.status is None
    assert spec.metadata.created == 0.0


def test_a_volcano_users_queue_as_it_stands() -> None:
    document = manifest(
        "Queue",
        {
            "weight": 1,
            "reclaimable": False,
            "policy": "besteffort",
            "capability": {"cpu": 64, "memory": "256Gi", "huawei.com/Ascend910": 8},
        },
        metadata={"name": "train-queue"},
    )
    found = parsed(document)
    assert isinstance(found, Queue)
    assert unknown_fields(found) == ["spec.policy"]
    assert found.spec.max_resources == {"cpu": "64", "memory": "256Gi", "huawei.com/Ascend910": "8"}
    assert found.spec.reclaimable is False


def test_everything_volcano_has_is_known() -> None:
    groups = {
        "requiredDuringSchedulingIgnoredDuringExecution": ["a"],
        "preferredDuringSchedulingIgnoredDuringExecution": ["b"],
    }
    found = parsed(
        manifest(
            "Queue",
            {
                "weight": 65535,
                "capability": {"cpu": "1.5"},
                "reclaimable": True,
                "extendClusters": [{"name": "far", "weight": 2, "capacity": {"cpu": 1}}],
                "guarantee": {"resource": {"cpu": 1}},
                "affinity": {"nodeGroupAffinity": groups, "nodeGroupAntiAffinity": groups},
                "type": "t",
                "parent": "root",
                "deserved": {"cpu": 1, "deviceclass/gpu": 2},
                "priority": 7,
                "dequeueStrategy": "fifo",
            },
            status={
                "state": "Open",
                "unknown": 1,
                "pending": 2,
                "running": 3,
                "inqueue": 4,
                "completed": 5,
                "reservation": {"nodes": ["n"], "resource": {"cpu": 1}},
                "allocated": {"cpu": "500m"},
            },
        )
    )
    assert unknown_fields(found) == []
    assert isinstance(found, Queue)
    assert found.status is not None
    assert found.status.allocated == {"cpu": "500m"}


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (
            {"min": {"cpu": 2}, "max": {"cpu": 4}},
            {"guarantee": {"resource": {"cpu": 2}}, "capability": {"cpu": 4}},
        ),
        ({"min": {}, "max": {}}, {"guarantee": {}, "capability": {}}),
    ],
)
def test_both_spellings_mean_the_same(short: dict[str, Any], long: dict[str, Any]) -> None:
    ours, theirs = queue(short).spec, queue(long).spec
    assert ours.guarantee_resources == theirs.guarantee_resources
    assert ours.max_resources == theirs.max_resources


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"weight": 0}, "spec.weight", "must be at least 1, not 0"),
        ({"weight": -1}, "spec.weight", "must be at least 1, not -1"),
        ({"weight": 65536}, "spec.weight", "must be at most 65535, not 65536"),
        ({"weight": "3"}, "spec.weight", 'must be a whole number, not "3" (drop the quotes)'),
        ({"weight": True}, "spec.weight", "must be a whole number, not true"),
        ({"weight": 1.5}, "spec.weight", "must be a whole number, not 1.5"),
        ({"priority": -1}, "spec.priority", "must be at least 0, not -1"),
        ({"priority": 2**31}, "spec.priority", "must be at most 2147483647, not 2147483648"),
        ({"parent": "a"}, "spec.parent", 'queue "a" cannot be its own parent'),
        (
            {"reclaimable": "false"},
            "spec.reclaimable",
            'must be true or false, not "false" (drop the quotes)',
        ),
        (
            {"dequeueStrategy": "fito"},
            "spec.dequeueStrategy",
            'must be one of fifo or traverse, not "fito" (did you mean "fifo"?)',
        ),
        ({"capability": {"cpu": "-1"}}, "spec.capability.cpu", "must not be negative, as -1 is"),
        (
            {"capability": {"cpu": [1]}},
            "spec.capability.cpu",
            'must be a quantity such as 4, "500m" or "1Gi", not a list',
        ),
        ({"capability": []}, "spec.capability", "must be a mapping, not a list"),
        (
            {"capability": {"x.y/z": "9223372036854776"}},
            "spec.capability[x.y/z]",
            '"9223372036854776" is more than can be counted (at most 9223372036854775)',
        ),
        (
            {"min": {"cpu": 1}, "guarantee": {"resource": {"cpu": 1}}},
            "spec.min",
            "set 'min' or 'guarantee.resource', not both",
        ),
        ({"max": {}, "capability": {"cpu": 1}}, "spec.max", "set 'max' or 'capability', not both"),
        (
            {"guarantee": {"resource": {"cpu": 3}}, "deserved": {"cpu": 2}},
            "spec.guarantee.resource.cpu",
            "3 is more than deserved.cpu, which is 2",
        ),
        (
            {"min": {"cpu": "2001m"}, "max": {"cpu": 2}},
            "spec.min.cpu",
            "2001m is more than max.cpu, which is 2",
        ),
        (
            {"deserved": {"memory": "1Gi"}, "capability": {"memory": "1G"}},
            "spec.deserved.memory",
            "1Gi is more than capability.memory, which is 1G",
        ),
        ({"minRunTime": "-1m"}, "spec.minRunTime", "must not be negative, as -1m is"),
        (
            {"minRunTime": "10"},
            "spec.minRunTime",
            'must be a duration with its unit, such as "10m" or "1h30m", not "10"',
        ),
        ({"minRunTime": 600}, "spec.minRunTime", "must be a text, not 600 (put it in quotes)"),
    ],
)
def test_a_bad_field_is_named(spec: dict[str, Any], field: str, message: str) -> None:
    assert faults(manifest("Queue", spec)) == [(field, message)]


def test_a_bad_quantity_says_what_is_possible() -> None:
    [(field, message)] = faults(manifest("Queue", {"deserved": {"nvidia.com/gpu": "abc"}}))
    assert field == "spec.deserved[nvidia.com/gpu]"
    assert message.startswith('"abc" is not a quantity')


def test_equal_amounts_ascend() -> None:
    spec = queue({"min": {"cpu": "1000m"}, "deserved": {"cpu": 1}, "max": {"cpu": "1"}}).spec
    assert spec.guarantee_resources == {"cpu": "1000m"}


def test_resources_of_one_side_only_are_not_compared() -> None:
    spec = queue({"min": {"cpu": 8}, "deserved": {"memory": "1Gi"}, "max": {"nvidia.com/gpu": 1}}).spec
    assert spec.max_resources == {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize(
    ("text", "seconds"), [("10m", 600.0), ("1h30m", 5400.0), ("1.5s", 1.5), ("250ms", 0.25), ("0", 0.0)]
)
def test_min_run_time(text: str, seconds: float) -> None:
    assert queue({"minRunTime": text}).spec.min_run_time_s == seconds
