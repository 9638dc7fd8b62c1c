"""Several processes in one slice: deaths, children, crowds; and containers that share a card."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.shim.harness import DEADLINE_S, OUT_OF_MEMORY, Probe, Slice, agree, covers, one_slice
from tests.shim.stub import build
from tests.shim.stub.state import MIB, Card, Container, Driver, card_uuid
from volcano_py.shim.agent import region


def until(condition: Callable[[], bool]) -> None:
    """Waits until *condition* holds, DEADLINE_S at most."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def storm(
    slice_: Slice, seed: int, *, threads: int = 1, steps: int = 0, devices: int = 1
) -> "subprocess.Popen[str]":
    """A program that takes and gives in any order, ready to be killed."""
    words: list[str | Path] = [build.build() / "storm", *map(str, (seed, threads, steps, 40, devices))]
    program = slice_.start(words)
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    return program


def bury(programs: "list[subprocess.Popen[str]]") -> None:
    """Kill -9 for all; their pipes are closed."""
    for program in programs:
        program.kill()
        program.communicate()


def test_processes_share_one_slice(pod: Slice) -> None:
    with pod.probe() as one, pod.probe() as other:
        one.start()
        other.start()
        assert one.take("a", 600) == 0
        assert other.take("a", 500) == OUT_OF_MEMORY
        assert other.take("a", 424) == 0
        assert other.ask("info 0")[1] == "0"
        agree(pod)
        assert one.code("give a") == 0
        assert other.take("b", 600) == 0
        agree(pod)


def test_what_a_killed_process_held_is_there_for_the_next(pod: Slice, probe: Probe) -> None:
    with pod.probe() as next_one:
        next_one.start()
        assert probe.take("a", 1000) == 0
        probe.kill()
        assert next_one.take("b", 800) == 0
        agree(pod)


@pytest.mark.parametrize("kind", ["exit", "_exit", "exec", "vfork", "clone"])
def test_a_child_takes_nothing_from_its_parent(pod: Slice, probe: Probe, kind: str) -> None:
    assert probe.take("a", 800) == 0
    assert probe.ask(f"fork {kind}") == ["done"]
    agree(pod)
    assert pod.held() == 800 * MIB
    assert probe.take("b", 800) == OUT_OF_MEMORY
    assert probe.take("b", 200) == 0


def test_a_child_that_uses_the_card_is_counted_by_itself(pod: Slice, probe: Probe) -> None:
    assert probe.take("a", 600) == 0
    assert int(probe.ask("child")[0]) > 0
    probe.start()
    assert probe.take("b", 500) == OUT_OF_MEMORY
    assert probe.take("b", 400) == 0
    agree(pod)
    assert len(region.read(pod.region).processes) == 2


def test_a_program_that_becomes_another_leaves_nothing_behind(pod: Slice) -> None:
    script = (
        "import ctypes, os, sys\n"
        "cuda, context, at = ctypes.CDLL('libcuda.so.1'), ctypes.c_void_p(), ctypes.c_uint64()\n"
        "cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)\n"
        "cuda.cuCtxSetCurrent(context)\n"
        "print(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(700 << 20)), flush=True)\n"
        "left = int(sys.argv[1])\n"
        "left and os.execv(sys.executable, [sys.executable, '-c', sys.orig_argv[2], str(left - 1)])\n"
    )
    assert pod.run([sys.executable, "-c", script, "3"]).split() == ["0"] * 4
    assert pod.held() == 0
    covers(pod)


def test_contexts_count_once_a_process(library: Path, tmp_path: Path) -> None:
    with one_slice(tmp_path, (1024,), cards=[Card(context_mib=300)]) as slice_, ExitStack() as stack:
        probes = [stack.enter_context(slice_.probe()) for _ in range(3)]
        for count, probe in enumerate(probes, start=1):
            probe.start()
            agree(slice_)
            assert slice_.held() == 300 * count * MIB
        release = "device_call cuDevicePrimaryCtxRelease_v2 0"
        for command, expected in (("retain 0", 900), (release, 900), (release, 600)):
            assert probes[0].code(command) == 0
            agree(slice_)
            assert slice_.held() == expected * MIB


def test_modules_are_found_out(library: Path, tmp_path: Path) -> None:
    """Code that a program loads takes memory that no call names: NVML tells of it sooner or later."""
    with one_slice(tmp_path, (1024,), cards=[Card(context_mib=100, module_kib=4096)]) as slice_:
        slice_.driver.container("pod").limit_bytes[0] = 0
        with slice_.probe() as probe:
            probe.start()
            for _ in range(20):
                assert probe.code("module") == 0
            until(lambda: int(probe.ask("info 0")[1]) <= (1024 - 180) * MIB)


@pytest.mark.parametrize("count", [24, pytest.param(256, marks=pytest.mark.long)])
def test_a_crowd_that_starts_at_once(pod: Slice, count: int) -> None:
    with ExitStack() as stack:
        probes = [stack.enter_context(pod.probe()) for _ in range(count)]
        for probe in probes:
            probe.tell("init")
        for probe in probes:
            assert probe.hear() == ["0"]
            probe.tell("retain 0")
        for probe in probes:
            assert probe.hear() == ["0"]
            probe.tell(f"take a alloc {64 * MIB}")
        codes = sorted(int(probe.hear()[0]) for probe in probes)
        assert codes == [0] * 16 + [OUT_OF_MEMORY] * (count - 16)
        agree(pod)
        assert len(region.read(pod.region).processes) == count


@pytest.mark.long
def test_more_processes_than_there_are_places_get_a_clean_refusal(pod: Slice) -> None:
    """A region has 1,024 places; who gets none is refused memory, and nobody crashes."""
    script = (
        "import ctypes, os, sys\n"
        "cuda, context, at = ctypes.CDLL('libcuda.so.1'), ctypes.c_void_p(), ctypes.c_uint64()\n"
        "gate, codes = os.pipe(), os.pipe()\n"
        "children = []\n"
        "for _ in range(1100):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        os.close(gate[1])\n"
        "        cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)\n"
        "        cuda.cuCtxSetCurrent(context)\n"
        "        code = cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(4096))\n"
        "        os.write(codes[1], bytes([code]))\n"
        "        os.read(gate[0], 1)\n"
        "        os._exit(0)\n"
        "    children.append(child)\n"
        "got = b''\n"
        "while len(got) < 1100: got += os.read(codes[0], 4096)\n"
        "os.close(gate[1])\n"
        "print(got.count(0), got.count(2), [os.waitpid(c, 0)[1] for c in children].count(0))\n"
    )
    told = pod.run([sys.executable, "-c", script], deadline_s=600).splitlines()
    granted, refused, clean = map(int, told[-1].split())
    assert all("region has places for" in line for line in told[:-1])
    assert granted + refused == 1100
    assert granted <= 1024
    assert clean == 1100


def test_two_containers_on_a_card_know_nothing_of_each_other(library: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        names = ("one", "two")
        driver = stack.enter_context(
            Driver.create(
                tmp_path / "state", [Card(memory_mib=4096)], [Container(name, (1024,)) for name in names]
            )
        )
        slices = []
        for name in names:
            region.create(tmp_path / name, [region.DeviceLimit(card_uuid(0), 1024 * MIB)])
            slices.append(Slice(driver, name, tmp_path / name, tmp_path))
        one, two = (stack.enter_context(slice_.probe()).start() for slice_ in slices)
        assert one.take("a", 1024) == 0
        assert two.ask("info 0")[1] == str(1024 * MIB)
        assert two.take("a", 1000) == 0
        assert two.take("b", 30) == OUT_OF_MEMORY
        for slice_ in slices:
            agree(slice_)
        one.kill()
        assert two.take("b", 30) == OUT_OF_MEMORY
        storms = [storm(slice_, seed, steps=200) for seed, slice_ in enumerate(slices) for _ in range(3)]
        stack.callback(bury, storms)
        for program in storms:
            assert program.stdout is not None
            assert program.stdout.read().startswith("done ")
            assert program.wait(DEADLINE_S) == 0
        assert driver.violations == 0


@pytest.mark.parametrize("points", [20, pytest.param(1000, marks=pytest.mark.long)])
def test_kill_9_at_any_time_loses_nothing(pod: Slice, points: int) -> None:
    """At each point one of four is killed at once, whatever it does; the rest and the next go on."""
    programs = [storm(pod, seed, threads=2) for seed in range(4)]
    try:
        for point in range(points):
            victim = programs.pop(point % 4)
            victim.kill()
            victim.communicate()
            programs.insert(point % 4, storm(pod, 100 + point, threads=2))
            assert all(program.poll() is None for program in programs)
            assert pod.driver.violations == 0
    finally:
        bury(programs)
    until(lambda: pod.held() == 0)
    with pod.probe() as survivor:
        assert survivor.start().take("a", 1024) == 0
        agree(pod)


@pytest.mark.parametrize("family", ["alloc", "async", "mapped"])
@pytest.mark.parametrize(
    ("points", "stride"), [(12, 1777), pytest.param(1000, 61, marks=pytest.mark.long, id="long")]
)
def test_kill_9_after_any_instruction_of_an_allocation(
    pod: Slice, family: str, points: int, stride: int
) -> None:
    """The next process gets the whole slice at once, wherever the last one died."""
    words: list[str | Path] = [build.build() / "stepkill", str(points), str(stride), family, "1024"]
    assert pod.run(words, deadline_s=600 + points).endswith("done\n")
    assert pod.driver.violations == 0


@pytest.mark.parametrize(
    ("points", "stride"), [(12, 2503), pytest.param(1000, 97, marks=pytest.mark.long, id="long")]
)
def test_kill_9_after_any_instruction_of_the_start(pod: Slice, points: int, stride: int) -> None:
    words: list[str | Path] = [build.build() / "stepkill", str(points), str(stride), "alloc", "1024", "start"]
    assert pod.run(words, deadline_s=600 + 2 * points).endswith("done\n")
    assert pod.driver.violations == 0


def test_threads_of_one_process_share_its_books(pair: Slice) -> None:
    for seed in range(3):
        told = pair.run([build.build() / "storm", str(seed), "8", "400", "60", "2"]).split()
        assert told[:2] == ["ready", "done"]
        assert int(told[2]) > 0
        assert pair.driver.violations == 0
        assert pair.held(0) == pair.held(1) == 0
    with pair.probe() as probe:
        for device in (0, 1):
            assert probe.start(device).take(f"a{device}", 1024) == 0
        agree(pair, 2)


@pytest.mark.parametrize(("depth", "width"), [(3, 3), pytest.param(5, 4, marks=pytest.mark.long)])
def test_a_bounded_fork_bomb(pod: Slice, depth: int, width: int) -> None:
    script = (
        "import ctypes, os, sys\n"
        "cuda, context, at = ctypes.CDLL('libcuda.so.1'), ctypes.c_void_p(), ctypes.c_uint64()\n"
        "def burst(depth):\n"
        "    children = []\n"
        f"    for _ in range({width} if depth else 0):\n"
        "        child = os.fork()\n"
        "        if child == 0:\n"
        "            burst(depth - 1)\n"
        "            os._exit(0)\n"
        "        children.append(child)\n"
        "    cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)\n"
        "    cuda.cuCtxSetCurrent(context)\n"
        "    code = cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(100 << 20))\n"
        "    bad = code not in (0, 2) or any([os.waitpid(child, 0)[1] for child in children])\n"
        "    bad and os._exit(1)\n"
        f"burst({depth})\n"
        "print('done')\n"
    )
    assert pod.python(script).splitlines()[-1] == "done"
    assert pod.driver.violations == 0
    assert pod.held() == 0


def test_the_library_starts_no_thread(library: Path, tmp_path: Path) -> None:
    """Nor has it anything to do while nobody calls it."""
    with one_slice(tmp_path, (1024,), cores=50) as slice_, slice_.probe() as probe:
        probe.start()
        assert probe.take("a", 100) == 0
        assert probe.code("launch cuLaunchKernel 10 1 2000") == 0
        assert len(list(Path(f"/proc/{probe.process.pid}/task").iterdir())) == 1


def test_a_stopped_process_keeps_what_it_holds(pod: Slice, probe: Probe) -> None:
    assert probe.take("a", 900) == 0
    os.kill(probe.process.pid, signal.SIGSTOP)
    try:
        with pod.probe() as other:
            assert other.start().take("b", 200) == OUT_OF_MEMORY
            assert other.take("b", 100) == 0
            agree(pod)
    finally:
        os.kill(probe.process.pid, signal.SIGCONT)
    assert probe.code("give a") == 0


def test_memory_by_handle_moves_between_processes_that_hold_locks_of_their_own(pod: Slice) -> None:
    """As NCCL starts: host memory by handle, exported, imported and mapped by four at once."""
    with ExitStack() as stack:
        probes = [stack.enter_context(pod.probe()).start() for _ in range(4)]
        steps = ("create h 0 2 8", "shared s h", "map m s 8", "create d 0 1 16", "shared e d", "map n e 16")
        for step in steps:
            for probe in probes:
                probe.tell(step)
            assert [probe.hear() for probe in probes] == [["0"]] * 4, step
        covers(pod)
        assert pod.held() == 64 * MIB
