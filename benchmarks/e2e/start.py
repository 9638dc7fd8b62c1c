"""A start on 10,000 nodes and 50,000 running pods, then changes that alter no decision."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.e2e.measuring import at_once, cpu_s, create, peak_mib, running, scraper
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.flags import free_ports
from tests.e2e import objects
from tests.e2e.components import Component
from volcano_py.scheduler.cluster.api import RESOURCES, Api

NODES: Final = 10_000
PODS: Final = 50_000
GANG: Final = 100
CHANGES_PER_S: Final = 100
IDLE_S: Final = 60
POD: Final = RESOURCES["Pod"]


@dataclass(frozen=True)
class Start:
    """What it took.

    Attributes:
        first_cycle_s: from the start of the process to the end of its first cycle.
        start_cpu_s: CPU until then.
        peak_mib: most resident memory until the end of the idle time.
        idle_core: share of a core with 100 changes a second that alter no decision.
        changes_per_s: changes really made.
        cycles: cycles in the idle time.
    """

    first_cycle_s: float
    start_cpu_s: float
    peak_mib: float
    idle_core: float
    changes_per_s: float
    cycles: float


async def measure(
    plane: ControlPlane, api: Api, place: Path, *, nodes: int = NODES, pods: int = PODS
) -> Start:
    """Fill the server, start the scheduler, then change running pods without meaning."""
    await at_once((create(api, objects.node(f"big-{i}", cpu="64")) for i in range(nodes)), "nodes", nodes)
    groups = [objects.group("bench", f"run-{i}", 1, "bench") for i in range(pods // GANG)]
    await at_once((create(api, group) for group in groups), "groups", len(groups))
    await at_once((_running(api, i, nodes) for i in range(pods)), "running pods", pods)
    (port,) = free_ports(1)
    scheduler = Component("scheduler", plane.kubeconfig, place, "--listen-address", f"127.0.0.1:{port}")
    async with scraper(port) as read:
        began = time.monotonic()
        with running(scheduler):
            assert scheduler.process is not None
            pid = scheduler.process.pid
            while not (await read())["volcano_py_cycles_total"]:
                await asyncio.sleep(0.1)
            first, used = time.monotonic() - began, cpu_s(pid)
            await asyncio.sleep(5)
            cycles, before, at = (await read())["volcano_py_cycles_total"], cpu_s(pid), time.monotonic()
            changes = await _change(api, pods)
            span = time.monotonic() - at
            idle = (cpu_s(pid) - before) / span
            cycles = (await read())["volcano_py_cycles_total"] - cycles
            return Start(first, used, peak_mib(pid), idle, changes / span, cycles)


def _running(api: Api, number: int, nodes: int) -> Coroutine[Any, Any, Any]:
    """Create pod *number* on its node, running."""
    name = f"run-{number}"
    pod = objects.pod("bench", name, group=f"run-{number // GANG}", cpu="1", nodeName=f"big-{number % nodes}")

    async def both() -> None:
        await create(api, pod)
        status = {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}
        await api.call(
            "PATCH",
            POD.path("bench", name, "status"),
            body=status,
            content_type="application/merge-patch+json",
            tries=8,
        )

    return both()


async def _change(api: Api, pods: int) -> int:
    """Change the readiness of running pods, 100 a second, for a minute; how many were changed."""
    began, done, limit = time.monotonic(), 0, asyncio.Semaphore(32)

    async def one(number: int) -> None:
        async with limit:
            ready = {"type": "Ready", "status": "True", "reason": f"r{number}"}
            path = POD.path("bench", f"run-{number % pods}", "status")
            await api.call(
                "PATCH",
                path,
                body={"status": {"conditions": [ready]}},
                content_type="application/merge-patch+json",
            )

    async with asyncio.TaskGroup() as group:
        while time.monotonic() - began < IDLE_S:
            group.create_task(one(done))
            done += 1
            await asyncio.sleep(max(0.0, began + done / CHANGES_PER_S - time.monotonic()))
    return done
