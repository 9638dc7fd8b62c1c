"""Queues: which are there, which are open, what they count, and what Commands do to them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.controllers.objects import pod_parts
from tests.controllers.process import Process, settled
from tests.controllers.server import Server
from volcano_py.controllers.podgroup.build import Rules

QUEUE = "scheduling.volcano.sh/queue-name"
MARK = "volcano.sh/closed-by-parent"


def queue(server: Server, name: str, parent: str = "", state: str = "") -> None:
    spec = {"weight": 1, **({"parent": parent} if parent else {})}
    server.put("Queue", name, spec=spec, status={"state": state} if state else {})


def group(server: Server, name: str, in_queue: str, phase: str = "Pending") -> None:
    server.put("PodGroup", name, "ns", spec={"queue": in_queue}, status={"phase": phase})


def command(server: Server, action: str, target: str, name: str = "c", uid: str = "") -> None:
    reference = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": target, "uid": uid}
    server.put("Command", name, "default", action=action, target=reference)


def state(server: Server, name: str) -> str:
    return str(server.of("Queue")[name].get("status", {}).get("state", ""))


def marked(server: Server, name: str) -> bool:
    return MARK in server.of("Queue")[name]["metadata"].get("annotations", {})


def tree(server: Server) -> Server:
    """A parent with two children, one of which was closed for itself, and a grandchild."""
    queue(server, "p")
    queue(server, "a", "p")
    queue(server, "b", "p", "Closed")
    queue(server, "leaf", "a")
    settled(server)
    return server


def test_root_and_default_are_made_and_made_again() -> None:
    server = Server()
    settled(server)
    assert {name: it["spec"]["reclaimable"] for name, it in server.of("Queue").items()} == {
        "default": True,
        "root": False,
    }
    server.remove("Queue", "root")
    server.remove("Queue", "default")
    settled(server)
    assert sorted(server.of("Queue")) == ["default", "root"]
    assert state(server, "root") == "Open"


def test_a_new_queue_opens() -> None:
    server = Server()
    queue(server, "q")
    settled(server)
    assert state(server, "q") == "Open"


def test_closing_waits_for_the_last_group() -> None:
    server = Server()
    queue(server, "q")
    group(server, "g", "q", "Running")
    command(server, "CloseQueue", "q")
    settled(server)
    assert (state(server, "q"), server.of("Command")) == ("Closing", {})
    server.remove("PodGroup", "g", "ns")
    settled(server)
    assert state(server, "q") == "Closed"


def test_a_parent_closes_all_below_it_and_opens_those_that_it_closed() -> None:
    server = tree(Server())
    command(server, "CloseQueue", "p")
    settled(server)
    assert {name: state(server, name) for name in ("p", "a", "b", "leaf")} == dict.fromkeys(
        ("p", "a", "b", "leaf"), "Closed"
    )
    assert [marked(server, name) for name in ("p", "a", "b", "leaf")] == [False, True, False, True]
    command(server, "OpenQueue", "p")
    settled(server)
    assert [state(server, name) for name in ("p", "a", "b", "leaf")] == ["Open", "Open", "Closed", "Open"]
    assert not any(marked(server, name) for name in ("p", "a", "b", "leaf"))


def test_a_child_does_not_open_under_a_closed_parent() -> None:
    server = tree(Server())
    command(server, "CloseQueue", "p")
    settled(server)
    command(server, "OpenQueue", "a")
    process = settled(server)
    assert (state(server, "a"), server.of("Command")) == ("Closed", {})
    (told,) = process.said
    assert told.warning
    assert 'parent "p" is closed' in told.message


def test_a_child_that_was_closed_for_itself_too_stays_closed() -> None:
    server = tree(Server())
    command(server, "CloseQueue", "p")
    settled(server)
    command(server, "CloseQueue", "a")
    settled(server)
    command(server, "OpenQueue", "p")
    settled(server)
    assert [state(server, name) for name in ("p", "a", "leaf")] == ["Open", "Closed", "Closed"]


def test_a_queue_that_is_new_or_moved_below_a_closed_one_closes() -> None:
    server = Server()
    queue(server, "p", state="Closed")
    queue(server, "moved")
    settled(server)
    queue(server, "new", "p")
    server.change("Queue", "moved", spec={"parent": "p"})
    settled(server)
    assert [(state(server, it), marked(server, it)) for it in ("new", "moved")] == [("Closed", True)] * 2
    server.change("Queue", "moved", spec={"parent": None})
    settled(server)
    assert (state(server, "moved"), marked(server, "moved")) == ("Open", False)


def test_the_root_cannot_be_closed() -> None:
    server = Server()
    command(server, "CloseQueue", "root")
    process = settled(server)
    assert (state(server, "root"), server.of("Command")) == ("Open", {})
    assert [told.warning for told in process.said] == [True]
    server.change("Queue", "root", status={"state": "Closed"})
    settled(server)
    assert state(server, "root") == "Open"


def test_a_queue_without_a_way_to_the_root_is_unknown_until_it_has_one_and_the_others_go_on() -> None:
    server = Server()
    queue(server, "lost", "nowhere")
    queue(server, "below", "lost")
    queue(server, "x", "y")
    queue(server, "y", "x")
    queue(server, "shut", "nowhere", "Closed")
    queue(server, "fine")
    process = settled(server)
    assert {state(server, name) for name in ("lost", "below", "x", "y")} == {"Unknown"}
    assert (state(server, "shut"), state(server, "fine")) == ("Closed", "Open")
    said = {told.target.name: told.message for told in process.said}
    assert 'parent queue "nowhere" does not exist' in said["lost"]
    assert 'parent queue "lost" has no way to the root' in said["below"]
    assert 'its parent "y" is also below it' in said["x"]
    queue(server, "nowhere")
    server.change("Queue", "y", spec={"parent": "fine"})
    settled(server)
    assert {state(server, name) for name in ("lost", "below", "x", "y")} == {"Open"}
    assert state(server, "shut") == "Closed"


def test_groups_are_counted_by_phase() -> None:
    server = Server()
    queue(server, "q")
    for number, phase in enumerate(("", "Pending", "Running", "Inqueue", "Unknown", "Completed", "Running")):
        group(server, f"g{number}", "q", phase)
    server.put("PodGroup", "plain", "ns", spec={}, status={"phase": "Running"})
    server.change("Queue", "q", status={"allocated": {"cpu": "3"}})
    settled(server)
    counts = {"pending": 2, "running": 2, "inqueue": 1, "unknown": 1, "completed": 1}
    assert server.of("Queue")["q"]["status"] == {"state": "Open", "allocated": {"cpu": "3"}, **counts}
    assert server.of("Queue")["default"]["status"]["running"] == 1
    server.change("PodGroup", "g0", "ns", spec={"queue": "default"})
    settled(server)
    assert server.of("Queue")["q"]["status"]["pending"] == 1
    assert server.of("Queue")["default"]["status"]["pending"] == 1


def test_a_burst_of_groups_costs_one_write_and_one_more_when_the_time_is_up() -> None:
    """Time stands still during the burst, however long this machine takes over it."""

    async def course(server: Server) -> list[Any]:
        began_s = 0.0
        process = Process(
            server, counts_every_s=0.05, clock=lambda: began_s if server.events else began_s + 1.0
        )
        queue(server, "q")
        await process.start()
        await process.settle()
        server.writes.clear()
        began_s = 10.0
        for number in range(100):
            group(server, f"g{number}", "q")
        await process.settle()
        return server.writes

    assert len(asyncio.run(course(Server()))) in (1, 2)


@pytest.mark.parametrize(
    ("action", "target", "uid", "part"),
    [
        ("Explode", "q", "", 'not "Explode"'),
        ("CloseQueue", "nobody", "", 'queue "nobody" does not exist'),
        ("CloseQueue", "q", "another", "meant for an earlier queue"),
    ],
)
def test_a_command_that_makes_no_sense_is_removed_and_said_so(
    action: str, target: str, uid: str, part: str
) -> None:
    server = Server()
    queue(server, "q")
    command(server, action, target, uid=uid)
    process = settled(server)
    assert (state(server, "q"), server.of("Command")) == ("Open", {})
    assert [told.warning for told in process.said] == [True]
    assert part in process.said[0].message


def test_commands_are_carried_out_in_their_order() -> None:
    server = Server()
    queue(server, "q")
    for number, action in enumerate(("CloseQueue", "OpenQueue", "CloseQueue", "OpenQueue", "CloseQueue")):
        command(server, action, "q", name=f"z{9 - number}")
    settled(server)
    assert (state(server, "q"), server.of("Command")) == ("Closed", {})


def test_a_state_is_not_written_over_one_that_nobody_here_has_seen() -> None:
    """Somebody closes a new queue before the watch tells of it."""

    async def course(server: Server) -> None:
        process = Process(server)
        queue(server, "q")
        await process.start()
        server.change("Queue", "q", status={"state": "Closed"})
        server.events.clear()
        await process.settle()

    server = Server()
    asyncio.run(course(server))
    assert state(server, "q") == "Closed"


def test_counts_of_a_queue_are_not_written_into_a_later_one_of_its_name() -> None:
    """It is made anew while they are on their way; the new one is looked at first."""
    asked: list[str] = []

    async def made_anew(method: str, path: str) -> None:
        if not path.endswith(("/queues/q", "/queues/q/status")):
            return
        if method == "PATCH" and not asked:
            server.remove("Queue", "q")
            queue(server, "q", state="Closed")
            server.events.clear()
        asked.append(method)

    async def course() -> None:
        process = Process(server)
        queue(server, "q", state="Open")
        group(server, "g", "q")
        await process.start()
        server.before = made_anew
        await process.settle()

    server = Server()
    asyncio.run(course())
    assert asked == ["PATCH", "GET", "PATCH"]
    assert (state(server, "q"), server.of("Queue")["q"]["status"]["pending"]) == ("Closed", 1)


def test_an_order_is_not_lost_when_the_queue_is_not_as_it_was_seen() -> None:
    async def course(server: Server) -> None:
        process = Process(server)
        queue(server, "q", state="Open")
        await process.start()
        await process.settle()
        server.change("Queue", "q", spec={"weight": 5})
        server.events.clear()
        command(server, "CloseQueue", "q")
        await process.settle()

    server = Server()
    asyncio.run(course(server))
    assert (state(server, "q"), server.of("Command")) == ("Closed", {})


def test_an_order_to_a_queue_that_is_about_to_be_made_waits_for_it() -> None:
    server = Server()
    command(server, "CloseQueue", "default")
    settled(server)
    assert (state(server, "default"), server.of("Command")) == ("Closed", {})


def test_commands_to_jobs_are_not_ours() -> None:
    server = Server()
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "j1"}
    server.put("Command", "c", "ns", action="AbortJob", target=target)
    settled(server)
    assert list(server.of("Command")) == ["ns/c"]


def test_another_default_queue_is_made_and_takes_pods_that_name_none() -> None:
    server = Server()
    server.put("Pod", "p", "ns", "u1", **pod_parts())
    server.put("Pod", "q", "ns", "u2", **pod_parts(annotations={QUEUE: "mine"}))
    command(server, "CloseQueue", "batch")
    settled(server, rules=Rules(default_queue="batch"))
    assert sorted(server.of("Queue")) == ["batch", "root"]
    assert state(server, "batch") == "Closing"  # it holds a group
    queues = {key: group["spec"]["queue"] for key, group in server.of("PodGroup").items()}
    assert queues == {"ns/podgroup-u1": "batch", "ns/podgroup-u2": "mine"}
