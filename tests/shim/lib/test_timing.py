"""Launches whose time is taken, and times that a region kept: neither may harm the program."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shim.harness import Slice, one_slice
from tests.shim.stub.state import Card, Clock
from volcano_py.shim.agent import region

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


TIMES = {"contended": 48, "starved": 56, "refilled": 72, "next sample": 80, "last sample": 120}
SEEN_US, COST = 88, 104


def write(slice_: Slice, words: dict[int, int]) -> None:
    """Puts *words* in the first card's counters, by offset."""
    with slice_.region.open("r+b") as file:
        for offset, value in words.items():
            file.seek(CARD + offset)
            file.write(struct.pack("<Q", value))


@pytest.fixture
def half(library: Path, tmp_path: Path) -> Iterator[tuple[Slice, Clock]]:
    """A container with half of a card's time, in the clock that jumps."""
    with (
        one_slice(tmp_path, (1024,), cards=[Card()], cores=50) as slice_,
        Clock(tmp_path / "clock") as clock,
    ):
        yield slice_, clock


def test_times_of_before_the_node_restarted_are_not_waited_for(half: tuple[Slice, Clock]) -> None:
    write(half[0], dict.fromkeys(TIMES.values(), AHEAD_NS))
    assert half[0].spin(half[1]) == pytest.approx(50, abs=5)


def test_stamps_that_were_set_back_with_the_wall_clock_are_believed(half: tuple[Slice, Clock]) -> None:
    """The last sample was an hour ahead; estimates are far too low, so that only samples hold the share."""
    write(half[0], {SEEN_US: half[1].now_ns // 1000 + 3600 * 10**6, COST: 1})
    assert half[0].spin(half[1]) == pytest.approx(50, abs=5)


def test_a_wall_clock_that_was_set_ahead_makes_nobody_owe_the_time_between(half: tuple[Slice, Clock]) -> None:
    write(half[0], {SEEN_US: 1})
    assert half[0].spin(half[1]) == pytest.approx(50, abs=5)


@pytest.mark.parametrize("ahead_ns", [61 * 10**9, AHEAD_NS])
def test_a_block_that_no_agent_wrote_is_not_obeyed_but_counted(
    half: tuple[Slice, Clock], ahead_ns: int
) -> None:
    slice_, clock = half
    start = clock.now_ns
    region.block(slice_.region, start + ahead_ns)
    assert half[0].spin(half[1]) == pytest.approx(50, abs=5)
    assert clock.now_ns < start + 30 * 10**9
    said = region.read(slice_.region)
    assert (said.blocked_until_ns, said.disbelieved) == (0, 1)


def test_a_block_that_ran_out_is_taken_away(half: tuple[Slice, Clock]) -> None:
    slice_, clock = half
    region.block(slice_.region, clock.now_ns + 10**9)
    half[0].spin(half[1])
    said = region.read(slice_.region)
    assert (said.blocked_until_ns, said.disbelieved) == (0, 0)
