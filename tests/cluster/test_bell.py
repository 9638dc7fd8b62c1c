"""While nothing matters the server is read seldom; who comes new is heard of all the same."""

from __future__ import annotations

import asyncio

import pytest

from tests.cluster import fault_server as fs
from tests.cluster.test_feed_faults import PODS, View, following, pod, scenario
from tests.cluster.waiting import until

LONG_S = 3600.0
"""No test waits for the end of such a rest."""


async def at_rest(server: fs.FaultServer, view: View) -> None:
    """Return when the feed rests for long and listens."""
    server.bookmark = False
    server.put(PODS, pod("last"))
    await view.feed.synced()
    await until(lambda: view.feed.stats.kinds["Pod"].state == "watching", "the watch")
    view.feed.rest(LONG_S, listen=True)
    await until(lambda: view.feed.listens, "it listens")
    server.delete(PODS, "a/last")
    await until(view.caught_up, "what is read before the rest")


def bells(server: fs.FaultServer) -> list[dict[str, str]]:
    return [query for _, _, query in server.requests if "fieldSelector" in query]


def test_a_new_pod_ends_the_rest() -> None:
    async def body(server: fs.FaultServer) -> None:
        server.put(PODS, pod("old"))
        async with following(server) as view:
            await at_rest(server, view)
            server.put(PODS, pod("new"))
            await until(view.caught_up, "the new pod")
            assert view.feed.rang
            assert not view.feed.listens
            assert bells(server)[0]["fieldSelector"] == "spec.nodeName="

    scenario(body)


def test_pods_that_go_or_get_a_node_end_no_rest() -> None:
    """For the watch of pods without a node both are deletions."""

    async def body(server: fs.FaultServer) -> None:
        server.put(PODS, pod("old"))
        server.put(PODS, pod("goes"))
        async with following(server) as view:
            await at_rest(server, view)
            server.delete(PODS, "a/goes")
            await asyncio.sleep(0.2)  # nothing is to happen
            assert view.feed.listens
            assert view.feed.take() == []
            server.put(PODS, pod("new"))
            await until(view.caught_up, "all that came meanwhile")

    scenario(body)


@pytest.mark.parametrize(
    "fault", [fs.Refusal(410, "Expired"), fs.Refusal(403), fs.Drop(), fs.End()], ids=repr
)
def test_nobody_rests_for_long_where_listening_fails(fault: fs.Fault) -> None:
    async def body(server: fs.FaultServer) -> None:
        async with following(server) as view:
            await until(lambda: len(server.requests) == 2, "a list and a watch")
            server.faults.extend([fault, fault])  # a connection that was there before is tried again
            view.feed.rest(LONG_S, listen=True)
            await until(lambda: view.feed.rang, "the bell that fails rings")
            assert not view.feed.listens
            server.put(PODS, pod("new"))
            await until(view.caught_up, "the pod")

    scenario(body)


def test_who_is_told_not_to_listen_hangs_up_and_can_be_told_again() -> None:
    async def body(server: fs.FaultServer) -> None:
        server.put(PODS, pod("old"))
        async with following(server) as view:
            await view.feed.synced()
            for turn in range(1, 4):
                view.feed.rest(0.01, listen=True)
                await until(lambda: view.feed.listens, "it listens")
                assert len(bells(server)) == turn
                view.feed.rest(0.01, listen=True)
                view.feed.rest(0.0)
                assert not view.feed.listens
                await asyncio.sleep(0)  # it is about to hang up
                view.feed.rest(0.01, listen=True)
                view.feed.rest(0.0)
            assert not view.feed.rang
            server.put(PODS, pod("new"))
            await until(view.caught_up, "the pod")

    scenario(body)
