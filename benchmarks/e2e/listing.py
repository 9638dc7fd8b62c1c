"""A list of 100,000 pods, as a component takes it in when it starts.

    python -m benchmarks.e2e.listing KUBECONFIG

lists all pods once and prints how many, wall and CPU seconds, and the peak of resident memory in MiB.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.e2e.copies import multiply, uid
from benchmarks.e2e.measuring import create, peak_mib
from tests.controlplane.controlplane import ControlPlane
from tests.e2e import objects
from volcano_py.client.api import RESOURCES, Api
from volcano_py.scheduler.cluster.feed import Feed

PODS: Final = 100_000
NODES: Final = 1000
POD: Final = RESOURCES["Pod"]
NAME: Final = "copied-000000"
NODE: Final = "node-000"


@dataclass(frozen=True)
class Listing:
    """What it took.

    Attributes:
        pods: that were listed.
        list_s, list_cpu_s: wall and CPU seconds of the process that lists.
        list_peak_mib: its peak of resident memory, imports included.
    """

    pods: int
    list_s: float
    list_cpu_s: float
    list_peak_mib: float


async def measure(plane: ControlPlane, api: Api, place: Path) -> Listing:
    """Fill the server up to 100,000 pods, then list them in a process of its own."""
    await create(api, objects.pod("bench", NAME, group="copied", nodeName=NODE))
    first = (await api.get(POD.path("bench", NAME)))["metadata"]["uid"]
    others = (await api.get(POD.path(), limit="1"))["metadata"].get("remainingItemCount", 0)

    def differs(number: int) -> dict[str, str]:
        return {
            NAME: f"copied-{number:06}",
            NODE: f"node-{number % NODES:03}",
            first: uid(10**7 + number),
        }

    await multiply(plane, f"/registry/pods/bench/{NAME}", PODS - 1 - others, differs)
    script = [sys.executable, "-m", "benchmarks.e2e.listing", str(plane.kubeconfig)]
    child = await asyncio.create_subprocess_exec(*script, stdout=asyncio.subprocess.PIPE)
    out, _ = await child.communicate()
    pods, wall, cpu, peak = out.split()
    return Listing(int(pods), float(wall), float(cpu), float(peak))


async def _list(kubeconfig: str) -> None:
    async with await Api.connect(kubeconfig) as api:
        began, used = time.monotonic(), time.process_time()
        feed = Feed(api, ["Pod"])
        following = asyncio.ensure_future(feed.run())
        await feed.synced()
        wall, cpu = time.monotonic() - began, time.process_time() - used
        print(len(feed.take()), wall, cpu, peak_mib(os.getpid()))
        following.cancel()


if __name__ == "__main__":
    asyncio.run(_list(sys.argv[1]))
