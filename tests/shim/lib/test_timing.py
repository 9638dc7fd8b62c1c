"""Launches whose time is taken, and times that a region kept: neither may harm the program."""

import struct
from pathlib import Path

import pytest

from tests.shim.harness import LIBRARY, one_slice
from tests.shim.stub import build
from tests.shim.stub.state import Card, Clock

START = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
def must(result):
    assert result == 0, result
def launch(stream):
    kernel = ctypes.c_uint64(2001)  # of two milliseconds
    must(cuda.cuLaunchKernel(kernel, 108, 1, 1, 32, 1, 1, 0, stream, None, None))
def use(device):
    context = ctypes.c_void_p()
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    must(cuda.cuCtxSetCurrent(context))
must(cuda.cuInit(0))
"""

CAPTURE = """
stream, graph = ctypes.c_void_p(), ctypes.c_void_p()
use(0)
must(cuda.cuStreamCreate(ctypes.byref(stream), 1))
launch(None)
must(cuda.cuStreamBeginCapture_v2(stream, 0))
launch(stream)
must(cuda.cuStreamEndCapture(stream, ctypes.byref(graph)))
print("captured")
"""

TAKE_TURNS = """
for turn in range(20):
    use(turn % 2)
    launch(None)
    must(cuda.cuCtxSynchronize())
"""


def test_a_launch_that_is_timed_does_not_spoil_a_capture(library: Path, tmp_path: Path) -> None:
    with one_slice(tmp_path, (1024,), cards=[Card()], cores=50) as slice_:
        assert slice_.python(START + CAPTURE) == "captured"


def test_a_program_on_two_cards_makes_no_event_after_the_first_ones(library: Path, tmp_path: Path) -> None:
    """On cards of which NVML tells nothing, so that every launch is timed."""
    with one_slice(tmp_path, (1024, 1024), cores=90) as slice_:
        for card in range(2):
            slice_.driver.raw.card[card].hide_utilisation = 1
        made = slice_.driver.watch("cuEventCreate")
        slice_.python(START + TAKE_TURNS)
        assert made.calls == 4


CARD = 4352
"""Where the first card's counters are in a region."""

AHEAD_NS = 10**17
"""Three years of a clock that begins anew with the node."""


TIMES = {"contended": 48, "refilled": 72, "next sample": 80, "last sample": 120}


def test_times_of_before_the_node_restarted_are_not_waited_for(library: Path, tmp_path: Path) -> None:
    with (
        one_slice(tmp_path, (1024,), cards=[Card()], cores=50) as slice_,
        Clock(tmp_path / "clock") as clock,
    ):
        with slice_.region.open("r+b") as file:
            for offset in TIMES.values():
                file.seek(CARD + offset)
                file.write(struct.pack("<Q", AHEAD_NS))
        preload = f"{build.build() / 'libclock.so'}:{LIBRARY}"
        told = slice_.run(
            [build.build() / "spin", "cuLaunchKernel", "1000", "108", "10", "async"],
            {"STUB_CLOCK": str(clock.path), "LD_PRELOAD": preload},
        )
    _, busy, elapsed = (int(word) for word in told.splitlines()[0].split())
    assert 100 * busy / elapsed == pytest.approx(50, abs=5)
