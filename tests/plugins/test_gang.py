"""gang: whole or not at all, counted in pods."""

from __future__ import annotations

from tests.clusters import Document, group, node, pod
from tests.plugins.sharing import claim, job, opened, rows, voted
from volcano_py.scheduler.framework.points import first_refusal
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.framework.session import Session

ROLE = "volcano.sh/task-spec"
VERSION = "volcano.sh/job-version"


def cluster(*documents: Document, arguments: str = "") -> Session:
    return opened(f"[{{name: gang{arguments}}}]", node("n", "64"), *documents)


def role(name: str) -> dict[str, str]:
    return {ROLE: name}


def finished(name: str, of: str, version: str = "") -> Document:
    annotations = {VERSION: version} if version else {}
    return pod(name, of, on="n", status={"phase": "Succeeded"}, annotations=annotations)


def problem(session: Session, name: str) -> str:
    refusal = first_refusal(session.points.job_valid, job(session, name))
    return refusal.message if refusal else ""


def test_too_few_pods_can_never_be_whole() -> None:
    session = cluster(group("g", 3), pod("g-0", "g"), pod("g-1", "g", on="n"))
    assert problem(session, "g") == "the gang needs 3 pods and has 2"


def test_too_few_pods_of_a_role_neither() -> None:
    pods = [pod(f"g-{i}", "g", annotations=role("worker")) for i in range(3)]
    session = cluster(group("g", 3, minTaskMember={"worker": 2, "ps": 1}), *pods)
    assert problem(session, "g") == "the gang needs 1 pods of role 'ps' and has 0"


def test_role_minimums_are_off_while_the_gangs_minimum_is_below_their_sum() -> None:
    pods = [pod(f"g-{i}", "g", annotations=role("worker")) for i in range(2)]
    session = cluster(group("g", 2, minTaskMember={"worker": 2, "ps": 1}), *pods)
    assert problem(session, "g") == ""


def test_pods_without_a_role_are_a_role_too() -> None:
    session = cluster(
        group("g", 2, minTaskMember={"": 1, "ps": 1}),
        pod("g-0", "g", on="n"), pod("g-1", "g", on="n", annotations=role("ps")),
    )  # fmt: skip
    assert problem(session, "g") == ""
    assert session.job_ready(job(session, "g"))


def test_a_gang_is_whole_with_its_minimum_placed_and_each_role_met() -> None:
    one = [pod(f"g-{i}", "g", on="n", annotations=role("worker")) for i in range(2)]
    ps = pod("g-ps", "g", annotations=role("ps"))
    waits = cluster(group("g", 2, minTaskMember={"worker": 1, "ps": 1}), *one, ps)
    assert not waits.job_ready(job(waits, "g"))
    assert waits.job_starving(job(waits, "g"))
    whole = cluster(group("g", 2, minTaskMember={"worker": 2}), *one, ps)
    assert whole.job_ready(job(whole, "g"))
    assert not whole.job_starving(job(whole, "g"))


def test_members_without_requests_count_when_they_are_placed() -> None:
    session = cluster(group("g", 2), pod("g-0", "g", on="n"), pod("g-1", "g", None))
    assert not session.job_ready(job(session, "g"))
    assert not session.job_pipelined(job(session, "g"))


def test_promised_room_counts_for_later_not_for_now() -> None:
    leaving = pod("v-0", "v", "64", on="n", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    session = cluster(group("v"), leaving, group("g", 2), pod("g-0", "g"), pod("g-1", "g"))
    task = rows(session, "g-0", "g-1")
    session.statement("test").pipeline(task, session.state.nodes.order[[0, 0]])
    assert not session.job_ready(job(session, "g"))
    assert session.job_pipelined(job(session, "g"))
    assert not session.job_starving(job(session, "g"))


def test_a_finished_member_keeps_its_seat() -> None:
    session = cluster(group("g", 2, phase="Running"), finished("g-0", "g"), pod("g-1", "g", on="n"))
    assert session.job_ready(job(session, "g"))


def test_a_member_of_an_earlier_run_has_none_in_the_new_one() -> None:
    new = [pod(f"g-{i}", "g", annotations={VERSION: "2"}) for i in range(2)]
    running = pod("g-5", "g", on="n", annotations={VERSION: "2"})
    session = cluster(group("g", 3), finished("g-8", "g", "1"), finished("g-9", "g", "1"), running, *new)
    assert not session.job_ready(job(session, "g"))
    assert problem(session, "g") == ""


def test_the_broken_gang_comes_first_then_who_waits_then_whole_ones() -> None:
    session = cluster(
        group("new", 2, created="2025-12-30T00:00:00Z"), pod("new-0", "new"), pod("new-1", "new"),
        group("whole", 1, phase="Running", created="2025-12-29T00:00:00Z"), pod("whole-0", "whole", on="n"),
        group("broken", 2, phase="Running"), pod("broken-0", "broken", on="n"), pod("broken-1", "broken"),
    )  # fmt: skip
    jobs = sorted((job(session, name) for name in ("new", "whole", "broken")), key=session.job_order_key)
    assert [each.name for each in jobs] == ["broken", "new", "whole"]


def test_the_gangs_refusal_counts_members_and_their_reasons() -> None:
    session = cluster(group("g", 3), *(pod(f"g-{i}", "g") for i in range(3)))
    cpu = Refusal("NodesUnfit", "no cpu", nodes=4, missing={"cpu": 7})
    reasons = dict(
        zip(rows(session, "g-0", "g-1", "g-2").tolist(), [cpu, Refusal("X", "no card"), cpu], strict=True)
    )
    refusal = first_refusal(session.points.job_unready, job(session, "g"), reasons)
    assert refusal is not None
    assert refusal.message == (
        "3/3 tasks in gang unschedulable: the gang needs 3 and has 0; 2 x no cpu; 1 x no card"
    )
    assert (refusal.reason, refusal.nodes, refusal.missing) == ("GangIncomplete", 4, {"cpu": 7})


def victims(arguments: str = "") -> Session:
    return cluster(
        group("c"), pod("c-0", "c"),
        group("g", 2), *(pod(f"g-{i}", "g", on="n") for i in range(3)),
        group("one"), pod("one-0", "one", on="n"),
        arguments=arguments,
    )  # fmt: skip


def test_gang_agrees_to_every_victim_and_leaves_wholeness_to_the_choice() -> None:
    session = victims()
    for point in ("preemptable", "reclaimable"):
        assert voted(session, point, "c-0", "g-0", "g-1", "one-0") == [True, True, True]
    assert not session.points.protects


def test_gangs_at_their_minimum_can_be_made_immune() -> None:
    session = victims(", arguments: {gang.wholeGangVictims: false}")
    assert voted(session, "reclaimable", "c-0", "g-0", "g-1", "one-0") == [True, False, False]
    (entry,) = session.points.protects
    mask, reason = entry.call(claim(session, "c-0"), rows(session, "g-2", "one-0"))
    assert mask.tolist() == [False, True]
    assert "at its minimum" in reason
