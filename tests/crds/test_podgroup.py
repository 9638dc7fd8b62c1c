"""A PodGroup says what its gang needs; nothing in it is guessed."""

from typing import Any

import pytest

from tests.crds.objects import faults, manifest, parsed
from volcano_py.crds.base import unknown_fields
from volcano_py.crds.podgroup import PodGroup


def test_defaults() -> None:
    found = parsed(manifest("PodGroup"))
    assert isinstance(found, PodGroup)
    assert (found.spec.min_member, found.spec.queue, found.spec.min_resources) == (0, "default", None)
    assert found.spec.min_task_member == {}


def test_everything_volcano_has_is_known() -> None:
    topology = {"mode": "soft", "highestTierAllowed": 0}
    found = parsed(
        manifest(
            "PodGroup",
            {
                "minMember": 3,
                "minTaskMember": {"worker": 2},
                "queue": "q",
                "priorityClassName": "high",
                "minResources": {"cpu": 3, "count/jobs": 1},
                "networkTopology": {"highestTierName": "rack"},
                "subGroupPolicy": [
                    {
                        "name": "p",
                        "networkTopology": topology,
                        "subGroupSize": 2,
                        "minSubGroups": 1,
                        "labelSelector": {
                            "matchLabels": {"a": "b"},
                            "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}],
                        },
                        "matchLabelKeys": ["k"],
                    }
                ],
            },
            status={
                "phase": "Inqueue",
                "conditions": [
                    {
                        "type": "Unschedulable",
                        "status": "True",
                        "transitionID": "x",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                        "reason": "NotEnoughResources",
                        "message": "m",
                    }
                ],
                "running": 1,
                "succeeded": 2,
                "failed": 3,
            },
        )
    )
    assert unknown_fields(found) == []
    assert isinstance(found, PodGroup)
    assert found.spec.network_topology is not None
    assert found.spec.network_topology.mode == "hard"
    assert found.status is not None
    assert found.status.conditions[0].transition_id == "x"


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"minMember": -1}, "spec.minMember", "must be at least 0, not -1"),
        ({"minMember": 2**31}, "spec.minMember", "must be at most 2147483647, not 2147483648"),
        ({"minTaskMember": {"ps": -1}}, "spec.minTaskMember.ps", "must be at least 0, not -1"),
        ({"minResources": {"cpu": -1}}, "spec.minResources.cpu", "must not be negative, as -1 is"),
        ({"queue": "q" * 10_000}, "spec.queue", "must have at most 253 characters, not 10000"),
        ({"queue": 7}, "spec.queue", "must be a text, not 7 (put it in quotes)"),
        (
            {"networkTopology": {"highestTierAllowed": 1, "highestTierName": "rack"}},
            "spec.networkTopology.highestTierName",
            "set 'highestTierAllowed' or 'highestTierName', not both",
        ),
        (
            {"networkTopology": {"mode": "firm"}},
            "spec.networkTopology.mode",
            'must be one of hard or soft, not "firm"',
        ),
        (
            {"subGroupPolicy": [{}, {"subGroupSize": 0}]},
            "spec.subGroupPolicy[1].subGroupSize",
            "must be at least 1, not 0",
        ),
        (
            {"subGroupPolicy": [{"labelSelector": {"matchExpressions": [{"key": "k"}]}}]},
            "spec.subGroupPolicy[0].labelSelector.matchExpressions[0].operator",
            "is required",
        ),
    ],
)
def test_a_bad_field_is_named(spec: dict[str, Any], field: str, message: str) -> None:
    assert faults(manifest("PodGroup", spec)) == [(field, message)]
