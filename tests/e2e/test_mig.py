"""From a pod to its MIG instance and back: scheduler, agent, kubelet, and the stub driver's model of an A100.

The stub's list of instances is the oracle: it refuses what a real card refuses.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.test_migdriver import write_capabilities
from tests.e2e.cards import CardNode, Running, card_node
from tests.e2e.cluster import Cluster
from tests.e2e.components import Component
from tests.shim.stub.state import Card

INSTANCES = "hami.io/vgpu-mig-allocations"
CUTTING_US = 600_000_000
"""Far longer than the test takes to kill who cuts."""
SMALL, LARGE, WHOLE = 9728, 40192, 80896


class MigNode(CardNode):
    """A node whose containers say which device they were given; nothing runs on an instance of the stub."""

    async def _start(self, each: Running) -> None:
        device = each.admitted.answers["main"].envs["NVIDIA_VISIBLE_DEVICES"]
        each.got_mib = self.instances().get(device, -1)
        each.process = await self.sleeper()

    def instances(self) -> dict[str, int]:
        """MiB of the instances that are there, by UUID."""
        card = self.driver.raw.card[0]
        return {mig.uuid.decode(): mig.memory_bytes >> 20 for mig in card.migs if mig.uuid}

    def state(self) -> str:
        return f"{super().state()}, instances {self.instances()}"

    def made(self) -> int:
        """GPU instances, with or without a compute instance in them."""
        return sum(1 for mig in self.driver.raw.card[0].migs if mig.size)


@pytest.fixture
def cards(cluster: Cluster, tmp_path: Path) -> Iterator[MigNode]:
    """A node of one A100 in MIG mode."""
    cluster.default_queue()
    write_capabilities(tmp_path / "capabilities")
    a100 = Card(memory_mib=81920, mig_mode=1)
    with card_node(cluster, tmp_path, [a100], kind=MigNode) as node:
        assert isinstance(node, MigNode)
        yield node


def agent(cards: MigNode) -> Component:
    """The agent, told of the stub's instances."""
    return cards.agent("--no-keep", "--capabilities-dir", str(cards.place / "capabilities"))


def test_a_card_is_cut_as_pods_come_and_anew_when_they_went(cluster: Cluster, cards: MigNode) -> None:
    agent(cards)
    cluster.scheduler("--no-leader-elect")
    cards.until_registered()
    wanted = {f"s{number}": SMALL for number in range(3)} | {"large": LARGE}
    for name, memory in wanted.items():
        cards.pod(name, memory - 100)
    cards.until_got(wanted)
    assert sorted(cards.instances().values()) == sorted(wanted.values())
    told = cluster.pods("large")["large"]["metadata"]["annotations"][INSTANCES]
    cluster.until(lambda: "migUUID" in instance_of(cluster, "large"), what="told on the pod")
    assert json.loads(told)[0]["profile"] in ("3g.40gb", "4g.40gb")
    assert instance_of(cluster, "large")["migUUID"] in cards.instances()
    # The whole card, at places where others were: it is cut anew as soon as they are gone.
    cards.pod("whole", WHOLE - 100)
    for name in wanted:
        cards.delete(name)
    cards.until_got({"whole": WHOLE})
    assert list(cards.instances().values()) == [WHOLE]
    cards.delete("whole")
    cluster.until(lambda: cards.made() == 0 and not cards.slices(), what="all ended")
    assert cards.refused == {}


def test_an_agent_that_dies_while_it_cuts_leaves_nothing_in_the_way(cluster: Cluster, cards: MigNode) -> None:
    """Killed between GPU instance and compute instance; a pod comes that wants the place otherwise."""
    cards.strict = True
    first = agent(cards)
    cluster.scheduler("--no-leader-elect")
    cards.until_registered()
    watched = cards.driver.fail("nvmlGpuInstanceCreateComputeInstance", 0, delay_us=CUTTING_US)
    cards.pod("cut-short", SMALL)
    cluster.until(lambda: watched.calls == 1, what="half an instance")
    first.kill()
    cards.driver.clear_faults()
    assert cards.made() == 1
    cluster.until(lambda: "cut-short" in cards.refused, what="refused by the kubelet")
    first.start()
    cards.until_registered()
    cards.pod("whole", WHOLE)
    cards.until_got({"whole": WHOLE})
    assert list(cards.instances().values()) == [WHOLE]


def test_pods_of_all_sizes_come_and_go_and_the_card_is_never_cut_twice(
    cluster: Cluster, cards: MigNode
) -> None:
    """What the scheduler places the driver never refuses, whatever was there before."""
    dice = random.Random(3)
    agent(cards)
    cluster.scheduler("--no-leader-elect")
    cards.until_registered()
    wanted: dict[str, int] = {}
    for number in range(12):
        memory = dice.choice((SMALL, SMALL, 19968, LARGE))
        while wanted and sum(wanted.values()) + memory > LARGE:
            gone = dice.choice(sorted(wanted))
            cards.delete(gone)
            del wanted[gone]
        wanted[f"p{number}"] = memory
        cards.pod(f"p{number}", memory)
        cards.until_got(wanted)
    assert cards.refused == {}


def instance_of(cluster: Cluster, name: str) -> dict[str, object]:
    """The pod's instance as its annotation tells it."""
    (entry,) = json.loads(cluster.pods(name)[name]["metadata"]["annotations"][INSTANCES])
    return dict(entry)
