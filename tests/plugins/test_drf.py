"""drf: dominant shares order jobs, and a newcomer never becomes larger than whom it pushes out."""

from __future__ import annotations

import pytest

from tests.clusters import group, node, pod
from tests.plugins.sharing import job, opened, voted
from volcano_py.crds.arguments import ConfigError
from volcano_py.scheduler.framework.session import Session


def cluster() -> Session:
    return opened(
        "[{name: drf}]",
        node("n", "10", "100Gi"),
        group("cpu"),
        pod("cpu-0", "cpu", "4", on="n"),
        group("memory"),
        pod("memory-0", "memory", "1", on="n", requests={"memory": "50Gi"}),
        group("new"),
        pod("new-0", "new", "2"),
        group("big"),
        *(pod(f"big-{i}", "big", "2", on="n") for i in range(2)),
    )


def test_the_largest_part_of_any_resource_is_the_share() -> None:
    session = cluster()
    names = ["memory", "cpu", "big", "new"]
    order = sorted((job(session, name) for name in names), key=session.job_order_key)
    assert [each.name for each in order] == ["new", "big", "cpu", "memory"]


def test_a_victims_job_must_stay_as_large_as_the_newcomer_becomes() -> None:
    # new would hold 0.2; cpu would be left with nothing, big with 0.2 and then with nothing.
    assert voted(cluster(), "preemptable", "new-0", "cpu-0", "big-0", "big-1") == [False, True, False]


def test_hierarchical_drf_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="drf: enableHierarchy is true"):
        opened("[{name: drf, enableHierarchy: true}]", node("n"))
