"""A loop that binds and does nothing else: what the server and a Python client can do at most.

    python -m benchmarks.e2e.loop KUBECONFIG PODS NODES

binds pods plain-0, plain-1, ... and prints wall and CPU seconds.
"""

from __future__ import annotations

import asyncio
import sys
import time

from volcano_py.client.api import RESOURCES, Api

POD = RESOURCES["Pod"]


async def bind_all(kubeconfig: str, pods: int, nodes: int) -> tuple[float, float]:
    """Wall and CPU seconds of binding *pods* over *nodes* in turn, 32 in flight."""
    async with await Api.connect(kubeconfig) as api:
        began, used = time.monotonic(), time.process_time()
        numbers = iter(range(pods))

        async def worker() -> None:
            for number in numbers:
                name = f"plain-{number}"
                binding = {
                    "apiVersion": "v1",
                    "kind": "Binding",
                    "metadata": {"name": name, "namespace": "bench"},
                    "target": {"apiVersion": "v1", "kind": "Node", "name": f"n{number % nodes}"},
                }
                await api.call("POST", POD.path("bench", name, "binding"), body=binding)

        await asyncio.gather(*(worker() for _ in range(32)))
        return time.monotonic() - began, time.process_time() - used


if __name__ == "__main__":
    wall, cpu = asyncio.run(bind_all(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
    print(wall, cpu)
