"""A writer on a server with faults, run to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.cluster.pod_server import Fault, PodServer
from volcano_py.client.api import Api
from volcano_py.scheduler.cluster.orders import BindOrder, EvictOrder, Order, Outcome
from volcano_py.scheduler.cluster.writer import Writer, WriterSettings, always

Work = Callable[[Writer, Api], Awaitable[None]]


class Clock:
    """A wall clock that is set by hand."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Epoch seconds."""
        return self.now


def run(
    folder: Path,
    server: PodServer,
    work: Work,
    *,
    fence: Callable[[], bool] = always,
    clock: Callable[[], float] | None = None,
    **settings: Any,
) -> list[Outcome]:
    """Do *work* with a writer on *server*; every outcome, those of closing it last."""

    async def main() -> list[Outcome]:
        async with server.api(folder) as api:
            writer = Writer(api, fence=fence, settings=WriterSettings(**settings), clock=clock or Clock())
            await work(writer, api)
            outcomes = writer.take_outcomes()
            await writer.close()
            return [*outcomes, *writer.take_outcomes()]

    return asyncio.run(main())


def submit(*orders: Order) -> Work:
    """Submit *orders* and wait until all is done."""

    async def work(writer: Writer, api: Api) -> None:
        writer.submit(orders)
        assert await writer.drain(60.0)

    return work


def bind(name: str, node: str = "n1", uid: str = "", **more: Any) -> BindOrder:
    """Pod *name* of namespace ``ns`` onto *node*."""
    return BindOrder("ns", name, uid or f"uid-{name}", node, **more)


def evict(name: str, **more: Any) -> EvictOrder:
    """Pod *name* of namespace ``ns`` has to go."""
    said = {
        "reason": "reclaim: queue a is over",
        "for_whom": "ns/g",
        "action": "reclaim",
        "lost": "8 cpu-seconds",
    }
    return EvictOrder("ns", name, f"uid-{name}", **{**said, **more})


def first(*faults: Fault, ends: str = "/binding") -> Callable[[str, str], Fault | None]:
    """The first requests to paths that end so meet *faults*, one each."""
    left = list(faults)

    def choose(method: str, path: str) -> Fault | None:
        return left.pop(0) if left and path.endswith(ends) else None

    return choose
