"""A start on 10,000 nodes and 50,000 running pods, then changes that alter no decision."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.e2e.copies import multiply, uid
from benchmarks.e2e.measuring import at_once, cpu_s, create, peak_mib, running, scraper
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.flags import free_ports
from tests.e2e import objects
from tests.e2e.components import Component
from volcano_py.client.api import RESOURCES, Api

NODES: Final = 10_000
PODS: Final = 50_000
GANG: Final = 100
CHANGES_PER_S: Final = 100
IDLE_S: Final = 60
REST_CORE: Final = 0.01
"""Share of a core below which the scheduler is at rest."""
POD: Final = RESOURCES["Pod"]
NODE: Final = RESOURCES["Node"]


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
    await _nodes(plane, api, nodes)
    groups = [objects.group("bench", f"runs-{i:03}", 1, "bench") for i in range(pods // GANG)]
    await at_once((create(api, group) for group in groups), "groups", len(groups))
    await _pods(plane, api, pods, nodes)
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
            await _settled(pid)
            cycles, before, at = (await read())["volcano_py_cycles_total"], cpu_s(pid), time.monotonic()
            changes = await _change(api, pods)
            span = time.monotonic() - at
            idle = (cpu_s(pid) - before) / span
            cycles = (await read())["volcano_py_cycles_total"] - cycles
            return Start(first, used, peak_mib(pid), idle, changes / span, cycles)


async def _nodes(plane: ControlPlane, api: Api, count: int) -> None:
    """Nodes big-00000, big-00001, ..."""
    await create(api, objects.node("big-00000", cpu="64"))
    first = (await api.get(NODE.path(None, "big-00000")))["metadata"]["uid"]

    def differs(number: int) -> dict[str, str]:
        return {"big-00000": f"big-{number:05}", first: uid(number)}

    await multiply(plane, "/registry/minions/big-00000", count - 1, differs)


async def _pods(plane: ControlPlane, api: Api, count: int, nodes: int) -> None:
    """Pods run-00000, run-00001, ..., running on the nodes in turn."""
    pod = objects.pod("bench", "run-00000", group="runs-000", cpu="1", nodeName="big-00000")
    await create(api, pod)
    running = {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}
    await api.patch(POD.path("bench", "run-00000", "status"), running)
    first = (await api.get(POD.path("bench", "run-00000")))["metadata"]["uid"]

    def differs(number: int) -> dict[str, str]:
        return {
            "run-00000": f"run-{number:05}",
            "runs-000": f"runs-{number // GANG:03}",
            "big-00000": f"big-{number % nodes:05}",
            first: uid(10**6 + number),
        }

    await multiply(plane, "/registry/pods/bench/run-00000", count - 1, differs)


async def _settled(pid: int) -> None:
    """Until the process is at rest: after a first start it says of 500 groups that they run."""
    for _ in range(30):
        before = cpu_s(pid)
        await asyncio.sleep(2)
        if cpu_s(pid) - before < 2 * REST_CORE:
            return


async def _change(api: Api, pods: int) -> int:
    """Change the readiness of running pods, 100 a second, for a minute; how many were changed."""
    began, done, limit = time.monotonic(), 0, asyncio.Semaphore(32)

    async def one(number: int) -> None:
        async with limit:
            ready = {"type": "Ready", "status": "True", "reason": f"r{number}"}
            path = POD.path("bench", f"run-{number % pods:05}", "status")
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
