"""Shares are asked for by several names: the kubelet counts each for itself, the cards are the same."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.agent.kubelet import AdmissionError, StartError
from tests.agent.node import ANY, GPU, VGPU, container, node, part, until
from volcano_py.crds.cards import records
from volcano_py.shim.agent.publish import Cut

NAMES = (GPU, VGPU, ANY)
MIB = 1 << 20


def test_all_shares_are_served_under_each_name(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            devices = [n1.kubelet.endpoints[name].devices for name in NAMES]
            assert len(devices[0]) == 20
            assert devices[0] == devices[1] == devices[2]
            assert len({endpoint for _, endpoint in n1.kubelet.registrations}) == len(NAMES)

    asyncio.run(case())


def test_only_the_names_that_were_given_are_served(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, resources=(ANY,)) as n1:
            assert n1.kubelet.endpoints.keys() == {ANY}
            admitted = await n1.run(await n1.sliced("p", part("GPU-1", 1000), resource=ANY))
            assert n1.region(admitted).devices[0].limit_bytes == 1000 * MIB

    asyncio.run(case())


def test_pods_of_each_name_share_a_card_by_one_set_of_books(tmp_path: Path) -> None:
    """Two shares a card: a third is refused whatever name it comes by, though the kubelet has free ones."""

    async def case() -> None:
        async with node(tmp_path, cut=Cut(2, 1.0)) as n1:
            running = [
                await n1.run(await n1.sliced(f"p{at}", part("GPU-0", 1000, 10), resource=name))
                for at, name in enumerate((GPU, ANY))
            ]
            sizes = [n1.region(admitted).devices[0].limit_bytes for admitted in running]
            assert sizes == [1000 * MIB] * 2
            third = await n1.kubelet.admit(await n1.sliced("third", part("GPU-0", 1000, 10), resource=VGPU))
            with pytest.raises(StartError, match="card GPU-0 would hold 3 shares, it has 2"):
                await n1.kubelet.start_container(third, "main")
            await n1.delete("p0")
            n1.kubelet.forget(running[0])
            await until(lambda: len(n1.owners()) == 2, "its slice is gone")
            await n1.kubelet.start_container(third, "main")

    asyncio.run(case())


def test_who_waits_by_another_name_is_not_meant(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            old = await n1.sliced("old", part("GPU-0"), resource=GPU)
            n1.kubelet.know(old)
            young = await n1.run(await n1.sliced("young", part("GPU-1"), resource=ANY))
            assert young.held["main", ANY][0].startswith("GPU-1-")
            assert (await n1.run(old)).held["main", GPU][0].startswith("GPU-0-")
            assert await n1.note("young", records.HAMI.allocated) == "GPU-1,NVIDIA,4096,50:;"

    asyncio.run(case())


def test_a_container_that_asks_by_two_names_is_told(tmp_path: Path) -> None:
    """The kubelet would give it devices twice."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            spec = {"containers": [container("main", {GPU: 1, VGPU: 1})]}
            pod = await n1.bind("both", spec, n1.record(records.HAMI, [[part("GPU-0")]]))
            with pytest.raises(AdmissionError, match=f"asks by two names, {GPU} and {VGPU}: ask by one"):
                await n1.kubelet.admit(pod)

    asyncio.run(case())
