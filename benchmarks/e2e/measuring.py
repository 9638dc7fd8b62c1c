"""Processes and what they cost, the server's objects made in numbers."""

from __future__ import annotations

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
from rich.progress import Progress

from tests.e2e.components import Component
from volcano_py.client.api import RESOURCES, Api

TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
PAGE_MIB: Final = os.sysconf("SC_PAGE_SIZE") / 2**20
IN_FLIGHT: Final = 32
NODES: Final = 1000
"""On every server measured, n0 and on, before anything else."""
Document = dict[str, Any]


def cpu_s(pid: int) -> float:
    """CPU seconds that process *pid* has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def memory_mib(pid: int) -> float:
    """Resident memory now, MiB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_MIB


def peak_mib(pid: int) -> float:
    """The most resident memory *pid* ever had, MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


async def at_once(work: Iterable[Coroutine[Any, Any, Any]], title: str, total: int) -> float:
    """Carry out *work*, 32 at a time, with a progress bar; wall seconds."""
    pending = iter(work)
    began = time.monotonic()
    with Progress(transient=True) as progress:
        task = progress.add_task(title, total=total)

        async def worker() -> None:
            for each in pending:
                await each
                progress.advance(task)

        await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
    return time.monotonic() - began


def create(api: Api, document: Document) -> Coroutine[Any, Any, Any]:
    """The request that creates *document*."""
    path = RESOURCES[document["kind"]].path(document["metadata"].get("namespace"))
    return api.call("POST", path, body=document, tries=8)


async def until(holds: Callable[[], Coroutine[Any, Any, bool]], *, every_s: float, within_s: float) -> None:
    """Ask *holds* until it is true; raises TimeoutError."""
    async with asyncio.timeout(within_s):
        while not await holds():
            await asyncio.sleep(every_s)


@contextmanager
def running(component: Component) -> Any:
    """*component* as a process, stopped at the end."""
    component.start()
    try:
        yield component
    finally:
        component.stop()


@asynccontextmanager
async def scraper(port: int) -> AsyncIterator[Callable[[], Coroutine[Any, Any, defaultdict[str, float]]]]:
    """A function that reads the metrics at *port*, summed over labels; empty while nobody answers."""
    async with aiohttp.ClientSession() as session:

        async def read() -> defaultdict[str, float]:
            try:
                async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                    text = await answer.text()
            except aiohttp.ClientError:
                return defaultdict(float)
            found: defaultdict[str, float] = defaultdict(float)
            for line in text.splitlines():
                if not line.startswith("#"):
                    name, _, value = line.rpartition(" ")
                    found[name.partition("{")[0]] += float(value)
            return found

        yield read
