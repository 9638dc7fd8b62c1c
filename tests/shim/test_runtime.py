"""A CUDA runtime, in each form in which programs have it, calls the library.

NVIDIA's own looks up its whole table of the driver's functions when it starts. Further than that it doesn't
come with the stub driver: it then has the driver prove that it is NVIDIA's, and the stub does not claim it.
With the stub's runtime programs go on, and with NVIDIA's on a real card (tests/gpu).
"""

import pytest

from tests.shim.harness import LIBRARY, OUT_OF_MEMORY, Slice, agree, entries
from tests.shim.runtimes import FORMS, nvidia, stub

DRIVERS = {12: 12040, 13: 13000}
"""A driver that goes with each runtime."""

WANTED = {
    *("cuInit", "cuDevicePrimaryCtxRetain", "cuGetProcAddress", "cuGetProcAddress_v2", "cuMemGetInfo_v2"),
    *("cuMemAlloc_v2", "cuMemAllocPitch_v2", "cuMemAllocManaged", "cuMemFree_v2"),
    *("cuArrayCreate_v2", "cuArray3DCreate_v2", "cuMipmappedArrayCreate"),
    *("cuMemAllocAsync", "cuMemAllocAsync_ptsz", "cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync_ptsz"),
    *("cuMemPoolCreate", "cuMemPoolTrimTo", "cuMemPoolSetAttribute", "cuMemFreeAsync", "cuMemFreeAsync_ptsz"),
    *("cuGraphAddMemAllocNode", "cuGraphAddNode_v2", "cuGraphInstantiateWithParams", "cuGraphLaunch"),
    *("cuGraphLaunch_ptsz", "cuLaunchKernel", "cuLaunchKernel_ptsz", "cuLaunchKernelEx"),
    *("cuLaunchKernelEx_ptsz", "cuLaunchCooperativeKernel", "cuIpcOpenMemHandle_v2"),
}
"""What both runtimes keep of the functions that the library has."""

HOOKED = {entry.symbol for entry in entries()}


def kept(slice_: Slice, major: int, form: str, *, preload: bool = True) -> dict[str, set[str]]:
    """The functions whose addresses NVIDIA's runtime keeps, by the library that has them."""
    slice_.driver.raw.driver_version = DRIVERS[major]
    functions: dict[str, set[str]] = {LIBRARY.name: set(), "libcuda.so.1": set()}
    command = nvidia(major).program("pointers.c", form)
    for line in slice_.run(command, preload=preload).splitlines()[1:]:
        library, name = line.split()
        functions[library].add(name)
    return functions


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("major", DRIVERS)
def test_what_the_runtime_calls_is_ours(pod: Slice, major: int, form: str) -> None:
    functions = kept(pod, major, form)
    assert functions["libcuda.so.1"] & HOOKED == set()
    assert WANTED - functions[LIBRARY.name] == set()


@pytest.mark.parametrize("major", DRIVERS)
def test_without_the_library_the_runtime_calls_the_driver(pod: Slice, major: int) -> None:
    """Otherwise the test above would find nothing bare because it finds nothing."""
    functions = kept(pod, major, "static", preload=False)
    assert WANTED - functions["libcuda.so.1"] == set()
    assert functions[LIBRARY.name] == set()


@pytest.mark.parametrize("form", FORMS)
def test_a_runtime_gets_the_slice_and_no_more(pod: Slice, form: str) -> None:
    *ways, total = pod.run(stub().program("runtime.c", form)).splitlines()
    assert total == "total 1024"
    assert len(ways) == 5
    for way in ways:
        assert way.split()[1:] == [str(OUT_OF_MEMORY), "0", "64", "0", "0"]
    agree(pod)
