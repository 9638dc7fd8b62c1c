"""A pod with a record gets just its slice, and the pod says so afterwards."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.agent.node import GPU, VGPU, node, part
from volcano_py.crds.cards import records

MIB = 1 << 20


def test_a_pod_gets_its_slice_and_its_limits_before_it_starts(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            pod = await n1.sliced("a", part("GPU-1", 4096, 50))
            admitted = await n1.kubelet.admit(pod)
            assert [each.rpartition("-")[0] for each in admitted.held["main", GPU]] == ["GPU-1"]
            await n1.kubelet.start_container(admitted, "main")
            (device,) = n1.region(admitted).devices
            assert (device.uuid, device.limit_bytes, device.cores) == ("GPU-1", 4096 * MIB, 50)
            (owner,) = n1.owners()
            assert (owner["confirmed"], owner["pod"], owner["container"]) == (True, "a", "main")

    asyncio.run(case())


def test_the_answer_has_what_our_library_and_hamis_need(tmp_path: Path) -> None:
    async def case() -> None:
        (tmp_path / "dev").mkdir()
        (tmp_path / "dev" / "nvidiactl").touch()
        async with node(tmp_path) as n1:
            admitted = await n1.run(await n1.sliced("a", part("GPU-0", 1000, 30), part("GPU-1", 2000, 40)))
            answer = admitted.answers["main"]
            assert dict(answer.envs) == {
                "NVIDIA_VISIBLE_DEVICES": "GPU-0,GPU-1",
                "VOLCANO_PY_REGION": "/usr/local/vgpu/slice/region",
                "CUDA_DEVICE_MEMORY_LIMIT_0": "1000m",
                "CUDA_DEVICE_MEMORY_LIMIT_1": "2000m",
                "CUDA_DEVICE_SM_LIMIT": "30",
                "CUDA_DEVICE_SM_LIMIT_0": "30",
                "CUDA_DEVICE_SM_LIMIT_1": "40",
                "CUDA_DEVICE_MEMORY_SHARED_CACHE": "/usr/local/vgpu/cache/cudevshr.cache",
                "CUDA_TASK_PRIORITY": "1",
            }
            mounts = {each.container_path: (Path(each.host_path), each.read_only) for each in answer.mounts}
            hook = n1.options.hook
            (library,) = hook.glob("libvgpu.so.*")
            assert mounts["/usr/local/vgpu/libvgpu.so"] == (library, True)
            assert library.read_bytes() == b"quota"
            assert mounts["/etc/ld.so.preload"] == (hook / "ld.so.preload", True)
            assert (hook / "ld.so.preload").read_text() == "/usr/local/vgpu/libvgpu.so\n"
            assert mounts["/usr/local/vgpu/region-fault"] == (hook / "region-fault", True)
            assert (hook / "region-fault").read_text() == "closed\n"
            assert mounts["/usr/local/vgpu/slice/region"][0].is_file()
            assert mounts["/usr/local/vgpu/cache"][0].stat().st_mode & 0o777 == 0o777
            nodes = [Path(each.host_path).name for each in answer.devices]
            assert nodes == ["nvidia0", "nvidia1", "nvidiactl"]
            # What the container may write holds nothing that the agent believes.
            assert not any(path.name == "slices" or path.name == "owner.json" for path, _ in mounts.values())

    asyncio.run(case())


def test_the_pod_says_when_it_has_all_its_cards(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            await n1.run(await n1.sliced("a", part("GPU-0")))
            await n1.run(await n1.sliced("b", part("GPU-1"), resource=VGPU))
            for name, keys in (("a", records.HAMI), ("b", records.VOLCANO)):
                await n1.until_note(name, keys.phase, "success")
            assert await n1.note("a", records.HAMI.to_allocate) == ";"
            assert await n1.note("b", records.VOLCANO.to_allocate) == ""
            assert await n1.note("b", records.VOLCANO.time) == "18446744073709551615"
            assert "GPU-0" in await n1.note("a", records.HAMI.allocated)

    asyncio.run(case())
