"""What waits to be read: the latest change of each object, and never two objects of one name as one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.cluster import fault_server as fs
from tests.cluster.test_feed_faults import following
from tests.cluster.waiting import until
from volcano_py.client.api import RESOURCES, Api
from volcano_py.scheduler.cluster.feed import ENGINE_KINDS, Change, Feed

PODS, NODES, GROUPS = (RESOURCES[kind].path() for kind in ("Pod", "Node", "PodGroup"))


def doc(name: str, namespace: str = "", **meta: Any) -> dict[str, Any]:
    inside = {"namespace": namespace} if namespace else {}
    return {"metadata": {"name": name, **inside, **meta}, "spec": {}}


def keys(changes: list[Change]) -> list[str]:
    return [f"{'-' if change.is_deletion else '+'}{change.kind} {change.key}" for change in changes]


def test_what_pods_refer_to_comes_before_them_whatever_was_made_first() -> None:
    async def run() -> None:
        async with fs.fault_server() as server:
            server.put(PODS, doc("p1", "a"))
            server.put(GROUPS, doc("g", "a"))
            server.put(PODS, doc("p0", "a"))
            server.put(NODES, doc("n"))
            async with following(server, kinds=ENGINE_KINDS) as view:
                await view.feed.synced()
                assert keys(view.feed.take()) == ["+Node n", "+PodGroup a/g", "+Pod a/p1", "+Pod a/p0"]

    asyncio.run(run())


def test_only_the_latest_change_of_an_object_waits() -> None:
    async def run() -> None:
        async with fs.fault_server() as server:
            server.put(PODS, doc("p", "a"))
            async with following(server) as view:
                feed = view.feed
                await feed.synced()
                assert feed.changed.is_set()
                feed.take()
                assert not feed.changed.is_set()
                assert feed.take() == []
                server.put(PODS, doc("q", "a"))
                for turn in range(5):
                    server.put(PODS, doc("p", "a", labels={"turn": str(turn)}))
                await until(lambda: feed.stats.kinds["Pod"].events == 6, "six events")
                assert feed.changed.is_set()
                first, second = feed.take()
                assert (first.key, second.key) == ("a/q", "a/p")
                assert second.item is not None
                assert second.item.metadata.labels == {"turn": "4"}
                assert (feed.stats.merged, feed.stats.taken) == (4, 3)

    asyncio.run(run())


def test_another_object_of_the_same_name_comes_after_the_end_of_the_first() -> None:
    async def run() -> None:
        async with fs.fault_server() as server:
            server.put(PODS, doc("p", "a", uid="first"))
            async with following(server) as view:
                feed = view.feed
                await feed.synced()
                feed.take()
                server.put(PODS, doc("p", "a", uid="second"))
                server.put(PODS, doc("p", "a", uid="second", labels={"later": "yes"}))
                await until(lambda: feed.stats.kinds["Pod"].events == 3, "a deletion, a new pod, its change")
                changes = feed.take()
                assert keys(changes) == ["-Pod a/p", "+Pod a/p"]
                assert changes[1].item is not None
                assert changes[1].item.metadata.labels == {"later": "yes"}
                server.put(PODS, doc("p", "a", uid="third"))
                server.delete(PODS, "a/p")
                await until(lambda: feed.stats.kinds["Pod"].events == 6, "it is gone")
                assert keys(feed.take()) == ["-Pod a/p"]

    asyncio.run(run())


def test_only_what_is_selected_is_asked_for(tmp_path: Path) -> None:
    async def run() -> None:
        async with fs.fault_server() as server, await Api.connect(server.kubeconfig(tmp_path)) as api:
            feed = Feed(api, ["Pod"], select={"Pod": {"labelSelector": "a=b"}})
            task = asyncio.create_task(feed.run())
            await until(lambda: len(server.requests) == 2, "a list and a watch")
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert [query["labelSelector"] for _, _, query in server.requests] == ["a=b", "a=b"]

    asyncio.run(run())
