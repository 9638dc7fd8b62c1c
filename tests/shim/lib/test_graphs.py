"""Memory of graphs: on every card, of every child, by launch and upload, and of several at once."""

import sys
import time
from pathlib import Path

import pytest

from tests.shim.harness import OUT_OF_MEMORY, Probe, Slice, agree, one_slice
from tests.shim.test_processes import until
from volcano_py.shim.agent import region

PRELUDE = """
import ctypes as c, struct, sys, threading
cuda = c.CDLL("libcuda.so.1")
MIB = 1 << 20
NODES = {"cuGraphAddNode": 0, "cuGraphAddNode_v2": 1, "cuGraphAddNode_v3": 1}
def must(result):
    assert result == 0, result
def made(call, *words):
    handle = c.c_void_p()
    must(call(c.byref(handle), *words))
    return handle
def allocation(card, mib):
    pool = struct.pack("<iiiiQQH54x", 1, 0, 1, card, 0, 0, 0)
    return c.create_string_buffer(pool + struct.pack("<QQQQ", 0, 0, mib * MIB, 0), 120)
def allocate(graph, card, mib):
    params = allocation(card, mib)
    made(cuda.cuGraphAddMemAllocNode, graph, None, c.c_size_t(0), params)
    return c.c_uint64.from_buffer(params, 112)
def graph_of(*mib):
    graph = made(cuda.cuGraphCreate, 0)
    return graph, [allocate(graph, 0, each) for each in mib]
def move(by, parent, child):
    node = c.create_string_buffer(struct.pack("<iiiiQi", 4, 0, 0, 0, child.value, 1), 256)
    words = [None] * NODES[by] + [c.c_size_t(0), node]
    return getattr(cuda, by)(c.byref(c.c_void_p()), parent, None, *words)
def instantiated(graph, flags=0):
    return made(cuda.cuGraphInstantiateWithFlags, graph, c.c_ulonglong(flags))
def hold(mib):
    must(cuda.cuMemAlloc_v2(c.byref(c.c_uint64()), c.c_size_t(mib * MIB)))
def capture(stream, mib):
    must(cuda.cuMemAllocAsync(c.byref(c.c_uint64()), c.c_size_t(mib * MIB), stream))
    return made(lambda graph: cuda.cuStreamEndCapture(stream, graph))
def told(*words):
    print(*words, flush=True)
    sys.stdin.readline()
must(cuda.cuInit(0))
count = c.c_int()
must(cuda.cuDeviceGetCount(c.byref(count)))
for card in reversed(range(count.value)):
    context = made(cuda.cuDevicePrimaryCtxRetain, card)
    must(cuda.cuCtxSetCurrent(context))
"""


def run(slice_: Slice, script: str) -> Probe:
    """A Python program of the container, which tells and then waits for a line."""
    return Probe(slice_.start([sys.executable, "-c", PRELUDE + script]))


@pytest.mark.parametrize(("held", "answer"), [(0, 0), (600, OUT_OF_MEMORY)])
def test_every_card_of_a_graph_pays(pair: Slice, held: int, answer: int) -> None:
    script = f"""
graph, _ = graph_of(600)
allocate(graph, 1, 20)
ready = instantiated(graph)
{held} and hold({held})
told(cuda.cuGraphLaunch(ready, None))
"""
    with run(pair, script) as program:
        assert int(program.hear()[0]) == answer
        agree(pair, 2)


@pytest.mark.parametrize("by", ["cuGraphAddNode", "cuGraphAddNode_v2", "cuGraphAddNode_v3"])
@pytest.mark.parametrize(("held", "answer"), [(500, 0), (600, OUT_OF_MEMORY)])
def test_a_child_that_is_moved_in_brings_what_it_allocates_once(
    pod: Slice, by: str, held: int, answer: int
) -> None:
    script = f"""
parent, own = graph_of(100)
middle, _ = graph_of()
child, moved = graph_of(200, 200)
must(move("{by}", middle, child))
must(move("{by}", parent, middle))
assert cuda.cuGraphDestroy(child) != 0
ready = instantiated(parent)
hold({held})
told(cuda.cuGraphLaunch(ready, None))
if {answer} == 0:
    for address in own + moved:
        must(cuda.cuMemFreeAsync(address, None))
must(cuda.cuGraphExecDestroy(ready))
must(cuda.cuGraphDestroy(parent))
must(cuda.cuDeviceGraphMemTrim(0))
told("trimmed")
"""
    with run(pod, script) as program:
        assert int(program.hear()[0]) == answer
        agree(pod)
        program.tell("")
        assert program.hear() == ["trimmed"]
        agree(pod)
        assert pod.held() == held << 20


def test_two_launches_at_once_do_not_count_on_the_same_idle_memory(pod: Slice) -> None:
    """One of them finds what an earlier launch left; for the other there is no room."""
    script = """
(one, kept), (other, _) = graph_of(600), graph_of(600)
ready = [instantiated(one), instantiated(other)]
must(cuda.cuGraphLaunch(ready[0], None))
must(cuda.cuMemFreeAsync(kept[0], None))
must(cuda.cuCtxSynchronize())
told("idle")
codes = []
def launch(exec):
    must(cuda.cuCtxSetCurrent(context))
    codes.append(cuda.cuGraphLaunch(exec, None))
threads = [threading.Thread(target=launch, args=[exec]) for exec in ready]
for thread in threads: thread.start()
for thread in threads: thread.join()
told(*sorted(codes))
"""
    with run(pod, script) as program:
        assert program.hear() == ["idle"]
        pod.driver.fail("cuGraphLaunch", 0, delay_us=300_000)
        program.tell("")
        assert program.hear() == ["0", str(OUT_OF_MEMORY)]
        agree(pod)


def test_a_launch_that_waits_for_time_keeps_no_memory_from_others(library: Path, tmp_path: Path) -> None:
    script = """
graph, _ = graph_of(600)
ready = instantiated(graph)
told("ready")
told(cuda.cuGraphLaunch(ready, None))
"""
    with one_slice(tmp_path, (1024,), cores=50) as slice_, run(slice_, script) as program:
        assert program.hear() == ["ready"]
        asked = slice_.driver.watch("cuStreamIsCapturing")  # the last that a launch does before it waits
        region.block(slice_.region, time.monotonic_ns() + 50 * 10**9)
        program.tell("")
        until(lambda: asked.calls == 1)
        assert slice_.counted() == 0
        region.block(slice_.region, 0)
        assert program.hear() == ["0"]
        agree(slice_)


@pytest.mark.parametrize("way", ["upload", "upload_ptsz", "flag", "params"])
@pytest.mark.parametrize(("held", "answer"), [(400, 0), (500, OUT_OF_MEMORY)])
def test_an_upload_takes_the_memory_and_pays_for_it(pod: Slice, way: str, held: int, answer: int) -> None:
    script = f"""
graph, _ = graph_of(600)
out, way = c.c_void_p(), "{way}"
ready = instantiated(graph) if way.startswith("upload") else None
hold({held})
if way == "flag":
    code = cuda.cuGraphInstantiateWithFlags(c.byref(out), graph, c.c_ulonglong(2))
elif way == "params":
    params = c.create_string_buffer(struct.pack("<QQQi", 2, 0, 0, 0), 32)
    code = cuda.cuGraphInstantiateWithParams(c.byref(out), graph, params)
else:
    code = getattr(cuda, "cuGraphU" + way[1:])(ready, None)
told(code, *([cuda.cuGraphLaunch(ready or out, None)] if code == 0 else []))
"""
    with run(pod, script) as program:
        assert [int(code) for code in program.hear()] == ([0, 0] if answer == 0 else [answer])
        agree(pod)


def test_a_graph_that_frees_itself_can_be_launched_again(pod: Slice) -> None:
    script = """
graph, _ = graph_of(600)
ready = instantiated(graph, 1)
told(*(cuda.cuGraphLaunch(ready, None) for _ in range(3)))
"""
    with run(pod, script) as program:
        assert program.hear() == ["0", "0", "0"]
        agree(pod)
        assert pod.held() == 600 << 20


def test_a_graph_that_frees_itself_pays_again_for_what_the_program_freed(pod: Slice) -> None:
    pod.driver.container("pod").limit_bytes[0] = 0
    script = """
graph, kept = graph_of(600)
ready = instantiated(graph, 1)
must(cuda.cuGraphLaunch(ready, None))
must(cuda.cuMemFreeAsync(kept[0], None))
must(cuda.cuCtxSynchronize())
must(cuda.cuDeviceGraphMemTrim(0))
hold(600)
told(cuda.cuGraphLaunch(ready, None))
"""
    with run(pod, script) as program:
        assert program.hear() == [str(OUT_OF_MEMORY)]
        agree(pod)
        assert pod.held() == 600 << 20


def test_a_graph_that_is_captured_again_counts_once(pod: Slice) -> None:
    script = """
stream = made(cuda.cuStreamCreate, 1)
must(cuda.cuStreamBeginCapture_v2(stream, 2))
graph = capture(stream, 400)
for begin in (cuda.cuStreamBeginRecaptureToGraph, cuda.cuStreamBeginRecaptureToGraph_ptsz):
    must(begin(stream, 2, graph, None, None))
    assert capture(stream, 400).value == graph.value
hold(600)
told(cuda.cuGraphLaunch(instantiated(graph), None))
"""
    with run(pod, script) as program:
        assert program.hear() == ["0"]
        agree(pod)
