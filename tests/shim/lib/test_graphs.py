"""A graph that allocates on several cards is paid for on each of them."""

import sys

import pytest

from tests.shim.harness import OUT_OF_MEMORY, Probe, Slice, agree

PROGRAM = """
import ctypes, struct, sys
cuda = ctypes.CDLL("libcuda.so.1")
MIB = 1 << 20
def must(result):
    assert result == 0, result
def allocate(graph, card, mib):
    node = ctypes.c_void_p()
    pool = struct.pack("<iiiiQQH54x", 1, 0, 1, card, 0, 0, 0)
    params = ctypes.create_string_buffer(pool + struct.pack("<QQQQ", 0, 0, mib * MIB, 0), 120)
    must(cuda.cuGraphAddMemAllocNode(ctypes.byref(node), graph, None, ctypes.c_size_t(0), params))
context, graph, made = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
must(cuda.cuInit(0))
for card in (1, 0):
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), card))
    must(cuda.cuCtxSetCurrent(context))
must(cuda.cuGraphCreate(ctypes.byref(graph), 0))
allocate(graph, 0, 600)
allocate(graph, 1, 20)
must(cuda.cuGraphInstantiateWithFlags(ctypes.byref(made), graph, ctypes.c_ulonglong(0)))
if len(sys.argv) > 1:
    held = ctypes.c_uint64()
    must(cuda.cuMemAlloc_v2(ctypes.byref(held), ctypes.c_size_t(600 * MIB)))
print(cuda.cuGraphLaunch(made, None), flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize(("first", "answer"), [("", 0), ("full", OUT_OF_MEMORY)])
def test_every_card_of_a_graph_pays(pair: Slice, first: str, answer: int) -> None:
    command = [sys.executable, "-c", PROGRAM, *first.split()]
    with Probe(pair.start(command)) as program:
        assert int(program.hear()[0]) == answer
        agree(pair, 2)
