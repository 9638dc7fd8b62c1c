"""Memory by every family: never past the slice, counted as the driver counts it, given back in full."""

import random
from pathlib import Path

import pytest

from tests.shim.harness import (
    FAMILIES,
    INVALID_VALUE,
    OUT_OF_MEMORY,
    WAYS,
    Probe,
    Slice,
    agree,
    covers,
    one_slice,
)
from tests.shim.stub.state import MIB
from volcano_py.shim.agent import region

DRIVER_CALL = {
    "alloc": "cuMemAlloc_v2",
    "alloc_v1": "cuMemAlloc",
    "pitch": "cuMemAllocPitch_v2",
    "pitch_v1": "cuMemAllocPitch",
    "managed": "cuMemAllocManaged",
    "array": "cuArrayCreate_v2",
    "array_v1": "cuArrayCreate",
    "array3d": "cuArray3DCreate_v2",
    "array3d_v1": "cuArray3DCreate",
    "mipmap": "cuMipmappedArrayCreate",
    "async": "cuMemAllocAsync",
    "async_ptsz": "cuMemAllocAsync_ptsz",
    "pool": "cuMemAllocFromPoolAsync",
    "pool_ptsz": "cuMemAllocFromPoolAsync_ptsz",
    "physical": "cuMemCreate",
    "graph": "cuGraphAddMemAllocNode",
    "node": "cuGraphAddNode",
    "node_v2": "cuGraphAddNode_v2",
}
"""What each family asks the driver for; the rest asks as another one does."""

GRAPHS = {"graph", "node", "node_v2", "captured"}
"""The families whose memory is taken at a graph's launch."""


@pytest.mark.parametrize("way", WAYS)
def test_no_family_gets_past_the_slice(pod: Slice, way: str) -> None:
    with pod.probe(way) as probe:
        probe.start()
        for family in FAMILIES:
            compare = covers if family == "async_free" else agree
            assert probe.take("a", 512, family) == 0, family
            compare(pod)
            assert probe.ask(f"take b {family} {514 * MIB}") == [str(OUT_OF_MEMORY), "clean"], family
            compare(pod)
            assert probe.take("c", 256, family) == 0, family
            compare(pod)
            assert probe.code("give a") == 0, family
            compare(pod)
            assert probe.take("a", 768, family) == 0, family
            agree(pod)
            assert probe.code("give a") == 0, family
            assert probe.code("give c") == 0, family
            compare(pod)
            assert pod.held() == 0, family
    assert region.read(pod.region).devices[0].refused >= len(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
def test_more_than_the_slice_is_refused_before_the_driver_is_asked(pod: Slice, family: str) -> None:
    symbol = DRIVER_CALL.get(family, "cuMemCreate")
    asked = pod.driver.watch(symbol)
    with pod.probe() as probe:
        probe.start()
        assert probe.ask(f"take a {family} {1026 * MIB}") == [str(OUT_OF_MEMORY), "clean"]
        agree(pod)
        assert pod.held() == 0
    if family not in {"async", "async_free", *GRAPHS}:
        assert asked.calls == 0


@pytest.mark.parametrize("code", [OUT_OF_MEMORY, 999])
def test_what_the_driver_refuses_is_not_counted(pod: Slice, code: int) -> None:
    with pod.probe() as probe:
        probe.start()
        for family, symbol in DRIVER_CALL.items():
            pod.driver.clear_faults()
            pod.driver.fail(symbol, code)
            assert probe.ask(f"take a {family} {64 * MIB}") == [str(code), "clean"], family
            agree(pod)
            assert pod.held() == 0, family
            pod.driver.clear_faults()
            assert probe.take("a", 1024, family) == 0, family
            assert probe.code("give a") == 0, family
            agree(pod)


def test_a_free_that_the_driver_refuses_changes_nothing(pod: Slice, probe: Probe) -> None:
    for family, symbol in (
        ("alloc", "cuMemFree_v2"),
        ("array", "cuArrayDestroy"),
        ("physical", "cuMemRelease"),
    ):
        assert probe.take("a", 100, family) == 0
        pod.driver.fail(symbol, 999)
        assert probe.code("give a") == 999
        agree(pod)
        assert pod.held() == 100 * MIB
        pod.driver.clear_faults()
        assert probe.code("give a") == 0
        agree(pod)


def test_addresses_that_are_no_allocation_are_the_drivers_to_judge(pod: Slice, probe: Probe) -> None:
    assert probe.take("a", 100) == 0
    at = probe.ask("where a")[0]
    assert probe.code("give a") == 0
    assert probe.code(f"give_address alloc {at} 0") == INVALID_VALUE
    assert probe.code(f"give_address async {at} 0") == INVALID_VALUE
    assert probe.code("give_address alloc 12345678 0") == INVALID_VALUE
    assert probe.code("give_address alloc 0 0") == 0
    assert probe.code("give_address physical 77 0") == INVALID_VALUE
    agree(pod)
    assert pod.held() == 0


def test_a_stream_ordered_free_counts_where_the_memory_is(pair: Slice) -> None:
    with pair.probe() as probe:
        probe.start(0)
        assert probe.take("a", 900, "async") == 0
        assert probe.code("retain 1") == 0
        assert probe.code("give a") == 0
        assert probe.take("b", 900, "async") == 0
        assert probe.code("retain 0") == 0
        assert probe.code("device_sync") == 0
        covers(pair, 2)
        assert (pair.held(0), pair.held(1)) == (0, 900 * MIB)
        assert probe.take("c", 900, "async") == 0
        agree(pair, 2)


def test_a_pool_keeps_what_its_threshold_allows_and_it_counts(pod: Slice, probe: Probe) -> None:
    assert probe.code("threshold 0 500") == 0
    assert probe.take("a", 800, "async") == 0
    assert probe.code("give a") == 0
    agree(pod)
    assert pod.held() == 500 * MIB
    assert probe.take("b", 600) == OUT_OF_MEMORY
    assert probe.code("trim 0 100") == 0
    agree(pod)
    assert pod.held() == 100 * MIB
    assert probe.take("b", 600) == 0


def test_virtual_memory_counts_for_its_own_device_without_any_context(pair: Slice) -> None:
    with pair.probe() as probe:
        assert probe.code("init") == 0
        for device in (0, 1):
            assert probe.code(f"create a {device} 1 900") == 0
            agree(pair, 2)
            assert pair.held(device) == 900 * MIB
            assert probe.code(f"create b {device} 1 200") == OUT_OF_MEMORY
            assert probe.code("release a") == 0
            agree(pair, 2)
        for kind in (2, 3):
            assert probe.code(f"create a 0 {kind} 4096") == 0
            agree(pair, 2)
            assert probe.code("release a") == 0
        assert (pair.held(0), pair.held(1)) == (0, 0)


def test_a_handle_kept_by_mappings_counts_until_the_last_is_gone(pod: Slice, probe: Probe) -> None:
    assert probe.code("create a 0 1 100") == 0
    assert probe.code("map m a 100") == 0
    assert probe.code("map n a 100") == 0
    assert probe.code("release a") == 0
    agree(pod)
    assert pod.held() == 100 * MIB
    assert probe.code("unmap m 100") == 0
    assert probe.code("retained r n") == 0
    assert probe.code("unmap n 100") == 0
    agree(pod)
    assert pod.held() == 100 * MIB
    assert probe.code("release r") == 0
    agree(pod)
    assert pod.held() == 0


def test_memory_of_another_process_is_paid_by_its_maker(pod: Slice) -> None:
    with pod.probe() as maker, pod.probe() as user:
        maker.start()
        user.start()
        assert maker.take("a", 600) == 0
        handle = maker.ask("ipc a")[1]
        assert user.code(f"ipc_open b {handle}") == 0
        assert user.take("c", 400) == 0
        agree(pod)
        assert pod.held() == 1000 * MIB
        assert user.code("ipc_close b") == 0
        agree(pod)


def test_memory_that_is_not_the_cards_costs_nothing(pod: Slice, probe: Probe) -> None:
    for command in ("host h 64", "external e 4096", "create n 0 2 64", "multicast m 4096"):
        assert probe.code(command) == 0, command
        agree(pod)
    for command in ("free_host h", "destroy_external e", "release n", "release m"):
        assert probe.code(command) == 0, command
        agree(pod)
    assert pod.held() == 0


@pytest.mark.parametrize("bind", ["bind x a 100", "bind_at x m 100"])
def test_a_multicast_binding_keeps_memory(pod: Slice, probe: Probe, bind: str) -> None:
    for command in ("multicast x 100", "create a 0 1 100", "map m a 100", bind, "release a", "unmap m 100"):
        assert probe.code(command) == 0, command
        agree(pod)
    assert pod.held() == 100 * MIB
    assert probe.code("unbind x 0 100") == 0
    agree(pod)
    assert pod.held() == 0


def test_a_handle_from_another_process_does_not_count_twice(pod: Slice, probe: Probe) -> None:
    assert probe.code("create a 0 1 100") == 0
    for command in ("shared b a", "map m b 100", "release b"):
        assert probe.code(command) == 0, command
        agree(pod)
    assert pod.held() == 100 * MIB
    assert probe.code("unmap m 100") == 0
    assert probe.code("release a") == 0
    agree(pod)


def test_the_end_of_a_context_is_the_end_of_what_it_held(pod: Slice, probe: Probe) -> None:
    for symbol in ("cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2"):
        for family in ("alloc", "managed", "array", "mipmap", "pitch"):
            assert probe.take(family, 100, family) == 0
        assert probe.code(f"device_call {symbol} 0") == 0
        agree(pod)
        assert pod.held() == 0
        assert probe.code("forget") == 0
        assert probe.code("retain 0") == 0
    for version in ("cuCtxCreate", "cuCtxCreate_v2", "cuCtxCreate_v3", "cuCtxCreate_v4"):
        for end in ("cuCtxDestroy", "cuCtxDestroy_v2"):
            assert probe.code(f"context c {version} 0") == 0
            assert probe.take("x", 1000) == 0
            agree(pod)
            assert probe.code(f"destroy c {end}") == 0
            assert probe.code("forget") == 0
            agree(pod)
            assert pod.held() == 0


@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_calls_leaves_equal_books(library: Path, tmp_path: Path, seed: int) -> None:
    random_ = random.Random(seed)
    with one_slice(tmp_path, (512, 256)) as slice_, slice_.probe() as probe:
        probe.start(1).start(0)
        held: list[str] = []
        for step in range(150):
            if random_.random() < 0.1:
                assert probe.code(f"retain {random_.randrange(2)}") == 0
            if held and random_.random() < 0.45:
                assert probe.code(f"give {held.pop(random_.randrange(len(held)))}") == 0
            else:
                family = random_.choice([name for name in FAMILIES if name not in GRAPHS])
                code = probe.take(str(step), 2 * random_.randrange(1, 100), family)
                assert code in (0, OUT_OF_MEMORY), family
                held += [str(step)] * (code == 0)
            covers(slice_, 2)
        for name in held:
            assert probe.code(f"give {name}") == 0
        for device, whole in ((0, 512), (1, 256)):
            assert probe.code(f"retain {device}") == 0
            assert probe.code("device_sync") == 0
            assert probe.take("whole", whole) == 0
            assert probe.take("more", 2) == OUT_OF_MEMORY
            assert probe.code("give whole") == 0
        agree(slice_, 2)
