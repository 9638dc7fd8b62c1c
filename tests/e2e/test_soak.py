"""A day's worth of events, compressed: the scheduler holds no more at the end than after its warm-up.

A cluster with 100 changes of pods a second sees 8.6 million a day. What a scheduler might keep of each shows
after some hundred thousand: the last third of them may leave no memory behind, but for a few MiB of noise and
of what is kept for an hour (the event that tells of a PodGroup's start). Names, labels and requests are new
each time, nodes come and go, so that nothing is known already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e import objects
from tests.e2e.cluster import Cluster
from tests.e2e.components import Component
from tests.e2e.live import Document
from volcano_py.client.api import RESOURCES, Api

GANGS, MEMBERS = 25, 20
EVENTS_A_POD = 5  # made, bound, running, ended, deleted
EVENTS_A_WAVE = GANGS * MEMBERS * EVENTS_A_POD
SHORT, LONG = 2 * EVENTS_A_WAVE, 55 * EVENTS_A_WAVE
NOISE_MIB = 5.0
NODES = 20
POD, GROUP = RESOURCES["Pod"], RESOURCES["PodGroup"]


@dataclass
class Waves:
    """Gangs that come, run, end and go, wave after wave.

    Attributes:
        resident: MiB of the scheduler after each wave.
    """

    cluster: Cluster
    scheduler: Component
    resident: list[float] = field(default_factory=list)

    def run(self, number: int) -> None:
        """One wave, until nothing of it is left."""
        documents = list(self._documents(number))
        self.cluster.create(*documents)
        pods = [each["metadata"]["name"] for each in documents if each["kind"] == "Pod"]
        self.cluster.wait_bound(len(pods), within_s=300)
        for phase in ("Running", "Succeeded"):
            self._each(self._say(name, phase) for name in pods)
        self._each(self._delete(POD.path(self.cluster.space, name)) for name in pods)
        groups = [each["metadata"]["name"] for each in documents if each["kind"] == "PodGroup"]
        self._each(self._delete(GROUP.path(self.cluster.space, name)) for name in groups)
        self._replace_node(number)
        self.resident.append(resident_mib(self.scheduler))

    def _documents(self, number: int) -> Iterator[Document]:
        """Each wave has labels, requests and names of its own."""
        for gang in range(GANGS):
            name = f"w{number}-{gang}"
            asks = {
                "cpu": f"{100 + (number * 7 + gang) % 50}m",
                "memory": f"{1 + (number * GANGS + gang) % 900}Mi",
            }
            group, *pods = objects.gang(self.cluster.space, name, MEMBERS, requests=asks)
            for pod in pods:
                pod["metadata"]["labels"] = {"job": name}
            yield from (group, *pods)

    def _replace_node(self, number: int) -> None:
        self.cluster.delete("Node", f"w{number - 1}")
        self.cluster.create(objects.node(f"w{number}", cpu="1", labels={"rack": f"r{number}"}))

    def _each(self, work: Iterable[Awaitable[object]]) -> None:
        self.cluster.call(_in_batches(list(work)))

    def _say(self, name: str, phase: str) -> Awaitable[object]:
        return self._api.patch(POD.path(self.cluster.space, name, "status"), {"status": {"phase": phase}})

    def _delete(self, path: str) -> Awaitable[object]:
        return self._api.delete(path, {"gracePeriodSeconds": 0})

    @property
    def _api(self) -> Api:
        return self.cluster.api


async def _in_batches(work: list[Awaitable[object]]) -> None:
    for at in range(0, len(work), 64):
        await asyncio.gather(*work[at : at + 64])


def resident_mib(component: Component) -> float:
    """Resident memory of its process."""
    assert component.process is not None
    status = Path(f"/proc/{component.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def left(component: Component) -> dict[str, float]:
    """What it still holds of waves that are over: objects beyond those that stay, and orders on their way."""
    stay = {"volcano_py_feed_objects Node": NODES + 1}
    gone = ("volcano_py_feed_objects Pod", "volcano_py_feed_objects PodGroup", "volcano_py_orders_in_flight")
    return {
        name: value
        for name, value in component.figures().items()
        if name.startswith((*gone, *stay)) and value != stay.get(name, 0)
    }


@pytest.mark.parametrize("server", ["embedded"], indirect=True)
@pytest.mark.parametrize("events", [SHORT, pytest.param(LONG, marks=pytest.mark.long)])
def test_events_leave_nothing_behind(cluster: Cluster, events: int) -> None:
    cluster.default_queue()
    cluster.nodes(NODES, cpu="32", memory="256Gi")
    cluster.create(objects.node("w-1", cpu="1"))
    scheduler = cluster.scheduler("--no-leader-elect")
    waves = Waves(cluster, scheduler)
    waves.run(0)
    for number in range(1, events // EVENTS_A_WAVE):
        waves.run(number)
    cluster.until(lambda: not left(scheduler), what="all waves forgotten")
    assert scheduler.figures()["volcano_py_feed_events_total Pod"] >= events * 0.5, "some are read together"
    third = len(waves.resident) // 3
    middle, last = min(waves.resident[third : 2 * third + 1]), min(waves.resident[2 * third :])
    print(f"{events} events, MiB: {[round(each, 1) for each in waves.resident[:: max(1, third // 4)]]}")  # noqa: T201
    if events == LONG:
        assert last - middle < NOISE_MIB
