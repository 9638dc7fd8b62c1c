"""Slices of pods that are gone go; those in use never do."""

from __future__ import annotations

import asyncio
import mmap
from pathlib import Path

from tests.agent.node import GPU, NodeUnderTest, container, node, part, until
from volcano_py.crds.cards import records
from volcano_py.shim.agent.answers import CDI_KIND
from volcano_py.shim.agent.collect import Collector
from volcano_py.shim.agent.kubelet import Holding, Ledger
from volcano_py.shim.agent.pods import Metadata, Pod
from volcano_py.shim.agent.slices import Owner, Slices
from volcano_py.shim.agent.view import View


def test_a_slice_goes_with_its_pod(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            gone = await n1.run(await n1.sliced("gone", part("GPU-0")))
            await n1.run(await n1.sliced("stays", part("GPU-0")))
            await n1.delete("gone")
            n1.kubelet.forget(gone)
            await until(lambda: names(n1) == ["stays"], "one is left")

    asyncio.run(case())


def test_a_slice_stays_while_the_kubelet_ends_its_pod(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            ending = await n1.run(await n1.sliced("ending", part("GPU-0")))
            other = await n1.run(await n1.sliced("other", part("GPU-1")))
            await n1.delete("ending")
            await n1.delete("other")
            n1.kubelet.forget(other)
            await until(lambda: names(n1) == ["ending"], "the other is gone")
            n1.kubelet.forget(ending)
            await until(lambda: names(n1) == [], "both are gone")

    asyncio.run(case())


def test_a_slice_stays_while_a_process_has_it_mapped(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            mapped = await n1.run(await n1.sliced("mapped", part("GPU-0")))
            other = await n1.run(await n1.sliced("other", part("GPU-1")))
            region = next(
                Path(each.host_path)
                for each in mapped.answers["main"].mounts
                if each.container_path.endswith("/region")
            )
            with region.open("r+b") as file, mmap.mmap(file.fileno(), 0):
                for name, admitted in (("mapped", mapped), ("other", other)):
                    await n1.delete(name)
                    n1.kubelet.forget(admitted)
                await until(lambda: names(n1) == ["mapped"], "the other is gone")
            await until(lambda: names(n1) == [], "both are gone")

    asyncio.run(case())


def test_a_finished_pod_holds_no_slice(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            done = await n1.run(await n1.sliced("done", part("GPU-0")))
            await n1.api.patch(
                "/api/v1/namespaces/default/pods/done/status", {"status": {"phase": "Succeeded"}}
            )
            n1.kubelet.forget(done)
            await until(lambda: names(n1) == [], "gone")

    asyncio.run(case())


def test_an_allocation_that_waits_for_its_image_stays(tmp_path: Path) -> None:
    """Also an init container's whose devices the next container was given as well."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            spec = {
                "initContainers": [container("first", {GPU: 1})],
                "containers": [container("main", {GPU: 1})],
            }
            notes = n1.record(records.HAMI, [[part("GPU-0", 1000)], [part("GPU-0", 2000)]])
            admitted = await n1.kubelet.admit(await n1.bind("slow", spec, notes))
            await looked(n1, 3)
            assert names(n1) == ["slow", "slow"]
            await n1.kubelet.start_container(admitted, "first")
            await n1.kubelet.start_container(admitted, "main")

    asyncio.run(case())


def test_a_refused_admission_leaves_nothing(tmp_path: Path) -> None:
    """The kubelet allocated and then refused the pod for another reason."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            refused = await n1.kubelet.admit(await n1.sliced("refused", part("GPU-0")))
            n1.kubelet.forget(refused)
            await n1.api.patch(
                "/api/v1/namespaces/default/pods/refused/status", {"status": {"phase": "Failed"}}
            )
            await until(lambda: names(n1) == [], "gone")

    asyncio.run(case())


def test_cdi_files_come_and_go_with_slices(tmp_path: Path) -> None:
    async def case() -> None:
        cdi = tmp_path / "cdi"
        async with node(tmp_path, cdi=cdi) as n1:
            admitted = await n1.run(await n1.sliced("a", part("GPU-0", 1000, 20)))
            answer = admitted.answers["main"]
            (device,) = answer.cdi_devices
            owner = n1.owners()[0]
            assert device.name == f"{CDI_KIND}={owner['id']}"
            assert not answer.envs
            (file,) = cdi.glob("*.json")
            text = file.read_text()
            assert '"CUDA_DEVICE_MEMORY_LIMIT_0=1000m"' in text
            assert f'"{tmp_path}/dev/nvidia0"' in text
            file.unlink()  # a boot clears /var/run
            await n1.restart()
            await until(lambda: file.exists() and file.read_text() == text, "written again")
            await n1.delete("a")
            n1.kubelet.forget(admitted)
            await until(lambda: not list(cdi.glob("*.json")), "gone with the slice")

    asyncio.run(case())


def test_one_look_is_not_enough(tmp_path: Path) -> None:
    """A slice that was made after the pods were looked at seems abandoned, and is about to begin."""
    slices = Slices(tmp_path)
    slices.load()
    owner = Owner(
        id="", sequence=0, resource=GPU, ids=("GPU-0-0",), limited=True, pod_uid="u", namespace="n", pod="p",
        container="main",
    )  # fmt: skip
    owner = slices.make(owner)
    collector = Collector(slices, None, lambda _: None)
    nobody = View("n1", (GPU,), Ledger(), (), (), {})
    holder = Holding("u", "", "", "main", GPU, frozenset(owner.ids))
    pod = Pod(Metadata("p", "n", "u"))
    somebody = View("n1", (GPU,), Ledger((holder,)), (pod,), (), {})
    assert collector.collect(nobody) == []
    assert collector.collect(somebody) == []
    assert collector.collect(nobody) == []
    assert collector.collect(nobody) == [owner]
    assert slices.all() == []


def names(n1: NodeUnderTest) -> list[str]:
    """Pods that have slices."""
    return [str(owner["pod"]) for owner in n1.owners()]


async def looked(n1: NodeUnderTest, times: int) -> None:
    """Wait until the agent has looked for slices that may go, so many times."""
    collect = n1.agent._collector.collect
    seen = 0

    def counted(view: object) -> object:
        nonlocal seen
        seen += 1
        return collect(view)  # type: ignore[arg-type]

    n1.agent._collector.collect = counted  # type: ignore[method-assign,assignment]
    await until(lambda: seen >= times, "looked")
