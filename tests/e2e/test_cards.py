"""From a pod to a process that is held to its slice, and back: scheduler, agent, kubelet, library, driver.

The stub driver's books are the oracle. A card that was handed out twice would refuse some process before it
has its slice, so each must get all of it, and nothing more.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.cgroup.hosts import host, root_of
from tests.e2e.cards import ANY_VENDORS, CARD_MIB, GPU, MIB, VOLCANOS, CardNode, card_node
from tests.e2e.cluster import Cluster
from tests.e2e.components import Component

WAIT_S = 120.0


@pytest.fixture
def cards(cluster: Cluster, tmp_path: Path) -> Iterator[CardNode]:
    """A node of two cards."""
    cluster.default_queue()
    with card_node(cluster, tmp_path) as node:
        yield node


def test_a_process_is_held_to_the_slice_that_its_pod_asked_for(cluster: Cluster, cards: CardNode) -> None:
    cards.agent()
    cluster.scheduler("--no-leader-elect")
    cards.until_registered()
    wanted = {"a": 1024, "b": 2048, "c": 1024, "d": 3072}
    for name, memory in wanted.items():
        cards.pod(name, memory)
    cards.until_got(wanted)
    for name in wanted:
        becomes_success(cluster, name)
    assert_sound(cards)
    cards.pod("whole", 0)
    until_told(cluster, "whole", "card")
    for name in ("a", "b", "c"):
        cards.delete(name)
    cards.until_got({"d": 3072, "whole": CARD_MIB})
    cluster.until(lambda: len(cards.slices()) == 2, what="slices of the others are gone")
    assert_sound(cards)


def test_whatever_name_a_pod_asks_by_its_slice_is_one_of_the_same_cards(
    cluster: Cluster, cards: CardNode
) -> None:
    cards.agent()
    cluster.scheduler("--no-leader-elect")
    cards.until_registered()
    cards.pod("hami", 2048)
    cards.pod("volcano", 2048, by=VOLCANOS)
    cards.pod("any", 3072, by=ANY_VENDORS)
    wanted = {"hami": 2048, "volcano": 2048, "any": 3072}
    cards.until_got(wanted)
    cards.pod("more", 2048, by=ANY_VENDORS)
    until_told(cluster, "more", "card memory (largest free slice 1024Mi, asked 2048Mi)")
    cards.delete("volcano")
    cards.until_got({"hami": 2048, "any": 3072, "more": 2048})
    assert_sound(cards)


def test_killed_at_any_point_nothing_is_lost_and_no_card_is_over(cluster: Cluster, cards: CardNode) -> None:
    storm(cluster, cards, rounds=3, seed=5)


def test_an_agent_that_goes_leaves_no_pod_to_be_refused(cluster: Cluster, cards: CardNode) -> None:
    cards.strict = True
    agent = cards.agent()
    cluster.scheduler("--no-leader-elect")
    cards.until_registered()
    cards.pod("first", 1024)
    cards.until_got({"first": 1024})
    cards.pod("larger-than-cards", 2 * CARD_MIB)
    until_told(cluster, "larger-than-cards", "card memory")
    assert agent.stop() == 0
    # The node's amounts say nothing of it here: the agent itself has told.
    until_told(cluster, "larger-than-cards", "device plugin is away")
    cards.pod("second", 1024)
    until_told(cluster, "second", "device plugin is away")
    agent.start()
    cards.until_got({"first": 1024, "second": 1024})
    until_told(cluster, "larger-than-cards", "card memory")
    assert_sound(cards)


def test_an_agent_that_was_killed_is_known_by_what_the_kubelet_has_left(
    cluster: Cluster, cards: CardNode
) -> None:
    cards.strict = cards.reports = True
    agent = cards.agent()
    cluster.scheduler("--no-leader-elect")
    cards.until_registered()
    cards.pod("larger-than-cards", 2 * CARD_MIB)
    until_told(cluster, "larger-than-cards", "card memory")
    agent.kill()
    until_told(cluster, "larger-than-cards", "device plugin is away")
    cards.pod("later", 1024)
    until_told(cluster, "later", "device plugin is away")
    agent.start()
    cards.until_got({"later": 1024})
    assert_sound(cards)


def test_a_pod_that_the_kubelet_refuses_frees_its_slice_at_once(cluster: Cluster, cards: CardNode) -> None:
    """Bound while no agent is there, and nobody knows yet: a real kubelet refuses it for good."""
    cards.strict = True
    agent = cards.agent()
    cluster.scheduler("--no-leader-elect")
    cards.until_registered()
    cards.pod("first", 0)
    cards.until_got({"first": CARD_MIB})
    agent.kill()
    cluster.until(lambda: GPU not in cards.kubelet.endpoints, what="the kubelet has noticed")
    cards.pod("lost", 0)
    cluster.until(lambda: "lost" in cards.refused, what="refused")
    agent.start()
    cards.until_registered()
    cards.pod("next", 0)
    cards.until_got({"first": CARD_MIB, "next": CARD_MIB})
    assert cards.refused.keys() == {"lost"}
    assert cluster.pods("lost")["lost"]["status"]["phase"] == "Failed"
    assert len(cards.slices()) == 2


@pytest.mark.long
def test_killed_at_a_hundred_points_nothing_is_lost_and_no_card_is_over(
    cluster: Cluster, cards: CardNode
) -> None:
    storm(cluster, cards, rounds=50, seed=7)


def test_who_gets_round_the_library_is_ended_from_outside(cluster: Cluster, cards: CardNode) -> None:
    """A process without the library, in the container's cgroup; the driver and the kernel tell on it."""
    version = next((each for each in (1, 2) if root_of(each)[0] is not None), 1)
    root, reason = root_of(version)
    if root is None:
        pytest.skip(reason)
    with host(root) as cgroups:
        cards.host = cgroups
        options = ["--overuse", "kill", "--cgroup-dir", str(root), "--kubelet-cgroup-root", cgroups.name]
        agent = cards.agent(*options)
        cluster.scheduler("--no-leader-elect")
        cards.until_registered()
        cards.pod("honest", 1024)
        cards.pod("cheat", 1024)
        cards.until_got({"honest": 1024, "cheat": 1024})
        cluster.until(
            lambda: 1024 * MIB in used_by(agent, "honest"),
            what="used memory by pod",
        )
        process = cluster.call(cards.cheat("cheat"))
        assert cluster.call(asyncio.wait_for(process.wait(), WAIT_S)) == -signal.SIGKILL
        cluster.until(lambda: cluster.events("CardMemoryOveruseKilled"), what="an event")
        honest = cards.one("honest").process
        assert honest is not None
        assert honest.returncode is None
        assert agent.stop() == 0


def used_by(agent: Component, pod: str) -> list[float]:
    """Bytes of card memory that *agent* says *pod* uses, of each of its slices."""
    name = "volcano_py_slice_memory_used_bytes"
    return [one.value for one in agent.samples() if one.name == name and one.labels["pod"] == pod]


def storm(cluster: Cluster, cards: CardNode, *, rounds: int, seed: int) -> None:
    """Each round kills the scheduler and the agent once, somewhere between a pod's bind and its start."""
    dice = random.Random(seed)
    agent, scheduler = cards.agent(), cluster.scheduler("--no-leader-elect")
    cards.until_registered()
    wanted: dict[str, int] = {}
    number = 0
    for _ in range(rounds):
        for name in dice.sample(sorted(wanted), k=min(len(wanted), dice.randint(1, 2))):
            cards.delete(name)
            del wanted[name]
        while sum(wanted.values()) + 1024 <= 2 * CARD_MIB and len(wanted) < 6:
            number += 1
            wanted[f"p{number}"] = dice.choice((512, 1024))
            cards.pod(f"p{number}", wanted[f"p{number}"])
        for component in dice.sample((agent, scheduler), k=2):
            pause(dice)
            component.kill()
            pause(dice)
            component.start()
        cards.until_got(wanted)
        assert_sound(cards)
    for name in wanted:
        cards.delete(name)
    cluster.until(lambda: not cards.running, what="all processes ended")
    cluster.until(lambda: not cards.slices(), what="all slices gone")
    cards.pod("last", 0)
    cards.until_got({"last": CARD_MIB})


def pause(dice: random.Random) -> None:
    """A moment of a random length: where a process is killed in its work."""
    time.sleep(dice.random() * 0.8)


def assert_sound(cards: CardNode) -> None:
    """By the driver's books no card holds more than it has, and by ours no pod was refused."""
    for card in range(2):
        assert cards.driver.used_bytes(card) <= CARD_MIB * MIB
    assert cards.driver.violations == 0
    assert cards.refused == {}


def until_told(cluster: Cluster, name: str, words: str) -> None:
    """Wait until the reason why pod *name* is not scheduled has *words*."""
    cluster.until_says("Pod", f"{cluster.space}/{name}", "PodScheduled", words)


def becomes_success(cluster: Cluster, name: str) -> None:
    """The pod says that it has all its cards."""
    key = "hami.io/bind-phase"
    cluster.until(
        lambda: cluster.pods(name)[name]["metadata"]["annotations"].get(key) == "success",
        what=f"{name} has its cards",
    )
