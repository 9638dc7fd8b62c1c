"""The core limit where its measurements are poor: long kernels, in the stub driver's time."""

import sys
from pathlib import Path

import pytest

from tests.shim.harness import one_slice
from tests.shim.stub.state import Card, Clock

SECONDS = 200

PAUSES = """
import ctypes, time
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
def must(result):
    assert result == 0, result
must(cuda.cuInit(0))
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
must(cuda.cuCtxSetCurrent(context))
start = time.monotonic()
for turn in range(10):
    must(cuda.cuLaunchKernel(ctypes.c_uint64(40 * 10**6 + 1), 108, 1, 1, 32, 1, 1, 0, None, None, None))
    must(cuda.cuCtxSynchronize())
    time.sleep(1.5)
print(time.monotonic() - start)
"""

NEEDED = """
import ctypes, time
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
def must(result):
    assert result == 0, result
def launch(seconds):
    stream = ctypes.c_void_p()
    must(cuda.cuStreamCreate(ctypes.byref(stream), 1))
    kernel = ctypes.c_uint64(seconds * 10**6 + 1)
    must(cuda.cuLaunchKernel(kernel, 108, 1, 1, 32, 1, 1, 0, stream, None, None))
must(cuda.cuInit(0))
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
must(cuda.cuCtxSetCurrent(context))
start = time.monotonic()
launch(700)
for turn in range(2):
    launch(1)
    print(time.monotonic() - start)
"""


def share(folder: Path, cores: int, mode: str, wave_us: int, seconds: int) -> float:
    """The percentage of a card that launches of *wave_us* had, a queue's rest at the end included."""
    with (
        one_slice(folder, (1024,), cards=[Card()], cores=cores) as slice_,
        Clock(folder / "clock") as clock,
    ):
        return slice_.spin(clock, wave_us, seconds, mode)


@pytest.mark.parametrize("cores", [25, 50])
@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("wave_us", [500_000, 5_000_000])
def test_kernels_of_seconds_get_their_share_too(
    library: Path, tmp_path: Path, cores: int, mode: str, wave_us: int
) -> None:
    """Waited for or queued: what ran unseen is found out, and no queue is filled before anything is known."""
    assert share(tmp_path, cores, mode, wave_us, SECONDS) == pytest.approx(cores, abs=5)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize(
    ("cores", "wave_s"),
    [(25, 40), *(pytest.param(c, w, marks=pytest.mark.long) for c in (10, 50, 75) for w in (25, 40, 100))],
)
def test_so_do_kernels_of_minutes(library: Path, tmp_path: Path, cores: int, wave_s: int, mode: str) -> None:
    """What runs longer than anybody waits is owed: it fills the card no further."""
    assert share(tmp_path, cores, mode, wave_s * 10**6, 60 * wave_s) == pytest.approx(cores, abs=5)


def test_a_pause_after_a_long_kernel_hides_nothing_of_it(library: Path, tmp_path: Path) -> None:
    """Ten kernels of 40 s, a quarter of the card: 400 s of it take some 1,500 s."""
    with (
        one_slice(tmp_path, (1024,), cards=[Card()], cores=25) as slice_,
        Clock(tmp_path / "clock") as clock,
    ):
        told = slice_.in_clock(clock, [sys.executable, "-c", PAUSES])
    assert 9 * 160 - 20 < float(told) < 10 * 160 + 60


def test_a_kernel_that_never_ends_keeps_no_launch_for_ever(library: Path, tmp_path: Path) -> None:
    """It may wait for that launch: one goes after half a minute, the next after three times as long."""
    with (
        one_slice(tmp_path, (1024,), cards=[Card()], cores=25) as slice_,
        Clock(tmp_path / "clock") as clock,
    ):
        told = slice_.in_clock(clock, [sys.executable, "-c", NEEDED])
    first, second = map(float, told.splitlines())
    assert 30 <= first < 40
    assert 3 * first <= second < 240
