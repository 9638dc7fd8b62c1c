"""Pod created to pod bound on an idle cluster of 1,000 nodes."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.e2e.measuring import create, running, scraper
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.flags import free_ports
from tests.e2e import objects
from tests.e2e.components import Component
from volcano_py.client.api import RESOURCES, Api

PODS: Final = 300
POD: Final = RESOURCES["Pod"]


@dataclass(frozen=True)
class Latency:
    """Milliseconds from the answer to the create to the watch event with the node."""

    p50_ms: float
    p90_ms: float
    p99_ms: float


async def measure(plane: ControlPlane, api: Api, place: Path) -> Latency:
    """Create pods one at a time, each when the one before is bound; the cluster has its nodes already."""
    (port,) = free_ports(1)
    scheduler = Component("scheduler", plane.kubeconfig, place, "--listen-address", f"127.0.0.1:{port}")
    async with scraper(port) as read:
        with running(scheduler):
            while not (await read())["volcano_py_cycles_total"]:
                await asyncio.sleep(0.1)
            await asyncio.sleep(2)
            spans = sorted([await _one(api, number) for number in range(PODS)])
    return Latency(*(1000 * spans[min(int(PODS * share), PODS - 1)] for share in (0.5, 0.9, 0.99)))


async def _one(api: Api, number: int) -> float:
    """Seconds until pod *number* is bound."""
    name = f"one-{number}"
    await create(api, objects.group("bench", name, 1, "bench"))
    await asyncio.sleep(0.05)
    query = {"watch": "1", "fieldSelector": f"metadata.name={name}", "timeoutSeconds": "30"}
    bound: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    watcher = asyncio.create_task(_watch(api, query, bound))
    await asyncio.sleep(0.05)
    await create(api, objects.pod("bench", name, group=name))
    began = time.monotonic()
    try:
        return await asyncio.wait_for(bound, 30) - began
    finally:
        watcher.cancel()


async def _watch(api: Api, query: dict[str, str], bound: asyncio.Future[float]) -> None:
    async for line in api.lines(POD.path("bench"), query, idle_timeout_s=60):
        if msgspec.json.decode(line)["object"]["spec"].get("nodeName") and not bound.done():
            bound.set_result(time.monotonic())
            return
