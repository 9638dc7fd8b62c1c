"""The quota library on a real card: ``make test-gpu``, by hand where one is; elsewhere all of it is skipped.

``GPU_PYTHON`` names an interpreter with PyTorch for the tests that need it.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gpu.card import (
    MIB,
    RealCard,
    RealSlice,
    driver_major,
    find_card,
    has,
    has_torch,
    make_slice,
    query,
)
from tests.gpu.scripts import FILL, RUNTIME
from tests.shim.harness import build_library
from tests.shim.runtimes import FORMS, nvidia
from volcano_py.shim.agent import region

CARD = find_card()
pytestmark = pytest.mark.skipif(CARD is None, reason="no NVIDIA card on this machine")
LIMIT_MIB = 4096

MakeSlice = Callable[..., RealSlice]

MULTIPLY = (
    "import time, torch\n"
    "a = torch.randn(4096, 4096, device='cuda', dtype=torch.float16)\n"
    "def run(seconds):\n"
    "    torch.cuda.synchronize()\n"
    "    start, done = time.monotonic(), 0\n"
    "    while time.monotonic() - start < seconds:\n"
    "        for _ in range(20):\n"
    "            a @ a\n"
    "        torch.cuda.synchronize()\n"
    "        done += 20\n"
    "    return done / (time.monotonic() - start)\n"
    "run(3)\n"
    "print(run(15))\n"
)

LAUNCH = (
    "import time, torch\n"
    "x = torch.zeros(1, device='cuda')\n"
    "def run():\n"
    "    torch.cuda.synchronize()\n"
    "    start = time.thread_time_ns()\n"
    "    for _ in range(20000):\n"
    "        x.add_(1)\n"
    "    return (time.thread_time_ns() - start) / 20000\n"
    "run()\n"
    "print(min(run() for _ in range(7)))\n"
)


@pytest.fixture(scope="session")
def card() -> RealCard:
    """The card; the library is built."""
    assert CARD is not None
    build_library()
    return CARD


@pytest.fixture
def slice_of(card: RealCard, tmp_path: Path) -> MakeSlice:
    """Makes a slice of the card."""

    def make(memory_mib: int = LIMIT_MIB, cores: int = 0) -> RealSlice:
        return make_slice(tmp_path, card, memory_mib, cores)

    return make


def assert_ways_are_counted(ways: list[str]) -> None:
    """Too much is refused, 64 MiB are got, seen and given back; the context may grow a little meanwhile."""
    for way in ways:
        name, over, part, taken, freed, left = way.split()
        assert (name, over, part, freed) == (name, "2", "0", "0")
        assert 64 <= int(taken) <= 68
        assert int(left) <= 4


needs_torch = pytest.mark.skipif(
    CARD is None or not has_torch(), reason="no NVIDIA card, or no PyTorch (GPU_PYTHON)"
)

needs_cuda_python = pytest.mark.skipif(
    CARD is None or not has("cuda.cudart"), reason="no NVIDIA card, or no cuda-python 12.6.0 (GPU_PYTHON)"
)


def test_nvidia_smi_shows_the_slice(slice_of: MakeSlice) -> None:
    assert query("memory.total", slice_of().environment()) == [str(LIMIT_MIB)]


def test_the_driver_gives_the_slice_and_no_more(slice_of: MakeSlice) -> None:
    slice_ = slice_of()
    told = slice_.python(
        "import ctypes\n"
        "cuda, context = ctypes.CDLL('libcuda.so.1'), ctypes.c_void_p()\n"
        "cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)\n"
        "cuda.cuCtxSetCurrent(context)\n"
        "free, total, at, got, code = *(ctypes.c_size_t() for _ in range(2)), ctypes.c_uint64(), 0, 0\n"
        "cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))\n"
        "while code == 0 and got < 1000000:\n"
        "    code = cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(16 << 20))\n"
        "    got += 16 * (code == 0)\n"
        "print(free.value >> 20, total.value >> 20, got, code)\n"
    )
    free, total, got, code = map(int, told[0].split())
    assert (total, code) == (LIMIT_MIB, 2)
    assert free - 16 <= got <= free <= LIMIT_MIB


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("major", [12, 13])
def test_nvidias_runtime_gets_the_slice_and_no_more(slice_of: MakeSlice, major: int, form: str) -> None:
    """Skipped where the driver is older than the runtime."""
    if driver_major() < major:
        pytest.skip(f"the driver is older than CUDA {major}")
    *ways, total = slice_of().run(nvidia(major).program("runtime.c", form))
    assert total == f"total {LIMIT_MIB}"
    assert_ways_are_counted(ways)


@needs_torch
@pytest.mark.parametrize("allocator", ["", "expandable_segments:True", "backend:cudaMallocAsync"])
def test_pytorch_fills_its_slice_and_goes_on(slice_of: MakeSlice, allocator: str) -> None:
    filled, seen, again = slice_of().python(FILL, PYTORCH_CUDA_ALLOC_CONF=allocator)
    mib, refused = filled.split()
    assert refused == "refused"
    assert LIMIT_MIB * 0.7 <= int(mib) <= LIMIT_MIB
    assert int(seen.split()[1]) == LIMIT_MIB
    assert again == "32"


@needs_cuda_python
def test_cuda_python_gets_its_slice_by_every_call_of_the_runtime(slice_of: MakeSlice) -> None:
    *ways, total = slice_of().python(RUNTIME)
    assert total == f"total {LIMIT_MIB}"
    assert_ways_are_counted(ways)


@needs_torch
@pytest.mark.parametrize("cores", [25, 50])
def test_the_core_limit_holds(slice_of: MakeSlice, cores: int) -> None:
    """The rate of multiplications in the slice, beside the rate without one."""
    slice_ = slice_of(cores=cores)
    whole = float(slice_.python(MULTIPLY, preload=False)[0])
    part = float(slice_.python(MULTIPLY)[0])
    assert 100 * part / whole == pytest.approx(cores, abs=8)
    assert region.read(slice_.region).devices[0].throttled_ns > 0


@needs_torch
def test_a_launch_costs_little_more(slice_of: MakeSlice, capsys: pytest.CaptureFixture[str]) -> None:
    slice_ = slice_of()
    bare = float(slice_.python(LAUNCH, preload=False)[0])
    ours = float(slice_.python(LAUNCH)[0])
    with capsys.disabled():
        sys.stdout.write(
            f"\na launch from PyTorch: {bare:.0f} ns without the library, {ours:.0f} ns with it\n"
        )
    assert ours - bare < 1000


def test_what_a_killed_program_held_is_free(slice_of: MakeSlice) -> None:
    slice_ = slice_of()
    script = (
        "import ctypes, os\n"
        "cuda, context, at = ctypes.CDLL('libcuda.so.1'), ctypes.c_void_p(), ctypes.c_uint64()\n"
        "cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)\n"
        "cuda.cuCtxSetCurrent(context)\n"
        f"print(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t({LIMIT_MIB // 2 * MIB})), flush=True)\n"
    )
    victim = script + "os.kill(os.getpid(), 9)"
    child = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {victim!r}])"
    assert slice_.python(child) == ["0"]
    assert slice_.python(script) == ["0"]
