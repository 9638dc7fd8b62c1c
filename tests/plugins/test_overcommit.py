"""overcommit: the gate counts what is used and what is admitted already."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clusters import Document, engine, group, node, pod, queue
from tests.plugins.sharing import job, opened
from volcano_py.crds.arguments import ConfigError
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.framework.session import Session


def cluster(*documents: Document, factor: str = "1.2", others: str = "") -> Session:
    plugin = f"{{name: overcommit, arguments: {{overcommit-factor: {factor}}}}}"
    return opened(f"[{plugin}{others}]", node("n", "10"), *documents)


def waits(name: str, cpu: str, **spec: Any) -> Document:
    return group(name, phase="Pending", minResources={"cpu": cpu}, **spec)


def gate(session: Session, name: str) -> str:
    entry = next(entry for entry in session.points.job_enqueueable if entry.plugin == "overcommit")
    answer = entry.call(job(session, name))
    return answer.message if isinstance(answer, Refusal) else ""


def test_a_little_more_than_there_is_passes() -> None:
    session = cluster(group("r"), pod("r-0", "r", "4", on="n"), waits("a", "8"), waits("b", "8001m"))
    assert gate(session, "a") == ""
    assert gate(session, "b") == (
        "8001m cpu asked with 6 free in the cluster and 8 left to promise (overcommit-factor 1.2), 1m over"
    )


def test_only_what_is_admitted_is_booked() -> None:
    session = cluster(waits("a", "8"), waits("b", "6"), factor="1.0")
    assert gate(session, "a") == ""
    assert gate(session, "b") == ""
    session.admit(job(session, "a"))
    assert gate(session, "b") == (
        "6 cpu asked with 10 free in the cluster and 2 left to promise (overcommit-factor 1), 4 over"
    )


def test_a_resource_that_no_node_has_is_named_with_what_may_have_been_meant() -> None:
    session = cluster(
        node("g", "10", amounts={"nvidia.com/gpu": "8"}),
        group("a", phase="Pending", minResources={"cpu": "99", "nvidia.com/gpus": "1"}),
    )
    assert gate(session, "a") == ('no node offers nvidia.com/gpus (did you mean "nvidia.com/gpu"?); 1 asked')


def test_what_running_groups_still_ask_is_booked() -> None:
    driver = [group("r", 1, phase="Running", minResources={"cpu": "5"}), pod("r-0", "r", "1", on="n")]
    session = cluster(*driver, waits("a", "5"), waits("b", "6"), factor="1")
    assert gate(session, "a") == ""
    assert gate(session, "b") == (
        "6 cpu asked with 9 free in the cluster and 5 left to promise (overcommit-factor 1), 1 over"
    )


def test_members_that_have_finished_ask_for_nothing_more() -> None:
    done = [pod(f"r-{i}", "r", "2", on="n", status={"phase": "Succeeded"}) for i in range(3)]
    running = [group("r", 4, phase="Running", minResources={"cpu": "8"}), pod("r-9", "r", "2", on="n")]
    session = cluster(*running, *done, waits("a", "8"), factor="1")
    assert gate(session, "a") == ""


def test_the_books_follow_the_cluster_from_cycle_to_cycle() -> None:
    config = (
        "actions: enqueue, allocate\n"
        "tiers: [{plugins: [{name: gang}, {name: overcommit, arguments: {overcommit-factor: 1}}]}]\n"
    )
    made = engine(node("n", "10"), waits("a", "6"), waits("b", "6"), config=config)
    assert made.cycle(0.0).pod_groups["ml/a"].phase == "Inqueue"
    assert made.cycle(1.0).pod_groups == {}
    made.delete("PodGroup", "ml/a")
    assert made.cycle(2.0).pod_groups["ml/b"].phase == "Inqueue"


def test_a_job_inside_its_share_passes_a_cluster_that_others_have_borrowed() -> None:
    def shared(weight: int) -> Session:
        return cluster(
            queue("a"), group("v", queue="a"), *(pod(f"v-{i}", "v", on="n") for i in range(10)),
            queue("b", weight), waits("c", "5", queue="b"),
            factor="1", others=", {name: proportion}",
        )  # fmt: skip

    assert gate(shared(1), "c") == ""
    # A queue of a ninth of the weight is entitled to less than it asks.
    with_less = cluster(
        queue("a", 9), group("v", queue="a"), *(pod(f"v-{i}", "v", on="n") for i in range(10)),
        queue("b"), waits("c", "5", queue="b"), factor="1", others=", {name: proportion}",
    )  # fmt: skip
    assert "5 over" in gate(with_less, "c")


def test_what_nobody_has_borrowed_can_not_be_taken_back() -> None:
    foreign = pod("f-0", "f", "10", on="n", schedulerName="default-scheduler")
    session = cluster(foreign, waits("c", "5"), factor="1", others=", {name: proportion}")
    assert "5 over" in gate(session, "c")


@pytest.mark.parametrize(
    ("factor", "message"), [("0.9", "must be 1 or more, not 0.9"), ("'2'", "must be a number")]
)
def test_wrong_factors_are_named(factor: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        cluster(factor=factor)
