"""priority: order, and who may push out whom inside a queue."""

from __future__ import annotations

from typing import Any

from tests.clusters import Document, group, node, pod
from tests.plugins.sharing import job, opened, rows, voted
from volcano_py.scheduler.framework.session import Session


def priority_class(name: str, value: int) -> Document:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def cluster(*more: Document) -> Session:
    return opened(
        "[{name: priority}]",
        node("n", "64"),
        *(priority_class(name, value) for name, value in (("low", 1), ("mid", 5), ("high", 9))),
        group("a", priorityClassName="low"),
        group("b", priorityClassName="mid"),
        group("c", priorityClassName="high"),
        *more,
    )


def some(name: str, of: str, priority: int, **more: Any) -> Document:
    return pod(name, of, priority=priority, **more)


def test_jobs_and_tasks_of_higher_priority_come_first() -> None:
    session = cluster(some("b-0", "b", 3), some("b-1", "b", 7), some("b-2", "b", 5))
    jobs = sorted((job(session, name) for name in "abc"), key=session.job_order_key)
    assert [each.name for each in jobs] == ["c", "b", "a"]
    order = session.ordered(rows(session, "b-0", "b-1", "b-2").tolist())
    assert [session.state.tasks.keys[task] for task in order] == ["ml/b-1", "ml/b-2", "ml/b-0"]


def test_only_strictly_lower_jobs_are_pushed_out_whatever_their_pods_say() -> None:
    session = cluster(
        some("b-0", "b", 3),
        some("a-0", "a", 99, on="n"),
        some("c-0", "c", 0, on="n"),
        group("b2", priorityClassName="mid"),
        some("b2-0", "b2", 0, on="n"),
    )
    assert voted(session, "preemptable", "b-0", "a-0", "c-0", "b2-0") == [True, False, False]


def test_inside_a_job_the_pods_priority_decides() -> None:
    session = cluster(some("b-0", "b", 9), some("b-1", "b", 5, on="n"), some("b-2", "b", 9, on="n"))
    assert voted(session, "preemptable", "b-0", "b-1", "b-2") == [True, False]


def test_priority_has_no_say_across_queues() -> None:
    assert not cluster().points.reclaimable


def test_a_job_wants_more_until_every_task_has_a_place() -> None:
    session = cluster(some("b-0", "b", 9), some("a-0", "a", 5, on="n"))
    assert session.job_starving(job(session, "b"))
    assert not session.job_starving(job(session, "a"))
