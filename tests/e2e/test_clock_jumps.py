"""The wall clock of scheduler and controllers is set, in the middle of their work: an hour back, a day ahead.

Nobody loses a pod or the lead over it, nothing is decided twice, and nobody waits for a time that is far away
now, nor spins over one that is long past.
"""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.e2e import objects
from tests.e2e.cluster import Cluster
from tests.e2e.components import Component
from tests.e2e.wall_clock import WallClock
from volcano_py.scheduler.model.kube.times import parse_time

HOUR_S, DAY_S = 3600, 86400
LEASES: Final = ("volcano-system/volcano-py", "volcano-system/volcano-py-controller")
GANGS, MEMBERS = 6, 4
WITHIN_S: Final = 180.0
TICKS_S: Final = float(os.sysconf("SC_CLK_TCK"))


def leads(cluster: Cluster) -> dict[str, tuple[str, int]]:
    """Who holds which Lease, and how often it has changed hands."""
    found = {key: (cluster.get("Lease", key) or {}).get("spec", {}) for key in LEASES}
    return {key: (it.get("holderIdentity", ""), it.get("leaseTransitions", 0)) for key, it in found.items()}


def cpu_s(component: Component) -> float:
    """Processor seconds that it has used."""
    assert component.process is not None
    fields = Path(f"/proc/{component.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_S


def rests(component: Component) -> bool:
    """Whether it leaves the processor alone for most of a second."""
    before = cpu_s(component)
    time.sleep(1.0)
    return cpu_s(component) - before < 0.4


def submit(cluster: Cluster, name: str) -> None:
    """Gangs, and pods that the controllers make a group for."""
    for number in range(GANGS):
        cluster.create(*objects.gang(cluster.space, f"{name}-g{number}", MEMBERS, requests={"cpu": "100m"}))
    cluster.create(*(objects.pod(cluster.space, f"{name}-p{number}") for number in range(MEMBERS)))


@pytest.fixture
def clock(tmp_path: Path) -> WallClock:
    return WallClock(tmp_path)


def test_a_clock_that_jumps_loses_nothing(cluster: Cluster, clock: WallClock) -> None:
    cluster.nodes(4, cpu="32", memory="64Gi")
    cluster.environment = clock.environment
    # So long that nobody loses it for want of a processor.
    times = ("--leader-elect-lease-duration=180s", "--leader-elect-renew-deadline=120s")
    scheduler, controller = cluster.scheduler(*times), cluster.controller()
    cluster.until(lambda: all(holder for holder, _ in leads(cluster).values()), within_s=WITHIN_S)
    held = leads(cluster)
    placed: dict[str, tuple[str, str]] = {}
    for name, shift_s in (("back", -HOUR_S), ("ahead", DAY_S), ("right", 0)):
        submit(cluster, f"{name}-before")
        cluster.until(partial(cluster.bound, name), within_s=WITHIN_S, what="a first bind")
        clock.shift(shift_s)
        submit(cluster, f"{name}-after")
        cluster.wait_bound(2 * (GANGS + 1) * MEMBERS, name, within_s=WITHIN_S)
        pods = cluster.pods()
        now = {key: (pod["metadata"]["uid"], pod["spec"]["nodeName"]) for key, pod in pods.items()}
        assert placed.items() <= now.items(), "who is bound stays where it is"
        placed = now
        cluster.until(lambda: rests(scheduler) and rests(controller), within_s=WITHIN_S, what="no busy loop")
        assert leads(cluster) == held
    cluster.assert_sound()
    assert scheduler.alive()
    assert controller.alive()
    assert '"leadership_lost"' not in scheduler.log.read_text(), "not even for a moment"


def held_pods(cluster: Cluster) -> str:
    """How many pods the queue ``default`` holds, as its status says."""
    queue = cluster.get("Queue", "default") or {}
    return str(queue.get("status", {}).get("allocated", {}).get("pods", "0"))


def test_what_is_due_does_not_wait_until_a_clock_that_was_set_back_is_right_again(
    cluster: Cluster, clock: WallClock
) -> None:
    """Nobody waits for room then, so that time alone brings the next cycle."""
    cluster.default_queue()
    cluster.nodes(1, cpu="32")
    cluster.environment = clock.environment
    cluster.scheduler("--no-leader-elect")
    cluster.create(*objects.gang(cluster.space, "one", MEMBERS, requests={"cpu": "100m"}))
    cluster.until(lambda: held_pods(cluster) == str(MEMBERS), within_s=WITHIN_S, what="told what it holds")
    clock.shift(-HOUR_S)
    for number in range(MEMBERS):
        cluster.delete("Pod", f"{cluster.space}/one-{number}", grace_s=0)
    cluster.until(lambda: held_pods(cluster) == "0", within_s=WITHIN_S, what="told that it holds no more")


def renewed(cluster: Cluster, key: str) -> float:
    """What the holder of a Lease calls the time of its last renewal, epoch seconds."""
    spec = (cluster.get("Lease", key) or {}).get("spec", {})
    return parse_time(spec["renewTime"]) if spec.get("renewTime") else 0.0


def differs(cluster: Cluster, key: str, before: float) -> bool:
    return renewed(cluster, key) != before


def wait_for_renewals(cluster: Cluster, key: str, number: int) -> None:
    for _ in range(number):
        before = renewed(cluster, key)
        cluster.until(partial(differs, cluster, key, before), within_s=WITHIN_S, what="a renewal")


def test_who_takes_over_does_not_go_by_the_wall_clock(cluster: Cluster, clock: WallClock) -> None:
    """The clock of the one that waits jumps a day ahead, again and again between two renewals.

    It waits on, and takes over when it is time.
    """
    key = LEASES[0]
    # A second more or less of the first one's processor changes nothing.
    times = ("--leader-elect-lease-duration=24s", "--leader-elect-renew-deadline=20s")
    cluster.nodes(1, cpu="32")
    cluster.default_queue()
    first = cluster.scheduler(*times, "--leader-elect-retry-period=3s")
    cluster.until(lambda: leads(cluster)[key][0], within_s=WITHIN_S)
    holder = leads(cluster)[key]
    cluster.environment = clock.environment
    second = cluster.scheduler(*times, "--leader-elect-retry-period=300ms", instance="second")
    cluster.until(lambda: second.has_logged('"synced"'), within_s=WITHIN_S, what="the second one runs")
    for day in range(1, 8):
        clock.shift(day * DAY_S)
        time.sleep(0.5)
    wait_for_renewals(cluster, key, 1)
    assert leads(cluster)[key] == holder
    first.kill()
    cluster.until(lambda: leads(cluster)[key] != holder, within_s=WITHIN_S, what="the other one leads")
    cluster.create(*objects.gang(cluster.space, "one", MEMBERS, requests={"cpu": "100m"}))
    cluster.wait_bound(MEMBERS, within_s=WITHIN_S)
    assert renewed(cluster, key) - time.time() > DAY_S / 2, "its clock has jumped"
