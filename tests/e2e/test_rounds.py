"""Trouble in rounds: scheduler, server and store killed at random points, a bad network, binds that fail.

``make test`` runs a few rounds of each, ``make test-long`` hundreds (last result: docs/reliability.md).
"""

from __future__ import annotations

import json
import random
import time

import pytest

from tests.e2e import refusals
from tests.e2e.cluster import Cluster
from tests.e2e.proxy import FlakyProxy, kubeconfig_for, port_of
from tests.e2e.rounds import Rounds
from volcano_py.client.api import ApiError, Unreachable
from volcano_py.scheduler.cluster.feed import ENGINE_KINDS

SHORT, LONG = 6, 200
MOST = 10
"""Times as many rounds, for what has to be met and was not yet."""
CRASHES, MANY_CRASHES = 2, 25


def killed_at_random(cluster: Cluster, rounds: int, seed: str) -> None:
    """Start the scheduler, let it work for a moment, kill it; again and again."""
    world = Rounds(cluster, random.Random(seed))
    world.prepare()
    scheduler = cluster.scheduler("--no-leader-elect")
    for number in range(rounds):
        world.happen()
        _works(cluster, world)
        time.sleep(world.dice.uniform(0, 0.05))  # where in its work it is hit is the point of the round
        scheduler.kill()
        world.check()
        scheduler.start()
        if number % 10 == 9:
            world.settle()
    world.settle()


def _works(cluster: Cluster, world: Rounds) -> None:
    """Wait until the scheduler has bound something; a little only, since there may be no room for anybody."""
    before, until = cluster.bound(), time.monotonic() + 4
    while cluster.bound() == before and time.monotonic() < until:
        time.sleep(world.dice.uniform(0, 0.05))


@pytest.mark.parametrize("rounds", [SHORT, pytest.param(LONG, marks=pytest.mark.long)])
def test_killed_at_random_points(cluster: Cluster, rounds: int) -> None:
    killed_at_random(cluster, rounds, f"kill {cluster.server.kind}")


@pytest.mark.parametrize("rounds", [SHORT, pytest.param(LONG, marks=pytest.mark.long)])
def test_a_network_that_cuts_and_delays(cluster: Cluster, rounds: int) -> None:
    dice = random.Random(f"network {cluster.server.kind}")
    cut_after = 40_000 + 2 * largest_list(cluster)
    proxy = FlakyProxy(port_of(cluster.kubeconfig), dice, cut_after=cut_after, late_s=0.02)
    port = cluster.entered(proxy.listening())
    world = Rounds(cluster, dice)
    world.prepare()
    cluster.scheduler(
        "--no-leader-elect", kubeconfig=kubeconfig_for(cluster.kubeconfig, port, cluster.place / "flaky")
    )
    world.begin()
    for number in range(MOST * rounds):
        if number >= rounds and proxy.cuts:
            break  # how much a connection carries before it is cut is up to the dice
        world.happen()
        world.check()
        if number % 10 == 5:
            world.settle()
    world.settle()
    assert proxy.cuts > 0


def largest_list(cluster: Cluster) -> int:
    """Bytes of the longest list that a scheduler reads: who never gets one whole does nothing.

    Other cases leave their namespaces behind.
    """
    return max(len(json.dumps(cluster.list(kind))) for kind in ENGINE_KINDS)


@pytest.mark.parametrize("what", ["server", "store"])
@pytest.mark.parametrize("rounds", [CRASHES, pytest.param(MANY_CRASHES, marks=pytest.mark.long)])
def test_a_server_and_a_store_that_crash(cluster: Cluster, rounds: int, what: str) -> None:
    """What was acknowledged is kept by the server; what was on its way is found out by the scheduler."""
    server = cluster.server
    crash = {"server": server.crash, "store": server.crash_store}[what]
    revive = {"server": server.revive, "store": server.revive_store}[what]
    world = Rounds(cluster, random.Random(f"crash {server.kind} {what}"))
    world.prepare()
    scheduler = cluster.scheduler("--no-leader-elect")
    for number in range(rounds):
        world.happen()
        _works(cluster, world)
        time.sleep(world.dice.uniform(0, 0.05))
        crash()
        time.sleep(world.dice.uniform(0, 0.5))
        revive()
        cluster.until(lambda: _answers(cluster), what="the server answers")
        world.check()
        if number % 5 == 1:
            world.settle()
    world.settle()
    assert scheduler.alive()


def _answers(cluster: Cluster) -> bool:
    """Whether every kind can be listed again."""
    try:
        return all(cluster.list(kind) is not None for kind in ("Node", "Queue", "PodGroup", "Pod"))
    except (ApiError, Unreachable):
        return False


@pytest.mark.parametrize("rounds", [SHORT, pytest.param(LONG, marks=pytest.mark.long)])
def test_binds_that_are_slow_refused_or_not_answered(cluster: Cluster, rounds: int) -> None:
    dice = random.Random(f"binds {cluster.server.kind}")
    faults = refusals.BindFaults(cluster.kubeconfig, dice, 0.5)
    port = cluster.entered(faults.listening())
    world = Rounds(cluster, dice)
    world.prepare()
    kubeconfig = refusals.kubeconfig_for(port, cluster.place / "faults")
    scheduler = cluster.scheduler("--no-leader-elect", kubeconfig=kubeconfig)
    world.begin()
    for number in range(MOST * rounds):
        if number >= rounds and set(faults.met) == set(refusals.FAULTS):
            break  # how many binds the first rounds saw is up to the dice
        faults.share = 0.5
        world.happen()
        _works(cluster, world)
        world.check()
        if number % 10 == 5:
            faults.share = 0.0
            world.settle()
    faults.share = 0.0
    world.settle()
    assert set(faults.met) == set(refusals.FAULTS)
    assert scheduler.alive()
