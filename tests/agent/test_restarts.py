"""What ends and starts again: the kubelet, the agent, the API server's watch. Nothing is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.agent.kubelet import StartError
from tests.agent.node import GPU, VGPU, node, part, until
from volcano_py.crds.cards import records
from volcano_py.shim.agent.wire import services

MIB = 1 << 20


def test_a_restarted_kubelet_has_the_agent_again_within_seconds(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            for _ in range(3):
                await until(lambda: all(each.is_registered() for each in n1.agent.plugins), "answered")
                await n1.kubelet.restart()
                await n1.kubelet.until_registered(*n1.options.resources, devices=20)
            admitted = await n1.run(await n1.sliced("a", part("GPU-1")))
            assert n1.region(admitted).devices[0].uuid == "GPU-1"
            await until(lambda: all(each.is_registered() for each in n1.agent.plugins), "answered")
            assert {each.registered for each in n1.agent.plugins} == {4}

    asyncio.run(case())


def test_a_kubelet_is_known_by_its_own_socket(tmp_path: Path) -> None:
    """It comes back without having removed ours."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            await n1.kubelet.stop()
            await n1.kubelet.start(clears=False)
            await n1.kubelet.until_registered(GPU, VGPU, devices=20)

    asyncio.run(case())


def test_a_kubelet_that_is_late_is_waited_for(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, started=False) as n1:
            await n1.kubelet.stop()
            for socket in n1.kubelet.plugins.glob("*.sock"):
                socket.unlink()
            starting = asyncio.ensure_future(n1.start())
            await until(lambda: list(n1.kubelet.plugins.glob("volcano-py-*.sock")), "the agent serves")
            await n1.kubelet.start()
            await starting

    asyncio.run(case())


def test_a_socket_that_somebody_removed_is_made_again(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            old = n1.kubelet.endpoints[GPU]
            next(n1.kubelet.plugins.glob("volcano-py-nvidia*.sock")).unlink()
            await until(
                lambda: n1.kubelet.endpoints.get(GPU, old) is not old and n1.kubelet.endpoints[GPU].devices,
                "registered anew",
            )
            await n1.run(await n1.sliced("a", part("GPU-0")))

    asyncio.run(case())


def test_an_agent_that_starts_again_goes_on_where_the_other_was(tmp_path: Path) -> None:
    """Between Allocate and the start of the container, and between starts of it."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            admitted = await n1.kubelet.admit(await n1.sliced("a", part("GPU-0", 1234)))
            await n1.restart()
            await n1.kubelet.start_container(admitted, "main")
            assert n1.region(admitted).devices[0].limit_bytes == 1234 * MIB
            await n1.restart()
            await n1.kubelet.start_container(admitted, "main")
            assert len(n1.owners()) == 1
            await n1.until_note("a", records.HAMI.phase, "success")

    asyncio.run(case())


def test_marks_that_could_not_be_written_are_written_later(tmp_path: Path) -> None:
    """The agent died after the container started and before it said so."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            await n1.run(await n1.sliced("a", part("GPU-0")))
            await n1.until_note("a", records.HAMI.phase, "success")
            await n1.stop()
            await n1.api.patch(
                "/api/v1/namespaces/default/pods/a",
                {"metadata": {"annotations": {records.HAMI.phase: "allocating"}}},
            )
            await n1.kubelet_loses()
            await n1.start()
            await n1.until_note("a", records.HAMI.phase, "success")

    asyncio.run(case())


def test_killed_between_the_two_writes_of_an_exchange_both_records_become_true(tmp_path: Path) -> None:
    """The other pod's record is written first; the next agent finds the container's own move and makes it."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            old = await n1.sliced("old", part("GPU-0"))
            n1.kubelet.know(old)
            young = await n1.sliced("young", part("GPU-1"))
            taken = await n1.kubelet.admit(young)
            await n1.stop()
            await n1.kubelet_loses()
            half = {records.HAMI.allocated: "GPU-1,NVIDIA,4096,50:;"}
            for name, notes in (
                ("old", half),
                ("young", {records.HAMI.allocated: half[records.HAMI.allocated]}),
            ):
                await n1.api.patch(
                    f"/api/v1/namespaces/default/pods/{name}", {"metadata": {"annotations": notes}}
                )
            await n1.start()
            await n1.kubelet.start_container(taken, "main")
            other = await n1.run(old)
            assert n1.region(taken).devices[0].uuid == "GPU-0"
            assert n1.region(other).devices[0].uuid == "GPU-1"

    asyncio.run(case())


def test_what_an_agent_was_making_when_it_died_is_removed(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            await n1.run(await n1.sliced("a", part("GPU-0")))
            await n1.stop()
            await n1.kubelet_loses()
            slices = n1.options.hook / "slices"
            (slices / ".new-half").mkdir()
            (slices / ".new-half" / "owner.json").write_text("{")
            (slices / "garbage").mkdir()
            await n1.start()
            assert sorted(path.name for path in slices.iterdir()) == sorted([n1.owners()[0]["id"], "garbage"])

    asyncio.run(case())


def test_without_the_kubelets_word_no_container_starts(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            admitted = await n1.kubelet.admit(await n1.sliced("a", part("GPU-0")))
            socket = n1.kubelet.lists / "kubelet.sock"
            socket.rename(socket.with_suffix(".away"))
            with pytest.raises(StartError, match="PodResources"):
                await n1.kubelet.start_container(admitted, "main")
            socket.with_suffix(".away").rename(socket)
            await n1.kubelet.start_container(admitted, "main")

    asyncio.run(case())


def test_a_fault_of_ours_ends_one_call_only(tmp_path: Path) -> None:
    """The folder of slices is gone: that pod is told, the agent lives, and the next pod is served."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            slices = n1.options.hook / "slices"
            slices.rename(slices.with_suffix(".away"))
            (tmp_path / "vgpu" / "slices").write_text("a file in its place")
            bad = await n1.sliced("bad", part("GPU-0"))
            with pytest.raises(Exception, match="the slice can't be made"):
                await n1.kubelet.admit(bad)
            slices.unlink()
            slices.with_suffix(".away").rename(slices)
            await n1.run(await n1.sliced("good", part("GPU-0")))
            assert n1.kubelet.endpoints[GPU].devices["GPU-0-0"] == services.HEALTHY

    asyncio.run(case())
