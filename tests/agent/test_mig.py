"""Cards in MIG mode: instances are made where records want them, told, and ended with their slices."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.agent.driver import LARGE, SMALL, card
from tests.agent.kubelet import AdmissionError, StartError
from tests.agent.node import FAST, GPU, Document, NodeUnderTest, node, part, until
from volcano_py.crds.cards.instances import INSTANCES
from volcano_py.crds.cards.register import HAMI_REGISTER, decode_hami
from volcano_py.shim.agent.instances import Wish

CUT = (card(0, 16384, mig=True), card(1))
RARELY = replace(FAST, slices=3600.0)


def wish(start: int, size: int, profile: str = SMALL.name) -> str:
    """The list of instances of a pod that wants one."""
    entry = {
        "containerIndex": 0,
        "deviceIndex": 0,
        "gpuUUID": "GPU-0",
        "profile": profile,
        "placement": {"start": start, "size": size},
    }
    return json.dumps([entry])


async def cut(n1: NodeUnderTest, name: str, start: int, size: int = 1, profile: str = SMALL.name) -> Document:
    memory = SMALL.memory_mib if profile == SMALL.name else LARGE.memory_mib
    return await n1.sliced(name, part("GPU-0", memory, 15), **{INSTANCES: wish(start, size, profile)})


def test_the_node_says_what_a_card_can_be_cut_into(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, CUT) as n1:

            async def published() -> Any:
                return decode_hami((await n1.node_notes()).get(HAMI_REGISTER, ""))

            first, second = await until(published, "published")
            assert (first.mode, first.mig, first.slots) == ("mig", (SMALL, LARGE), 7)
            assert (second.mode, second.mig, second.slots) == ("hami-core", (), 10)
            await until(lambda: len(n1.kubelet.endpoints[GPU].devices) == 17, "as many devices")

    asyncio.run(case())


def test_an_instance_is_made_told_and_ended(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, CUT) as n1:
            admitted = await n1.run(await cut(n1, "a", 3))
            answer = admitted.answers["main"]
            assert dict(answer.envs) == {"NVIDIA_VISIBLE_DEVICES": "MIG-1"}
            assert not answer.mounts
            names = [each.host_path.rpartition("/")[2] for each in answer.devices]
            assert names == ["nvidia0", "nvidia-cap1"]
            assert [each.wish for each in n1.cutter.there] == [Wish("GPU-0", SMALL.name, 3, 1)]

            async def told() -> bool:
                (entry,) = json.loads(await n1.note("a", INSTANCES))
                found = [entry.get(key) for key in ("migUUID", "gpuInstanceID", "computeInstanceID")]
                return found == ["MIG-1", 1, 0]

            await until(told, "told")
            await n1.delete("a")
            n1.kubelet.forget(admitted)
            await until(lambda: not n1.cutter.there, "ended")

    asyncio.run(case())


def test_instances_of_many_pods_are_made_side_by_side(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, CUT) as n1:
            for at in range(4, 7):
                await n1.run(await cut(n1, f"small-{at}", at))
            await n1.run(await cut(n1, "large", 0, 4, LARGE.name))
            assert len({owner["shares"][0]["uuid"] for owner in n1.owners()}) == 4

    asyncio.run(case())


def test_an_instance_of_another_pod_is_nobody_elses(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, CUT) as n1:
            n1.kubelet.know(await cut(n1, "old", 0))
            young = await n1.kubelet.admit(await cut(n1, "young", 5))
            with pytest.raises(StartError, match="was given the instance of another pod"):
                await n1.kubelet.start_container(young, "main")

    asyncio.run(case())


def test_a_part_of_a_cut_card_needs_an_instance(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, CUT) as n1:
            bare = await n1.sliced("a", part("GPU-0"))
            with pytest.raises(AdmissionError, match="names no instance of it"):
                await n1.kubelet.admit(bare)
            await n1.run(await cut(n1, "b", 0, 4, LARGE.name))
            overlapping = await cut(n1, "c", 3)
            with pytest.raises(AdmissionError, match="Insufficient Resources"):
                await n1.kubelet.admit(overlapping)
            # A card beside it that is not cut is shared as ever.
            assert n1.region(await n1.run(await n1.sliced("d", part("GPU-1")))).devices[0].uuid == "GPU-1"

    asyncio.run(case())


def test_an_instance_that_was_made_before_the_agent_died_is_taken(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, CUT) as n1:
            left = n1.cutter.make(Wish("GPU-0", SMALL.name, 2, 1), 0)
            await n1.run(await cut(n1, "a", 2))
            assert n1.cutter.there == [left]

    asyncio.run(case())


def test_a_slice_stays_while_its_instance_is_used(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, CUT) as n1:
            admitted = await n1.run(await cut(n1, "a", 0))
            n1.cutter.busy.add("MIG-1")
            await n1.delete("a")
            n1.kubelet.forget(admitted)
            other = await n1.run(await n1.sliced("other", part("GPU-1")))
            await n1.delete("other")
            n1.kubelet.forget(other)
            await until(lambda: [each["pod"] for each in n1.owners()] == ["a"], "the other is gone")
            n1.cutter.busy.clear()
            await until(lambda: not n1.owners(), "and then this one")

    asyncio.run(case())


def test_an_instance_whose_pod_is_gone_makes_way_before_its_slice_is_removed(tmp_path: Path) -> None:
    """Slices are removed at the second look: a pod that was placed there meanwhile must not wait."""

    async def case() -> None:
        async with node(tmp_path, CUT, paces=RARELY) as n1:
            for name, start in (("same", 2), ("in-the-way", 4)):
                gone = await n1.run(await cut(n1, name, start))
                await n1.delete(name)
                n1.kubelet.forget(gone)
            await until(lambda: not n1.agent._pods.objects, "both are gone")
            await n1.run(await cut(n1, "again", 2))
            with pytest.raises(AdmissionError, match="Insufficient Resources"):
                await n1.kubelet.admit(await cut(n1, "large", 0, 4, LARGE.name))
            await n1.run(await cut(n1, "beside", 4, 4, LARGE.name))
            wishes = {(each.profile, each.start) for each in n1.cutter.there}
            assert wishes == {(SMALL.name, 2), (LARGE.name, 4)}
            assert len(n1.owners()) == 4
            for _ in range(2):
                await n1.agent._clean()
            await until(lambda: len(n1.owners()) == 2, "their slices are gone")
            assert {(each.profile, each.start) for each in n1.cutter.there} == wishes

    asyncio.run(case())
