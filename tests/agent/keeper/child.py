"""A keeper in a process of its own, since a process loads a driver once.

Usage: python -m tests.agent.keeper.child FILE, which says as JSON what to keep. Prints a line for each event;
for a line ``metrics`` on standard input it prints what Prometheus would read, ended by ``# END``.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pynvml
import structlog
from prometheus_client import CollectorRegistry, generate_latest

from volcano_py.shim.agent.keeper import Keeper, Watch
from volcano_py.shim.agent.metrics import SliceMetrics
from volcano_py.shim.agent.policy import Answer, Freezing, Overuse, Policy, Sharing, Yielding
from volcano_py.shim.agent.tenants import Hold, Tenant


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def tenant(told: dict[str, Any]) -> Tenant:
    holds = {uuid: Hold(memory, cores) for uuid, (memory, cores) in told.pop("holds").items()}
    region = told.pop("region", None)
    return Tenant(**told, holds=holds, region=Path(region) if region else None)


def watch(told: dict[str, Any]) -> Watch:
    policy = Policy(
        Overuse(Answer(told["answer"]), tolerance_mib=0, tolerance_percent=0, over_s=told["over_s"]),
        Sharing(Yielding(told["way"]), idle_s=told["idle_s"]),
        Freezing(told["most_s"], 1.0),
    )
    return Watch(
        policy,
        every_s=0.1,
        cgroups=Path(told["root"]),
        devices=Path(told["devices"]),
        kubelet_roots=(told["name"],),
    )


async def run(told: dict[str, Any]) -> None:
    tenants = [tenant(each) for each in told.pop("tenants")]

    async def tell(whom: Tenant, reason: str, text: str) -> None:
        say(f"{reason}|{whom.name}|{text}")

    keeper = Keeper(watch(told), lambda: tenants, tell)
    registry = CollectorRegistry()
    registry.register(SliceMetrics(keeper, "n1", list))
    loop = asyncio.get_running_loop()

    def answer() -> None:
        if sys.stdin.readline():
            say(generate_latest(registry).decode() + "# END")
        else:
            loop.remove_reader(sys.stdin)

    loop.add_reader(sys.stdin, answer)
    work = asyncio.ensure_future(keeper.run())
    loop.add_signal_handler(signal.SIGTERM, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        say("ended")


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    pynvml.nvmlInit()
    asyncio.run(run(json.loads(Path(sys.argv[1]).read_text())))
