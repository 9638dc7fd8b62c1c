"""5,000 pods in gangs of 50 on 1,000 nodes, against a loop that only binds, on the same server."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.e2e.measuring import NODES, at_once, cpu_s, create, memory_mib, running, scraper
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.flags import free_ports
from tests.e2e import objects
from tests.e2e.components import Component
from volcano_py.client.api import RESOURCES, Api, Resource

PODS: Final = 5000
GANG: Final = 50
ROUNDS: Final = 7
BOUND: Final = "volcano_py_bind_seconds_count"
POD: Final = RESOURCES["Pod"]


@dataclass(frozen=True)
class Round:
    """What both sides took, one after the other.

    Attributes:
        loop_s, scheduler_s: wall seconds for all binds.
        loop_cpu_ms, scheduler_cpu_ms: CPU of the process that binds, milliseconds a pod.
        server_loop_cpu_ms, server_scheduler_cpu_ms: the same of kube-apiserver and etcd.
        memory_mib: of the scheduler at the end.
    """

    loop_s: float
    scheduler_s: float
    loop_cpu_ms: float
    scheduler_cpu_ms: float
    server_loop_cpu_ms: float
    server_scheduler_cpu_ms: float
    memory_mib: float

    @property
    def ratio(self) -> float:
        """Throughput of the scheduler in units of the plain loop's."""
        return self.loop_s / self.scheduler_s


@dataclass(frozen=True)
class Binds:
    """All rounds, and the median of each figure: a machine's pace changes within a minute."""

    rounds: list[Round]
    ratios: list[float]
    ratio: float
    median: Round


async def measure(plane: ControlPlane, api: Api, place: Path) -> Binds:
    """Both sides in turn, each with pods of its own; who begins changes from round to round."""
    rounds = [await _round(plane, api, place, scheduler_first=bool(i % 2)) for i in range(ROUNDS)]
    ratios = [each.ratio for each in rounds]
    median = Round(*(statistics.median(values) for values in zip(*map(astuple, rounds), strict=True)))
    return Binds(rounds, ratios, statistics.median(ratios), median)


async def _round(plane: ControlPlane, api: Api, place: Path, *, scheduler_first: bool) -> Round:
    if scheduler_first:
        wall, cpu, server, memory = await _scheduler(plane, api, place)
        loop_s, loop_cpu, loop_server = await _loop(plane, api)
    else:
        loop_s, loop_cpu, loop_server = await _loop(plane, api)
        wall, cpu, server, memory = await _scheduler(plane, api, place)
    per_pod = 1000 / PODS
    return Round(
        loop_s, wall, loop_cpu * per_pod, cpu * per_pod, loop_server * per_pod, server * per_pod, memory
    )


@asynccontextmanager
async def _made(api: Api, name: str) -> AsyncIterator[None]:
    """The pods of one side, and none of them afterwards."""
    groups = [] if name == "plain" else [f"g{i}" for i in range(PODS // GANG)]
    for group in groups:
        await create(api, objects.group("bench", group, GANG, "bench"))
    await at_once((create(api, pod) for pod in _pods(name)), f"pods {name}", PODS)
    yield
    await at_once((_delete(api, POD, f"{name}-{i}") for i in range(PODS)), "clean up", PODS)
    for group in groups:
        await _delete(api, RESOURCES["PodGroup"], group)


def _pods(name: str) -> list[dict[str, Any]]:
    group = "" if name == "plain" else "g{}"
    return [objects.pod("bench", f"{name}-{i}", group=group.format(i // GANG), cpu="1") for i in range(PODS)]


async def _loop(plane: ControlPlane, api: Api) -> tuple[float, float, float]:
    """Bind the plain pods one after another, 32 in flight, in a process of its own."""
    script = [sys.executable, "-m", "benchmarks.e2e.loop", str(plane.kubeconfig), str(PODS), str(NODES)]
    async with _made(api, "plain"):
        before = _server_cpu(plane)
        child = await asyncio.create_subprocess_exec(*script, stdout=asyncio.subprocess.PIPE)
        out, _ = await child.communicate()
        wall, cpu = (float(part) for part in out.split())
        return wall, cpu, _server_cpu(plane) - before


async def _scheduler(plane: ControlPlane, api: Api, place: Path) -> tuple[float, float, float, float]:
    """All binds of a scheduler started on what waits."""
    async with _made(api, "ours"):
        return await _watch_binds(plane, place)


async def _watch_binds(plane: ControlPlane, place: Path) -> tuple[float, float, float, float]:
    """Wall, CPU, CPU of the server and memory, all from the first bind to the last."""
    (port,) = free_ports(1)
    listen = f"127.0.0.1:{port}"
    scheduler = Component("scheduler", plane.kubeconfig, place, "--listen-address", listen)
    async with scraper(port) as read:
        with running(scheduler):
            assert scheduler.process is not None
            pid, first, before, start_cpu = scheduler.process.pid, 0.0, 0.0, 0.0
            while (done := (await read())[BOUND]) < PODS:
                if done and not first:
                    first, before, start_cpu = time.monotonic(), _server_cpu(plane), cpu_s(pid)
                # Reading the figures costs the scheduler about 2 ms: seldom in the middle.
                await asyncio.sleep(0.5 if 0 < done < PODS - 1200 else 0.05)
            wall = time.monotonic() - first
            return wall, cpu_s(pid) - start_cpu, _server_cpu(plane) - before, memory_mib(pid)


def _server_cpu(plane: ControlPlane) -> float:
    return sum(cpu_s(plane.children[name].pid) for name in ("etcd", "kube-apiserver"))


def _delete(api: Api, resource: Resource, name: str) -> Coroutine[Any, Any, Any]:
    return api.call("DELETE", resource.path("bench", name), body={"gracePeriodSeconds": 0}, tries=8)
