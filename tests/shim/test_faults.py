"""Drivers that fail in the middle, NVML that tells less than it should, and shells that know nothing."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.shim.harness import (
    LIBRARY,
    OUT_OF_MEMORY,
    Probe,
    Slice,
    agree,
    can_unshare,
    covers,
    one_slice,
    write_table,
)
from tests.shim.stub import build
from tests.shim.stub.state import MIB, Card


@pytest.mark.parametrize(
    "symbol", ["cuDeviceGetMemPool", "cuMemPoolGetAttribute", "cuDeviceGetDefaultMemPool"]
)
@pytest.mark.parametrize("first", [1, 2, 3])
def test_questions_about_pools_may_fail(pod: Slice, symbol: str, first: int) -> None:
    """Granted and counted, or refused and not taken: never taken and uncounted, never past the slice."""
    with pod.probe() as probe:
        probe.start()
        pod.driver.fail(symbol, 999, first=first, times=1)
        for name in "abcd":
            probe.take(name, 200, "async")
            covers(pod)
        probe.take("e", 400, "async")
        covers(pod)
        pod.driver.clear_faults()
        for name in "abcde":
            probe.ask(f"give {name}")
        assert probe.code("device_sync") == 0
        assert pod.held() == 0
        assert probe.take("all", 1024) == 0
        agree(pod)


@pytest.mark.parametrize("symbol", ["cuDevicePrimaryCtxRetain", "cuCtxCreate_v2"])
def test_a_context_that_the_driver_refuses_counts_nothing(library: Path, tmp_path: Path, symbol: str) -> None:
    with one_slice(tmp_path, (1024,), cards=[Card(context_mib=100)]) as slice_, slice_.probe() as probe:
        assert probe.code("init") == 0
        slice_.driver.fail(symbol, 999)
        command = "retain 0" if symbol == "cuDevicePrimaryCtxRetain" else "context c cuCtxCreate_v2 0"
        assert probe.code(command) == 999
        agree(slice_)
        slice_.driver.clear_faults()
        assert probe.code(command) == 0
        agree(slice_)
        assert slice_.held() == 100 * MIB


def test_a_list_of_processes_that_is_cut_short_takes_nothing_from_the_books(
    library: Path, tmp_path: Path
) -> None:
    with one_slice(tmp_path, (1024,), cards=[Card(context_mib=100)]) as slice_, ExitStack() as stack:
        probe, other = (stack.enter_context(slice_.probe()).start() for _ in range(2))
        agree(slice_)
        slice_.driver.raw.card[0].process_list_most = 1
        assert probe.take("a", 300) == 0
        assert other.take("b", 300) == 0
        for one in (probe, other):
            assert one.code("retain 0") == 0
            assert one.ask("info 0")[0] == "0"
            covers(slice_)
        assert other.take("c", 300) == OUT_OF_MEMORY


@pytest.mark.parametrize("symbol", ["nvmlInit_v2", "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetUUID"])
def test_what_is_asked_for_is_held_to_the_slice_without_nvml(pod: Slice, symbol: str) -> None:
    pod.driver.fail(symbol, 999)
    with pod.probe() as probe:
        probe.start()
        assert probe.take("a", 1000) == 0
        agree(pod)
        assert probe.take("b", 30) == OUT_OF_MEMORY


def test_a_lost_card_is_the_drivers_to_report(pod: Slice, probe: Probe) -> None:
    assert probe.take("a", 100) == 0
    pod.driver.lose(0)
    pod.driver.fail("cuMemAlloc_v2", 719)
    assert probe.take("b", 100) == 719
    assert probe.take("c", 1000) == OUT_OF_MEMORY
    agree(pod)


@pytest.mark.skipif(
    not can_unshare("-rm", "mount", "-t", "tmpfs", "tmpfs", "/usr/local"),
    reason="no permission to mount in a namespace",
)
def test_a_login_shell_has_the_slice_without_any_environment(pod: Slice) -> None:
    """The region is at its fixed place, and no variable of ours tells of it or overrules it."""
    table = write_table(pod.folder / "names")
    script = (
        f"mount -t tmpfs tmpfs /usr/local && mkdir -p /usr/local/vgpu/slice"
        f" && touch /usr/local/vgpu/slice/region && mount --bind {pod.region} /usr/local/vgpu/slice/region"
        f" && exec env -i LD_PRELOAD={LIBRARY} LD_LIBRARY_PATH={build.OUTPUT} STUB_DRIVER={pod.driver.path}"
        f" STUB_CONTAINER=pod VOLCANO_PY_REGION=/nowhere {build.OUTPUT / 'probe'} dlsym {table}"
    )
    with Probe(pod.start(["unshare", "-rm", "sh", "-c", script], preload=False)) as probe:
        assert probe.start().ask("info 0")[2] == str(1024 * MIB)
        assert probe.take("a", 1030) == OUT_OF_MEMORY
        assert probe.take("a", 1000) == 0
        agree(pod)
