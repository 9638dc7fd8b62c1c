"""NVIDIA's own CUDA runtime, in each form in which programs have it, calls the library.

The runtime looks up its whole table of the driver's functions when it starts. Further than that it doesn't
come with the stub driver: it then has the driver prove that it is NVIDIA's, and the stub does not claim it.
"""

from importlib import metadata
from pathlib import Path

import pytest

from tests.shim.harness import LIBRARY, Slice, entries
from tests.shim.stub import build

RUNTIMES = {12: ("nvidia-cuda-runtime-cu12", 12040), 13: ("nvidia-cuda-runtime", 13000)}
"""Of each major version: the package, and a driver that it goes with."""

FORMS = ("shared", "private", "static")
"""Loaded by name; in a namespace of its own (dlmopen); a part of the program."""

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


def shipped(major: int, name: str) -> Path:
    """The file *name* of the runtime's package."""
    files = metadata.files(RUNTIMES[major][0]) or []
    return Path(str(next(file.locate() for file in files if file.name == name)))


def command(major: int, form: str) -> list[str | Path]:
    """A program that has the runtime in *form*, starts it, and tells what it keeps (programs/pointers.c)."""
    source = build.PROGRAMS / "pointers.c"
    program = build.build() / f"pointers-{form}-{major}"
    if form == "static":
        build.compile_to(program, [source, shipped(major, "libcudart_static.a")], "-DLINKED")
        return [program]
    build.compile_to(program, [source])
    return [program, shipped(major, f"libcudart.so.{major}"), form]


def kept(slice_: Slice, major: int, form: str, *, preload: bool = True) -> dict[str, set[str]]:
    """The functions whose addresses the runtime keeps, by the library that has them."""
    slice_.driver.raw.driver_version = RUNTIMES[major][1]
    functions: dict[str, set[str]] = {LIBRARY.name: set(), "libcuda.so.1": set()}
    for line in slice_.run(command(major, form), preload=preload).splitlines()[1:]:
        library, name = line.split()
        functions[library].add(name)
    return functions


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("major", RUNTIMES)
def test_what_the_runtime_calls_is_ours(pod: Slice, major: int, form: str) -> None:
    functions = kept(pod, major, form)
    assert functions["libcuda.so.1"] & HOOKED == set()
    assert WANTED - functions[LIBRARY.name] == set()


@pytest.mark.parametrize("major", RUNTIMES)
def test_without_the_library_the_runtime_calls_the_driver(pod: Slice, major: int) -> None:
    """Otherwise the test above would find nothing bare because it finds nothing."""
    functions = kept(pod, major, "static", preload=False)
    assert WANTED - functions["libcuda.so.1"] == set()
    assert functions[LIBRARY.name] == set()
