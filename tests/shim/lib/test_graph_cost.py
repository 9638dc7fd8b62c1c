"""What is captured costs no time of the card; what a graph holds is paid by its launch."""

import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shim.harness import Slice, one_slice
from tests.shim.stub.state import Card, Clock

BLOCKS = 108
SECOND = 10**9
SPENT_NS, COST = 4352 + 96, 4352 + 104
"""Where the first card's estimates are in a region."""

START = """
import ctypes, time
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
def must(result):
    assert result == 0, result
def launch(stream):
    must(cuda.cuLaunchKernel(ctypes.c_uint64(10**6 + 1), 108, 1, 1, 32, 1, 1, 0, stream, None, None))
def captured(launches):
    stream, graph = ctypes.c_void_p(), ctypes.c_void_p()
    must(cuda.cuStreamCreate(ctypes.byref(stream), 1))
    must(cuda.cuStreamBeginCapture_v2(stream, 0))
    for _ in range(launches):
        launch(stream)
    must(cuda.cuStreamEndCapture(stream, ctypes.byref(graph)))
    return graph
def instantiated(graph):
    made = ctypes.c_void_p()
    must(cuda.cuGraphInstantiateWithFlags(ctypes.byref(made), graph, ctypes.c_ulonglong(0)))
    return made
must(cuda.cuInit(0))
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
must(cuda.cuCtxSetCurrent(context))
"""

FLAT = "made = instantiated(captured(5))"
NESTED = """
parent, child, node = ctypes.c_void_p(), captured(3), ctypes.c_void_p()
must(cuda.cuGraphCreate(ctypes.byref(parent), 0))
for _ in range(2):
    must(cuda.cuGraphAddChildGraphNode(ctypes.byref(node), parent, None, ctypes.c_size_t(0), child))
made = instantiated(parent)
"""
EMPTY = "made = instantiated(captured(0))"
FORGOTTEN = """
old = [instantiated(captured(1)) for _ in range(100)]
for each in old:
    must(cuda.cuGraphExecDestroy(each))
made = instantiated(captured(4))
"""


@pytest.fixture
def known(library: Path, tmp_path: Path) -> Iterator[tuple[Slice, Clock]]:
    """A container with half of a card, where a launch is known to cost a second."""
    with (
        one_slice(tmp_path, (1024,), cards=[Card()], cores=50) as slice_,
        Clock(tmp_path / "clock") as clock,
    ):
        with slice_.region.open("r+b") as file:
            file.seek(COST)
            file.write(struct.pack("<Q", SECOND * 1024 // BLOCKS))
        yield slice_, clock


def run(known: tuple[Slice, Clock], script: str) -> str:
    """What *script* prints in the container, after it has a context."""
    return known[0].in_clock(known[1], [sys.executable, "-c", START + script])


def spent_s(slice_: Slice) -> float:
    """What launches since the last sample were thought to cost."""
    with slice_.region.open("rb") as file:
        file.seek(SPENT_NS)
        spent: int = struct.unpack("<Q", file.read(8))[0]
    return spent / SECOND


def test_what_is_captured_costs_nothing_and_waits_for_nothing(known: tuple[Slice, Clock]) -> None:
    told = run(known, "start = time.monotonic()\ncaptured(50)\nprint(time.monotonic() - start)\n")
    assert float(told) < 1
    assert spent_s(known[0]) == 0


@pytest.mark.parametrize(("make", "kernels"), [(FLAT, 5), (NESTED, 6), (EMPTY, 0), (FORGOTTEN, 4)])
def test_a_graph_costs_what_it_holds(known: tuple[Slice, Clock], make: str, kernels: int) -> None:
    run(known, make + "\nmust(cuda.cuGraphLaunch(made, None))\n")
    assert spent_s(known[0]) == pytest.approx(kernels, abs=0.01)


def test_where_no_time_is_limited_the_driver_is_asked_nothing(library: Path, tmp_path: Path) -> None:
    names = ("cuStreamIsCapturing", "cuGraphGetNodes", "cuGraphNodeGetType", "cuEventRecord")
    with one_slice(tmp_path, (1024,), cards=[Card()]) as slice_:
        asked = [slice_.driver.watch(name) for name in names]
        slice_.python(START + FLAT + "\nmust(cuda.cuGraphLaunch(made, None))\nlaunch(None)\n")
        assert [each.calls for each in asked] == [0] * len(names)
