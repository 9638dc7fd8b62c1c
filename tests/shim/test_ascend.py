"""The same books over AscendCL: libvnpu.so before a stub of the runtime."""

import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shim.harness import BUILT, Slice, agree, one_slice
from tests.shim.stub import build
from tests.shim.stub.state import MIB, Card
from volcano_py.shim.agent import region

NO_MEMORY = 207001
LIBRARY = build.OUTPUT / "libvnpu.so"

START = (
    "import ctypes, os, sys\n"
    "acl = ctypes.CDLL('libascendcl.so')\n"
    "assert acl.aclInit(None) == 0\n"
    "assert acl.aclrtSetDevice(0) == 0\n"
    "at, other = ctypes.c_void_p(), ctypes.c_void_p()\n"
    "def take(mib, call=acl.aclrtMalloc, place=at, *rest):\n"
    "    return call(ctypes.byref(place), ctypes.c_size_t(mib * (1 << 20) - 32), 0, *rest)\n"
    "class Prop(ctypes.Structure):\n"
    "    _fields_ = [(n, ctypes.c_int) for n in ('handle', 'allocation', 'attribute', 'id', 'kind')]\n"
    "    _fields_ += [('reserved', ctypes.c_uint64)]\n"
    "def physical(mib, device, kind, place):\n"
    "    prop = Prop(0, 0, 0, device, kind, 0)\n"
    "    size = ctypes.c_size_t(mib << 20)\n"
    "    return acl.aclrtMallocPhysical(ctypes.byref(place), size, ctypes.byref(prop), ctypes.c_uint64(0))\n"
)
CALLS = (
    "aclrtMalloc",
    "aclrtMallocAlign32",
    "aclrtMallocCached",
    "aclrtMallocWithCfg",
    "aclrtMallocForTaskScheduler",
)


@pytest.fixture
def npu(library: Path, tmp_path: Path) -> Iterator[Slice]:
    """A container with 1 GiB of the first of two NPUs and 512 MiB of the second, under libvnpu.so."""
    copy = LIBRARY.with_name(f".{LIBRARY.name}")
    shutil.copy2(BUILT.with_name(LIBRARY.name), copy)
    copy.replace(LIBRARY)
    with one_slice(tmp_path, (1024, 512), cards=[Card("npu-0"), Card("npu-1")]) as slice_:
        slice_.extra["LD_PRELOAD"] = str(LIBRARY)
        yield slice_


def run(slice_: Slice, script: str) -> list[str]:
    """The words that *script* prints after START."""
    return slice_.python(START + script).split()


def test_every_symbol_is_ours(npu: Slice) -> None:
    names = [entry["name"] for entry in tomllib.loads(build.SYMBOLS.read_text())["ascend"]]
    told = run(
        npu,
        "class Place(ctypes.Structure):\n"
        "    _fields_ = [(n, ctypes.c_char_p) for n in ('file', 'base', 'name', 'at')]\n"
        f"for name in {names}:\n"
        "    place = Place()\n"
        "    at = ctypes.cast(getattr(acl, name), ctypes.c_void_p)\n"
        "    ctypes.CDLL(None).dladdr(at, ctypes.byref(place))\n"
        "    print(os.path.basename(place.file.decode()))\n",
    )
    assert told == [LIBRARY.name] * len(names)


@pytest.mark.parametrize("call", CALLS)
def test_no_call_gets_past_the_slice(npu: Slice, call: str) -> None:
    rest = ", None" if call.endswith(("Cfg", "Scheduler")) else ""
    asked = npu.driver.watch(call)
    told = run(
        npu,
        f"call = acl.{call}\n"
        f"print(take(1000, call, at{rest}), take(30, call, other{rest}), other.value)\n"
        f"print(take(24, call, other{rest}), acl.aclrtFree(at), acl.aclrtFree(other))\n"
        f"print(acl.aclrtFree(ctypes.c_void_p(4096)), take(1024, call, at{rest}))\n",
    )
    assert told == ["0", str(NO_MEMORY), "None", "0", "0", "0", "107000", "0"]
    assert asked.calls == 3
    assert region.read(npu.region).devices[0].refused == 1
    assert npu.driver.violations == 0


def test_the_runtimes_refusal_is_not_counted(npu: Slice) -> None:
    npu.driver.fail("aclrtMalloc", 507899, times=1)
    assert run(npu, "print(take(600), take(600), take(424, acl.aclrtMalloc, other))\n") == [
        "507899",
        "0",
        "0",
    ]


def test_memory_info_is_the_slice(npu: Slice) -> None:
    told = run(
        npu,
        "free, total = ctypes.c_size_t(), ctypes.c_size_t()\n"
        "take(100)\n"
        "for device in (0, 1):\n"
        "    acl.aclrtSetDevice(device)\n"
        "    print(acl.aclrtGetMemInfo(1, ctypes.byref(free), ctypes.byref(total)))\n"
        "    print(free.value >> 20, total.value >> 20)\n",
    )
    assert told == ["0", "924", "1024", "0", "512", "512"]


def test_physical_memory_counts_on_its_device_while_a_handle_or_a_mapping_holds_it(npu: Slice) -> None:
    told = run(
        npu,
        "start = ctypes.c_void_p()\n"
        "print(physical(500, 1, 1, at), physical(20, 1, 1, other), physical(4096, 0, 0, other))\n"
        "size, none = ctypes.c_size_t(500 << 20), ctypes.c_uint64(0)\n"
        "acl.aclrtReserveMemAddress(ctypes.byref(start), size, none, None, none)\n"
        "print(acl.aclrtMapMem(start, size, none, at, none))\n"
        "print(acl.aclrtFreePhysical(at), physical(20, 1, 1, other))\n"
        "print(acl.aclrtUnmapMem(start), physical(512, 1, 1, other))\n",
    )
    assert told == ["0", str(NO_MEMORY), "0", "0", "0", str(NO_MEMORY), "0", "0"]
    assert npu.driver.violations == 0


@pytest.mark.parametrize("reset", ["aclrtResetDevice", "aclrtResetDeviceForce"])
def test_a_reset_gives_all_back(npu: Slice, reset: str) -> None:
    told = run(npu, f"print(take(1000), acl.{reset}(0), acl.aclrtSetDevice(0), take(1024))\n")
    assert told == ["0", "0", "0", "0"]


def test_processes_share_the_slice_and_the_dead_leave_it(npu: Slice) -> None:
    told = run(
        npu,
        "child = os.fork()\n"
        "if child == 0:\n"
        "    acl.aclInit(None), acl.aclrtSetDevice(0)\n"
        "    print(take(700), flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
        "os.waitpid(child, 0)\n"
        "print(take(800))\n",
    )
    assert told == ["0", "0"]
    agree(npu)
    assert npu.driver.violations == 0
    assert npu.driver.container("pod").peak_bytes[0] == 800 * MIB
