"""What no call names in bytes (contexts, code, heaps): counted at once, given back where it doesn't fit."""

import sys
from pathlib import Path

import pytest

from tests.shim.harness import Probe, Slice, one_slice
from tests.shim.stub import build
from tests.shim.stub.state import MIB, Card
from tests.shim.test_processes import until

LIMIT_MIB = 256
PRELUDE = """
import ctypes as c, sys
cuda = c.CDLL("libcuda.so.1")
UNTOUCHED = 0xabcdef
def must(result):
    assert result == 0, result
def hold(mib):
    return cuda.cuMemAlloc_v2(c.byref(c.c_uint64()), c.c_size_t(mib << 20))
def told(*words):
    print(*words, flush=True)
    sys.stdin.readline()
def retain():
    context = c.c_void_p()
    must(cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0))
    must(cuda.cuCtxSetCurrent(context))
def tell(made, code):
    told(code, "clean" if code == 0 or made.value == UNTOUCHED else "touched")
    return made
CALLS = {
    "cuModuleLoad": (b"file",),
    "cuModuleLoadData": (b"code",),
    "cuModuleLoadDataEx": (b"code", 0, None, None),
    "cuModuleLoadFatBinary": (b"code",),
    "cuLibraryLoadData": (b"code", None, None, 0, None, None, 0),
    "cuLibraryLoadFromFile": (b"file", None, None, 0, None, None, 0),
    "cuGreenCtxCreate": (b"all", 0, 1),
    "cuCtxCreate": (0, 0),
    "cuCtxCreate_v2": (0, 0),
    "cuCtxCreate_v3": (None, 0, 0, 0),
    "cuCtxCreate_v4": (None, 0, 0),
    "cuDevicePrimaryCtxRetain": (0,),
}
def make(call):
    made = c.c_uint64(UNTOUCHED)
    return tell(made, getattr(cuda, call)(c.byref(made), *CALLS[call]))
must(cuda.cuInit(0))
"""

LOADS = {
    "cuModuleLoad": "cuModuleUnload",
    "cuModuleLoadData": "cuModuleUnload",
    "cuModuleLoadDataEx": "cuModuleUnload",
    "cuModuleLoadFatBinary": "cuModuleUnload",
    "cuLibraryLoadData": "cuLibraryUnload",
    "cuLibraryLoadFromFile": "cuLibraryUnload",
    "cuGreenCtxCreate": "cuGreenCtxDestroy",
}
CONTEXTS = ("cuCtxCreate", "cuCtxCreate_v2", "cuCtxCreate_v3", "cuCtxCreate_v4")


class Program:
    """A Python program that stops after each step; the card's books are read between them."""

    def __init__(self, slice_: Slice, script: str) -> None:
        self.slice_ = slice_
        self.probe = Probe(slice_.start([sys.executable, "-c", PRELUDE + script]))

    def step(self) -> tuple[str, int]:
        """The answer to the next step, and what is held then, MiB: the books say the same as the driver."""
        told = " ".join(self.probe.hear())
        held = self.slice_.held()
        assert self.slice_.counted() == held
        self.probe.tell("")
        return told, held // MIB


def run(folder: Path, card: Card, script: str) -> list[tuple[str, int]]:
    """All steps of *script* in a slice of 256 MiB; the driver grants whatever the card has."""
    with one_slice(folder, (LIMIT_MIB,), cards=[card]) as slice_:
        slice_.driver.container("pod").limit_bytes[0] = 0
        program = Program(slice_, script)
        with program.probe:
            return [program.step() for _ in range(script.count("tell") + script.count("make("))]


@pytest.mark.parametrize("load", LOADS)
def test_code_counts_when_it_is_loaded_and_goes_back_where_it_does_not_fit(
    library: Path, tmp_path: Path, load: str
) -> None:
    script = f"""
retain()
must(hold(100))
first = make("{load}")
second = make("{load}")
third = make("{load}")
tell(first, cuda.{LOADS[load]}(first))
again = make("{load}")
"""
    assert run(tmp_path, Card(context_mib=10, module_kib=60 * 1024), script) == [
        ("0 clean", 170),
        ("0 clean", 230),
        ("2 clean", 230),
        ("0 clean", 170),
        ("0 clean", 230),
    ]


@pytest.mark.parametrize("create", CONTEXTS)
def test_a_context_that_does_not_fit_goes_back(library: Path, tmp_path: Path, create: str) -> None:
    script = f"""
first = make("{create}")
second = make("{create}")
third = make("{create}")
tell(first, hold(50))
tell(first, cuda.cuCtxDestroy_v2(second))
again = make("{create}")
"""
    assert run(tmp_path, Card(context_mib=100), script) == [
        ("0 clean", 100),
        ("0 clean", 200),
        ("2 clean", 200),
        ("0 clean", 250),
        ("0 clean", 100),
        ("0 clean", 200),
    ]


@pytest.mark.parametrize("create", ["cuDevicePrimaryCtxRetain", "cuGreenCtxCreate"])
def test_a_first_context_that_does_not_fit_goes_back(library: Path, tmp_path: Path, create: str) -> None:
    assert run(tmp_path, Card(context_mib=300), f'make("{create}")\nmake("{create}")') == [
        ("2 clean", 0),
        ("2 clean", 0),
    ]


def test_a_driver_from_before_cuda_11_gets_its_context_back_too(library: Path, tmp_path: Path) -> None:
    """It has no cuDevicePrimaryCtxRelease_v2."""
    old = tmp_path / "libcuda.so.1"
    sources = [build.SOURCES / name for name in build.LIBRARIES[old.name]]
    build.compile_to(old, sources, "-shared", "-DcuDevicePrimaryCtxRelease_v2=newer")
    with one_slice(tmp_path, (LIMIT_MIB,), cards=[Card(context_mib=300)]) as slice_:
        slice_.driver.container("pod").limit_bytes[0] = 0
        slice_.extra["LD_LIBRARY_PATH"] = f"{tmp_path}:{build.build()}"
        program = Program(slice_, 'make("cuDevicePrimaryCtxRetain")')
        with program.probe:
            assert program.step() == ("2 clean", 0)


def test_a_heap_counts_when_its_size_is_set(library: Path, tmp_path: Path) -> None:
    script = """
retain()
now = c.c_size_t()
for mib in (200, 300, 100):
    code = cuda.cuCtxSetLimit(2, c.c_size_t(mib << 20))
    must(cuda.cuCtxGetLimit(c.byref(now), 2))
    told(code, now.value >> 20)
"""
    with one_slice(tmp_path, (LIMIT_MIB,)) as slice_:
        slice_.driver.container("pod").limit_bytes[0] = 0
        program = Program(slice_, script)
        with program.probe:
            assert [program.step() for _ in range(3)] == [("0 200", 200), ("2 200", 200), ("0 100", 100)]


def test_a_look_while_another_thread_allocates_lowers_nothing(library: Path, tmp_path: Path) -> None:
    """What is reserved and not yet taken is no reason to believe that contexts hold less."""
    script = """
import threading
def hold_slowly():
    retain()
    must(cuda.cuMemAllocManaged(c.byref(c.c_uint64()), c.c_size_t(100 << 20), 1))
retain()
told("ready")
thread = threading.Thread(target=hold_slowly)
thread.start()
sys.stdin.readline()
told(cuda.cuCtxSetLimit(1, c.c_size_t(1)))
thread.join()
told("held")
"""
    with one_slice(tmp_path, (LIMIT_MIB,), cards=[Card(context_mib=100)]) as slice_:
        slow_call = slice_.driver.fail("cuMemAllocManaged", 0, delay_us=2_000_000)
        program = Program(slice_, script)
        with program.probe as probe:
            assert program.step() == ("ready", 100)
            until(lambda: slow_call.calls == 1)
            probe.tell("")
            assert probe.hear() == ["0"]
            assert slice_.counted() == 200 * MIB
            probe.tell("")
            assert program.step() == ("held", 200)


def test_what_is_allocated_in_a_green_context_goes_with_the_primary_one(
    library: Path, tmp_path: Path
) -> None:
    script = """
retain()
green, context = c.c_uint64(), c.c_void_p()
must(cuda.cuGreenCtxCreate(c.byref(green), b"all", 0, 1))
must(cuda.cuCtxFromGreenCtx(c.byref(context), green))
must(cuda.cuCtxSetCurrent(context))
tell(green, hold(100))
must(cuda.cuGreenCtxDestroy(green))
tell(green, cuda.cuDevicePrimaryCtxReset_v2(0))
"""
    assert run(tmp_path, Card(), script) == [("0 clean", 100), ("0 clean", 0)]
