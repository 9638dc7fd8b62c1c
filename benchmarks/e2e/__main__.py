"""``make bench-e2e``: both sides on one real kube-apiserver, as a table and build/bench-e2e.json."""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import yaml
from rich.console import Console
from rich.table import Table

from benchmarks.e2e import binds, latency, listing, start
from benchmarks.e2e.measuring import NODES, at_once, create
from tests.controlplane.controlplane import ControlPlane
from tests.e2e import objects, programs
from volcano_py.client.api import RESOURCES, Api, ApiError

ROOT: Final = Path(__file__).parents[2]
PARTS: Final[Mapping[str, Callable[..., Coroutine[Any, Any, Any]]]] = {
    "binds": binds.measure,
    "latency": latency.measure,
    "start": start.measure,
    "list": listing.measure,
}
FLAGS: Final = [
    # Pods need no token here, and nodes no controller that takes their first taint away.
    "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
]


async def prepare(api: Api) -> None:
    """What all parts need: nodes, the kinds, a namespace, a queue."""
    await at_once((create(api, objects.node(f"n{i}", cpu="64")) for i in range(NODES)), "nodes", NODES)
    for path in sorted((ROOT / "crds" / "yaml").glob("*.yaml")):
        await create(api, yaml.safe_load(path.read_text()))
    for name in ("bench", "volcano-system"):
        await create(api, objects.namespace(name))
    for queue in ("root", "default", "bench"):
        for _ in range(50):
            try:
                await api.post(RESOURCES["Queue"].path(), objects.queue(queue))
                break
            except ApiError as error:
                if not error.is_missing:
                    raise
                await asyncio.sleep(0.2)


async def run(parts: list[str], place: Path) -> dict[str, Any]:
    """Measure *parts* on a new server."""
    found: dict[str, Any] = {}
    with ControlPlane(place / "server", programs.folder(), apiserver_flags=FLAGS) as plane:
        async with await Api.connect(str(plane.kubeconfig), agent="bench") as api:
            await prepare(api)
            for part in parts:
                found[part] = asdict(await PARTS[part](plane, api, place))
    return found


def rows(found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What was measured, the figure and the target."""
    if part := found.get("binds"):
        count, median, ratios = len(part["rounds"]), part["median"], sorted(part["ratios"])
        found_ratio = f"{part['ratio']:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        yield f"5,000 binds, throughput against a plain loop, {count} rounds", found_ratio, "at least 0.85"
        yield "  plain loop", f"{median['loop_s']:.1f} s, {median['loop_cpu_ms']:.2f} ms CPU a pod", ""
        yield "  scheduler", f"{median['scheduler_s']:.1f} s", ""
        yield "  scheduler, CPU a pod", f"{median['scheduler_cpu_ms']:.2f} ms", "at most 1.0 ms"
        server = f"{median['server_loop_cpu_ms']:.2f} / {median['server_scheduler_cpu_ms']:.2f} ms"
        yield "  server, CPU a pod (loop / scheduler)", server, ""
    if part := found.get("latency"):
        shown = " / ".join(f"{part[key]:.0f}" for key in ("p50_ms", "p90_ms", "p99_ms"))
        yield "created to bound, ms (p50 / p90 / p99)", shown, "p99 under 100"
    if part := found.get("start"):
        yield "start with 10,000 nodes, 50,000 pods", f"{part['first_cycle_s']:.1f} s", "under 30 s"
        yield "  CPU until the first cycle", f"{part['start_cpu_s']:.1f} s", ""
        yield "  peak memory", f"{part['peak_mib']:.0f} MiB", "under 1,024 MiB"
        changes = f"{part['changes_per_s']:.0f} changes a second, {part['cycles']:.0f} cycles"
        yield f"  idle, {changes}", f"{100 * part['idle_core']:.2f} % of a core", "under 2 %"
    if part := found.get("list"):
        yield f"list of {part['pods']:,} pods", f"{part['list_s']:.1f} s", "no minutes"
        yield "  CPU", f"{part['list_cpu_s']:.1f} s", ""
        yield "  peak memory", f"{part['list_peak_mib']:.0f} MiB", "no gigabytes"


def main() -> None:
    """Measure what is named, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS))
    arguments = parser.parse_args()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as place:
        found = asyncio.run(run(arguments.parts, Path(place)))
    table = Table("measured", "figure", "target", title="volcano-py on a real kube-apiserver")
    for row in rows(found):
        table.add_row(*row)
    Console().print(table)
    (ROOT / "build").mkdir(exist_ok=True)
    (ROOT / "build" / "bench-e2e.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
