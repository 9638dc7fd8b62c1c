"""What newer drivers brought: parts of a card, managed pools, sparse arrays, further ABIs of old calls."""

import sys

import pytest

from tests.shim.harness import Probe, Slice, agree

PRELUDE = """
import ctypes as c, struct, sys
cuda = c.CDLL("libcuda.so.1")
DEVICE, HOST, PART = 1, 2, 6
PINNED, MANAGED = 1, 2
def must(result):
    assert result == 0, result
def mib(count):
    return c.c_size_t(count << 20)
def create(kind, place, count):
    handle = c.c_uint64()
    prop = struct.pack("<iiiiQ8x", PINNED, 0, kind, place, 0)
    return cuda.cuMemCreate(c.byref(handle), mib(count), prop, c.c_ulonglong(0)), handle
def pool_of(kind, place, type):
    pool = c.c_uint64()
    prop = struct.pack("<iiiiQQH54x", type, 0, kind, place, 0, 0, 0)
    must(cuda.cuMemPoolCreate(c.byref(pool), prop))
    return pool
def take(pool, count):
    return cuda.cuMemAllocFromPoolAsync(c.byref(c.c_uint64()), mib(count), pool, None)
def tile(array, place, operation, handle=0):
    sizes = (place, 0, 0, 0, 0, 64, 64, 1)
    head = struct.pack("<i4xQi4x", 0, array.value, 0)
    tail = struct.pack("<iiQQII8x", operation, 0, handle, 0, 1, 0)
    return head + struct.pack("<8I", *sizes) + tail
def map_tiles(by, *tiles):
    return getattr(cuda, by)(b"".join(tiles), len(tiles), None)
def told(*words):
    print(*words, flush=True)
    sys.stdin.readline()
context = c.c_void_p()
must(cuda.cuInit(0))
must(cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0))
must(cuda.cuCtxSetCurrent(context))
"""


def run(slice_: Slice, script: str) -> list[tuple[str, int]]:
    """The answers of a Python program of the container, each with the MiB held then; all books agree."""
    steps = []
    with Probe(slice_.start([sys.executable, "-c", PRELUDE + script])) as program:
        for _ in range(script.count("told(")):
            answer = " ".join(program.hear())
            agree(slice_)
            steps.append((answer, slice_.held() >> 20))
            program.tell("")
    return steps


def test_a_part_of_a_cards_memory_is_the_cards(pod: Slice) -> None:
    script = """
code, handle = create(PART, 0x300, 600)
told(code, create(PART, 0x100, 600)[0])
must(cuda.cuMemRelease(handle))
pool = pool_of(PART, 0x100, PINNED)
told(take(pool, 700), take(pool, 700))
"""
    assert run(pod, script) == [("0 2", 600), ("0 2", 700)]


@pytest.mark.parametrize("place", ["DEVICE, 0", "HOST, 0", "0, 0"])
def test_a_managed_pool_counts_wherever_its_pages_are(pod: Slice, place: str) -> None:
    script = f"""
pool = pool_of({place}, MANAGED)
told(take(pool, 700), take(pool, 700))
"""
    assert run(pod, script) == [("0 2", 700)]


def test_the_hosts_own_pool_costs_nothing(pod: Slice) -> None:
    script = """
pool = c.c_uint64()
must(cuda.cuMemGetDefaultMemPool(c.byref(pool), struct.pack("<ii", HOST, 0), PINNED))
told(take(pool, 4096))
"""
    assert run(pod, script) == [("0", 0)]


@pytest.mark.parametrize("by", ["cuMemMapArrayAsync", "cuMemMapArrayAsync_ptsz"])
def test_a_sparse_array_holds_what_is_mapped_into_it(pod: Slice, by: str) -> None:
    script = f"""
array = c.c_uint64()
must(cuda.cuArray3DCreate_v2(c.byref(array), struct.pack("<QQQiII4x", 512, 512, 0, 0x20, 1, 0x40)))
(_, first), (_, second) = create(DEVICE, 0, 300), create(DEVICE, 0, 400)
must(map_tiles("{by}", tile(array, 0, 1, first.value), tile(array, 1, 1, second.value)))
must(cuda.cuMemRelease(first))
must(cuda.cuMemRelease(second))
told(create(DEVICE, 0, 400)[0])
must(map_tiles("{by}", tile(array, 0, 2)))
told(create(DEVICE, 0, 800)[0])
code, third = create(DEVICE, 0, 200)
must(map_tiles("{by}", tile(array, 1, 1, third.value)))
told(cuda.cuMemRelease(third))
told(cuda.cuArrayDestroy(array))
"""
    assert run(pod, script) == [("2", 700), ("2", 400), ("0", 200), ("0", 0)]


@pytest.mark.parametrize("what", ["Mem", "Addr"])
def test_a_binding_to_a_device_that_is_named_holds_too(pod: Slice, what: str) -> None:
    script = f"""
multicast, start = c.c_uint64(), c.c_uint64()
must(cuda.cuMulticastCreate(c.byref(multicast), struct.pack("<I4xQQQ", 1, 300 << 20, 0, 0)))
_, handle = create(DEVICE, 0, 300)
must(cuda.cuMemAddressReserve(c.byref(start), mib(300), c.c_size_t(0), c.c_uint64(0), c.c_ulonglong(0)))
must(cuda.cuMemMap(start, mib(300), c.c_size_t(0), handle, c.c_ulonglong(0)))
if "{what}" == "Mem":
    rest = (handle, c.c_size_t(0), mib(300), c.c_ulonglong(0))
else:
    rest = (start, mib(300), c.c_ulonglong(0))
must(cuda.cuMulticastBind{what}_v2(multicast, 0, c.c_size_t(0), *rest))
must(cuda.cuMemUnmap(start, mib(300)))
told(cuda.cuMemRelease(handle))
told(cuda.cuMulticastUnbind(multicast, 0, c.c_size_t(0), mib(300)))
"""
    assert run(pod, script) == [("0", 300), ("0", 0)]


def test_waiting_for_a_context_by_name_is_waiting(pod: Slice) -> None:
    script = """
at = c.c_uint64()
must(cuda.cuMemAllocAsync(c.byref(at), mib(300), None))
must(cuda.cuMemFreeAsync(at, None))
told(cuda.cuCtxSynchronize_v2(None))
"""
    assert run(pod, script) == [("0", 0)]
