"""Changes on the server, for commands that go on: one tick for any number of changes close together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Final

from volcano_py.cli.vcctl.cluster import Cluster
from volcano_py.client.api import ApiError, Unreachable
from volcano_py.client.resources import RESOURCES

REDRAW_S: Final = 2.0
"""Least time between two pictures of a whole cluster, each of which reads all of it."""
CALM_S: Final = 0.3
"""Changes this close together are shown as one."""
SEEN: Final = ("Pod", "Node", "PodGroup", "Queue")
"""Kinds whose changes can change a picture of the cluster."""
AGAIN_S: Final = 1.0
"""Pause before a watch that broke is opened again."""


async def changes(cluster: Cluster, kinds: Sequence[str]) -> AsyncIterator[None]:
    """A tick after every burst of changes to objects of *kinds*; never ends by itself.

    Raises:
        ApiError: the server does not let us watch.
    """
    stirred = asyncio.Event()
    watches = [asyncio.create_task(_watch(cluster, kind, stirred)) for kind in kinds]
    for watch in watches:
        watch.add_done_callback(lambda _: stirred.set())
    try:
        while True:
            await stirred.wait()
            for watch in watches:
                if watch.done():
                    watch.result()
            await asyncio.sleep(CALM_S)
            stirred.clear()
            yield
    finally:
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


async def _watch(cluster: Cluster, kind: str, stirred: asyncio.Event) -> None:
    resource = RESOURCES[kind]
    namespace = cluster.listed if resource.namespaced else None
    path = resource.path(namespace)
    query = {"watch": "true", "allowWatchBookmarks": "false"}
    while True:
        try:
            async with aclosing(cluster.api.lines(path, query, idle_timeout_s=None)) as lines:
                async for _ in lines:
                    stirred.set()
        except Unreachable:
            pass  # a server that is gone for a moment
        except ApiError as error:
            if not (error.is_passing or error.is_gone):
                raise
        await asyncio.sleep(AGAIN_S)
