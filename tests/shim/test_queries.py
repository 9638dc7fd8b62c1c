"""What a container is shown: the slice as the card, the same on every surface, and never nonsense."""

from pathlib import Path

import pytest

from tests.shim.harness import OUT_OF_MEMORY, Probe, Slice, agree, one_slice
from tests.shim.relimits import relimit
from tests.shim.stub.state import MIB, Card, card_uuid
from volcano_py.shim.agent import region

SURFACES = (
    "import ctypes, pynvml as n\n"
    "cuda = ctypes.CDLL('libcuda.so.1')\n"
    "cuda.cuInit(0)\n"
    "context, at = ctypes.c_void_p(), ctypes.c_uint64()\n"
    "cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)\n"
    "cuda.cuCtxSetCurrent(context)\n"
    "print(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(100 << 20)))\n"
    "free, total, whole = (ctypes.c_size_t() for _ in range(3))\n"
    "code = cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))\n"
    "print(code, free.value >> 20, total.value >> 20)\n"
    "print(cuda.cuDeviceTotalMem_v2(ctypes.byref(whole), 0), whole.value >> 20)\n"
    "n.nvmlInit()\n"
    "card = n.nvmlDeviceGetHandleByIndex(0)\n"
    "one, two = n.nvmlDeviceGetMemoryInfo(card), n.nvmlDeviceGetMemoryInfo(card, n.nvmlMemory_v2)\n"
    "print(*(value >> 20 for info in (one, two) for value in (info.total, info.used, info.free)))\n"
)


def test_every_surface_tells_the_slice(pod: Slice) -> None:
    assert pod.python(SURFACES).splitlines() == ["0", "0 924 1024", "0 1024", "1024 100 924 1024 100 924"]


@pytest.mark.parametrize(("limit", "total"), [(15360, 14917), (10240, 10240)])
def test_a_limit_above_the_card_is_the_card(library: Path, tmp_path: Path, limit: int, total: int) -> None:
    with one_slice(tmp_path, (limit,), cards=[Card(memory_mib=14917)]) as slice_:
        lines = slice_.python(SURFACES).splitlines()
    assert lines == [
        "0",
        f"0 {total - 100} {total}",
        f"0 {total}",
        f"{total} 100 {total - 100} {total} 100 {total - 100}",
    ]


def test_a_slice_made_smaller_than_what_it_holds_has_nothing_free(library: Path, tmp_path: Path) -> None:
    with one_slice(tmp_path, (512,), cards=[Card(context_mib=300)]) as slice_, slice_.probe() as probe:
        probe.start()
        relimit(slice_.region, [region.DeviceLimit(card_uuid(0), 256 * MIB)])
        assert probe.take("a", 100) == OUT_OF_MEMORY
        assert probe.ask("info 0") == ["0", "0", str(256 * MIB), "0", str(256 * MIB)]
        lines = slice_.python(SURFACES).splitlines()
    total, _, free = (int(word) for word in lines[-1].split()[:3])
    assert (total, free) == (256, 0)


def test_one_output_may_be_missing(pod: Slice, probe: Probe) -> None:
    ours = probe.ask("nullinfo")
    with pod.probe(changes={"LD_PRELOAD": ""}) as bare:
        assert bare.start().ask("nullinfo") == ours


def test_processes_of_others_are_not_shown(pod: Slice, probe: Probe) -> None:
    """Neither their memory nor their pids, in any version of the list; ours are."""
    script = (
        "import os, pynvml as n\n"
        "n.nvmlInit()\n"
        "card = n.nvmlDeviceGetHandleByIndex(0)\n"
        "for version in ('_v2', '_v3'):\n"
        "    listed = getattr(n, 'nvmlDeviceGetComputeRunningProcesses' + version)(card)\n"
        "    print(*sorted((p.pid, p.usedGpuMemory >> 20) for p in listed))\n"
    )
    assert probe.take("a", 300) == 0
    with pod.probe(changes={"LD_PRELOAD": "", "STUB_CONTAINER": ""}) as stranger:
        assert stranger.start().take("b", 2000) == 0
        told = pod.python(script)
    assert told.splitlines() == [f"({probe.process.pid}, 300)"] * 2


def test_a_pointer_is_what_the_driver_says(pod: Slice, probe: Probe) -> None:
    with pod.probe(changes={"LD_PRELOAD": ""}) as bare:
        bare.start()
        for family in ("alloc", "managed"):
            assert probe.take("a", 2, family) == bare.take("a", 2, family) == 0
            assert probe.ask("pointer a") == bare.ask("pointer a")
            assert probe.code("give a") == bare.code("give a") == 0


@pytest.mark.parametrize("visible", ["1", card_uuid(1), card_uuid(1)[:12], "1,0"])
def test_the_slice_of_a_card_is_found_whatever_the_program_calls_it(
    library: Path, tmp_path: Path, visible: str
) -> None:
    changes = {"CUDA_VISIBLE_DEVICES": visible}
    with one_slice(tmp_path, (512, 256)) as slice_, slice_.probe(changes=changes) as probe:
        probe.start(0)
        assert probe.ask("info 0")[2:] == [str(256 * MIB), "0", str(256 * MIB)]
        assert probe.take("a", 250) == 0
        agree(slice_, 2)
        assert (slice_.held(0), slice_.held(1)) == (0, 250 * MIB)
        assert probe.take("b", 8) == OUT_OF_MEMORY


def test_one_card_of_several_in_the_region_is_not_the_others(library: Path, tmp_path: Path) -> None:
    """The container was given the second card; the first is nobody's slice and nothing of it is granted."""
    cards = [Card(card_uuid(0)), Card(card_uuid(1))]
    with one_slice(tmp_path, (0, 512), cards=cards) as slice_:
        region.create(slice_.region, [region.DeviceLimit(card_uuid(1), 512 * MIB)])
        with slice_.probe() as probe:
            probe.start(1)
            assert probe.take("a", 512) == 0
            assert slice_.counted(0) == slice_.held(1) == 512 * MIB
            assert probe.code("retain 0") in (0, OUT_OF_MEMORY)
            assert probe.code("create b 0 1 2") == OUT_OF_MEMORY
            assert slice_.held(0) == 0


def test_no_limit_is_no_limit(library: Path, tmp_path: Path) -> None:
    with one_slice(tmp_path, (0,), cards=[Card(memory_mib=2048)]) as slice_, slice_.probe() as probe:
        probe.start()
        assert probe.ask("info 0") == ["0", *[str(2048 * MIB)] * 2, "0", str(2048 * MIB)]
        assert probe.take("a", 2048) == 0
        assert slice_.counted() == 2048 * MIB
        assert probe.take("b", 2) == OUT_OF_MEMORY


def test_limits_change_while_a_program_runs(pod: Slice, probe: Probe) -> None:
    assert probe.take("a", 1000) == 0
    for limit_mib, code in ((500, OUT_OF_MEMORY), (2048, 0)):
        pod.driver.container("pod").limit_bytes[0] = 2048 * MIB
        relimit(pod.region, [region.DeviceLimit(card_uuid(0), limit_mib * MIB)])
        free = max(limit_mib - 1000, 0)
        assert probe.ask("info 0")[1:3] == [str(free * MIB), str(limit_mib * MIB)]
        assert probe.take("b", 100) == code
    agree(pod)
