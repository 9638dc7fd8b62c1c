"""Trouble in rounds: the scheduler killed at random points, a network that cuts and delays.

``make test`` runs a few rounds of each, ``make test-long`` hundreds (last result: docs/reliability.md).
"""

from __future__ import annotations

import random
import time

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.proxy import FlakyProxy, kubeconfig_for, port_of
from tests.e2e.rounds import Rounds

SHORT, LONG = 6, 200


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
    proxy = FlakyProxy(port_of(cluster.kubeconfig), dice, cut_after=40_000, late_s=0.02)
    port = cluster.entered(proxy.listening())
    world = Rounds(cluster, dice)
    world.prepare()
    cluster.scheduler(
        "--no-leader-elect", kubeconfig=kubeconfig_for(cluster.kubeconfig, port, cluster.place / "flaky")
    )
    for number in range(rounds):
        world.happen()
        world.check()
        if number % 10 == 5:
            world.settle()
    world.settle()
    assert proxy.cuts > 0
