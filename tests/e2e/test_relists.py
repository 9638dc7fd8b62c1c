"""Deletions that no watch tells the controllers of: kopf lists a kind again after a gap, and says nothing."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest

from tests.cluster.waiting import until
from tests.e2e import objects
from tests.e2e.proxy import FlakyProxy, kubeconfig_for, port_of
from volcano_py.client.api import RESOURCES, Api
from volcano_py.controllers.operator import Operator
from volcano_py.controllers.options import Options
from volcano_py.simulator.apiserver.serving import EmbeddedServer

GROUP, QUEUE, SPACE = RESOURCES["PodGroup"], RESOURCES["Queue"], RESOURCES["Namespace"]
HISTORY = 40
"""Changes that the server remembers: whoever misses more has to list again."""
WITHIN_S = 120.0
"""Far less than the five minutes after which the controllers list everything in any case."""


async def counted(api: Api) -> int | None:
    """Groups of the queue ``default`` as its status says; None before it does."""
    queues = (await api.get(QUEUE.path()))["items"]
    status = {each["metadata"]["name"]: each.get("status", {}) for each in queues}.get("default", {})
    count = status.get("pending")
    return None if count is None else int(count)


async def wait_counted(api: Api, count: int) -> None:
    end = time.monotonic() + WITHIN_S
    while await counted(api) != count:
        assert time.monotonic() < end, f"not {count} groups but {await counted(api)}"
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("stay", [0, 2])
def test_objects_deleted_while_the_watch_was_cut_are_found_gone(tmp_path: Path, stay: int) -> None:
    """*stay* groups are left for the list; of none there is no entry that could tell of it."""

    async def course() -> None:
        dice = random.Random(5)
        async with EmbeddedServer(history=HISTORY) as server:
            straight, proxied = tmp_path / "straight", tmp_path / "proxied"
            server.write_kubeconfig(straight)
            proxy = FlakyProxy(port_of(straight), dice)
            async with await Api.connect(str(straight)) as api, proxy.listening() as port:
                operator = Operator(
                    Options(kubeconfig=str(kubeconfig_for(straight, port, proxied)), election=None)
                )
                running = asyncio.ensure_future(operator.run())
                try:
                    await live(api, proxy, operator)
                finally:
                    operator.stop()
                    await running

    async def live(api: Api, proxy: FlakyProxy, operator: Operator) -> None:
        names = [f"g{number}" for number in range(5)]
        for name in names:
            await api.post(GROUP.path("default"), objects.group("default", name, 1))
        await wait_counted(api, len(names))
        term = operator.figures.term
        assert term is not None
        # The first list is the term's own, the second follows kopf's first; it may be over by now.
        await until(lambda: term.intake.lists["PodGroup"] >= 2, within_s=WITHIN_S)
        proxy.go_down()
        for name in names[stay:]:
            await api.delete(GROUP.path("default", name))
        for number in range(2 * HISTORY):
            await api.post(SPACE.path(), objects.namespace(f"noise-{number}"))
        proxy.is_down = False
        await wait_counted(api, stay)

    asyncio.run(course())
