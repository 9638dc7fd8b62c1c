"""What is said of a job that waits on, cycle after cycle."""

from __future__ import annotations

from tests.clusters import engine, group, node, pod, queue

CONFIG = """\
actions: allocate
tiers:
- plugins: [{name: gang}, {name: predicates}]
"""
NOW = 1767225600.0


def test_a_job_that_waits_as_before_is_told_so_in_every_cycle_but_reported_once() -> None:
    made = engine(node("n0"), group("big"), pod("big-0", "big", "9"), config=CONFIG)
    first, second, third = (made.cycle(NOW + after) for after in range(3))
    assert set(first.pod_groups) == {"ml/big"}
    assert second.pod_groups == third.pod_groups == {}
    assert first.job_refusals == second.job_refusals == third.job_refusals
    assert set(third.refusals) == {"ml/big-0"}


def test_another_node_that_is_too_small_changes_what_is_said() -> None:
    made = engine(node("n0"), group("big"), pod("big-0", "big", "9"), config=CONFIG)
    made.cycle(NOW)
    made.cycle(NOW)
    made.apply(node("n1"))
    result = made.cycle(NOW)
    assert "0/2 nodes" in result.pod_groups["ml/big"].conditions[0].message


def test_a_member_more_changes_what_is_said() -> None:
    made = engine(node("n0"), group("big"), pod("big-0", "big", "9"), config=CONFIG)
    made.cycle(NOW)
    made.cycle(NOW)
    made.apply(pod("big-1", "big", "9"))
    result = made.cycle(NOW)
    assert "2/2 tasks" in result.pod_groups["ml/big"].conditions[0].message


def test_a_job_that_starts_after_waiting_is_said_to_run() -> None:
    made = engine(node("n0"), group("big"), pod("big-0", "big", "9"), config=CONFIG)
    made.cycle(NOW)
    made.cycle(NOW)
    made.apply(node("n1", cpu="16"))
    result = made.cycle(NOW)
    assert result.pod_groups["ml/big"].phase == "Running"
    assert result.job_refusals == {}


def test_a_group_or_queue_that_can_not_be_read_is_said_to_be_there() -> None:
    made = engine(node("n0"), pod("a-0", "a"), group("b", queue="q"), pod("b-0", "b"), config=CONFIG)
    made.apply(group("a", -1))
    made.apply(queue("q", weight=-1))
    told = made.cycle(NOW).job_refusals
    assert told["ml/a"].message.startswith("PodGroup ml/a can't be read: spec.minMember: must be at least 0")
    assert told["ml/b"].message.startswith("queue q can't be read: spec.weight")
