"""Which members of a job are placed next: in order, roles first, and again once others found places."""

from __future__ import annotations

from typing import Any

from tests.clusters import Document, engine, group, node, pod
from volcano_py.scheduler.framework.filling import take_members, worksheet

NOW = 1767225600.0
CONFIG = """\
actions: allocate
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}]
"""


def near(app: str) -> dict[str, Any]:
    """An affinity that requires a pod of *app* on the same node."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def bound(*documents: Document, cycles: int = 1) -> dict[str, str]:
    """Pod -> node after some cycles."""
    known = engine(*documents, config=CONFIG)
    found: dict[str, str] = {}
    for number in range(cycles):
        decisions = known.cycle(NOW + number).decisions
        found |= {each.pod.removeprefix("ml/"): each.node for each in decisions}
    return found


def test_a_member_that_waits_for_a_later_one_is_tried_again() -> None:
    worker = pod("g-0", "g", affinity=near("server"))
    server = pod("g-1", "g", labels={"app": "server"})
    found = bound(node("n0"), node("n1"), group("g", 2), worker, server)
    assert found == {"g-0": "n0", "g-1": "n0"}


def test_members_like_one_that_failed_are_tried_once_others_have_places() -> None:
    workers = [pod(f"g-{number}", "g", affinity=near("server")) for number in (0, 2)]
    server = pod("g-1", "g", labels={"app": "server"})
    assert len(bound(node("n0"), group("g", 3), *workers, server)) == 3


def test_surplus_members_are_tried_again_too() -> None:
    workers = [pod(f"g-{number}", "g", affinity=near("server")) for number in (0, 2)]
    server = pod("g-1", "g", labels={"app": "server"})
    assert len(bound(node("n0"), group("g", 1), *workers, server)) == 3


def test_members_are_tried_again_whoever_came_last() -> None:
    worker = pod("g-1", "g", affinity=near("server"))
    plain, server = pod("g-0", "g"), pod("g-2", "g", labels={"app": "server"})
    assert len(bound(node("n0"), group("g", 1), plain, worker, server)) == 3


def test_what_never_fits_ends_the_trying() -> None:
    """Server and helper start; the workers are told why they do not, and the cycle ends."""
    workers = [pod(f"g-{number}", "g", "9", affinity=near("server")) for number in (0, 3, 4)]
    server = pod("g-1", "g", labels={"app": "server"})
    helper = pod("g-2", "g")
    known = engine(node("n0"), group("g", 1), *workers, server, helper, config=CONFIG)
    result = known.cycle(NOW)
    assert {each.pod for each in result.decisions} == {"ml/g-1", "ml/g-2"}
    assert set(result.refusals) == {"ml/g-0", "ml/g-3", "ml/g-4"}


ROLES = {"ps": 1, "worker": 2}


def role(name: str, number: int, cpu: str = "1") -> Document:
    return pod(f"g-{number}", "g", cpu, annotations={"volcano.sh/task-spec": name})


def taken(minimum: int, *members: Document, roles: dict[str, int] | None = None) -> list[str]:
    """Who is taken off the sheet first."""
    more: dict[str, Any] = {} if roles is None else {"minTaskMember": roles}
    known = engine(node("n"), group("g", minimum, **more), *members, config=CONFIG)
    session, job = known.open(NOW), known.state.jobs.named("ml/g")
    assert job is not None
    found = take_members(session, job, worksheet(session, job))
    return [known.state.tasks.keys[task].removeprefix("ml/") for task in found]


def test_as_many_are_taken_as_the_gang_lacks() -> None:
    assert taken(2, *(pod(f"g-{number}", "g") for number in range(4))) == ["g-0", "g-1"]


def test_roles_below_their_minimum_come_first_and_the_order_stays() -> None:
    members = [*(role("worker", number) for number in range(3)), role("ps", 3), role("worker", 4)]
    assert taken(3, *members, roles=ROLES) == ["g-0", "g-1", "g-3"]
    assert taken(4, *members, roles=ROLES) == ["g-0", "g-1", "g-2", "g-3"]


def test_role_minimums_beyond_the_gangs_own_are_off() -> None:
    members = [*(role("worker", number) for number in range(3)), role("ps", 3)]
    assert taken(2, *members, roles=ROLES) == ["g-0", "g-1"]


def test_pods_that_ask_nothing_come_last_and_gated_ones_not_at_all() -> None:
    bare, gated = pod("g-0", "g", None), pod("g-1", "g", schedulingGates=[{"name": "x"}])
    assert taken(2, bare, gated, pod("g-2", "g")) == ["g-2", "g-0"]


def test_a_role_that_finds_no_place_keeps_the_gang_waiting() -> None:
    members = [*(role("worker", number) for number in range(3)), role("ps", 3, cpu="9")]
    assert bound(node("n"), group("g", 3, minTaskMember=ROLES), *members) == {}
    members[-1] = role("ps", 3)
    found = bound(node("n", cpu="3"), group("g", 3, minTaskMember=ROLES), *members)
    assert set(found) == {"g-0", "g-1", "g-3"}
