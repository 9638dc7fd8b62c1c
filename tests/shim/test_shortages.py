"""A process that is short of descriptors or memory at its first call: closed, told so, not for ever."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.shim.harness import DEADLINE_S, OUT_OF_MEMORY, Slice, can_unshare
from tests.shim.stub.state import MIB

PROGRAM = """
import ctypes as c, os, resource, struct, sys, time
cuda = c.CDLL("libcuda.so.1")
cuda.cuDriverGetVersion(c.byref(c.c_int()))
PROP = struct.pack("<iiiiQ8x", 1, 0, 1, 0, 0)
held, sizes = c.c_uint64(), {mib: c.c_size_t(mib << 20) for mib in (600, 2048)}
def create(mib):
    return cuda.cuMemCreate(c.byref(held), sizes[mib], PROP, c.c_ulonglong(0))
def until_granted():
    deadline = time.monotonic() + 60
    while (code := create(600)) != 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    return code
class NoDescriptors:
    def __enter__(self):
        self.taken = []
        try:
            while True: self.taken.append(os.dup(0))
        except OSError:
            pass
    def __exit__(self, *_):
        for fd in self.taken: os.close(fd)
class NoMemory:
    def __enter__(self):
        c.CDLL(None).mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD: what is freed below stays Python's
        room = [bytes(1000) for _ in range(4000)]
        self.before = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(open("/proc/self/statm").read().split()[0])
        del room
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize(), self.before[1]))
    def __exit__(self, *_):
        resource.setrlimit(resource.RLIMIT_AS, self.before)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
"""


def shortage(kind: str) -> str:
    """A program that has its first calls while *kind* is short, and then goes on."""
    return f"""{PROGRAM}
with {kind}():
    assert cuda.cuInit(0) == 0
    short = [create(600), create(600)]
print(*short, until_granted(), create(600), create(2048), flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("kind", ["NoDescriptors", "NoMemory"])
def test_a_shortage_at_the_first_call_closes_until_it_passes(pod: Slice, kind: str) -> None:
    asked = pod.driver.watch("cuMemCreate")
    program = pod.start([sys.executable, "-c", shortage(kind)], stderr=subprocess.PIPE)
    assert program.stdout is not None
    try:
        told = program.stdout.readline().split()
        assert told == [str(code) for code in (OUT_OF_MEMORY, OUT_OF_MEMORY, 0, OUT_OF_MEMORY, OUT_OF_MEMORY)]
        assert asked.calls == 1
        assert pod.counted() == pod.held() == 600 * MIB
    finally:
        _, errors = program.communicate("\n", timeout=DEADLINE_S)
    lines = errors.splitlines()
    assert len(lines) == 2
    assert "no card memory is granted until that passes" in lines[0]
    assert str(pod.region) in lines[0]
    assert "granted again" in lines[1]


def test_a_child_that_is_short_is_not_its_parent(pod: Slice) -> None:
    """The parent's place goes on to count; the child waits for its own."""
    script = f"""{PROGRAM}
assert (cuda.cuInit(0), create(600)) == (0, 0)
child = os.fork()
if child == 0:
    with NoDescriptors():
        short = max(cuda.cuInit(0), create(600))
    print(short, create(600), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(create(600), flush=True)
"""
    told = pod.run([sys.executable, "-c", script]).splitlines()
    assert [line for line in told if not line.startswith("volcano-py:")] == ["2 2", "2"]
    assert pod.driver.violations == 0


@pytest.mark.skipif(
    not can_unshare("-rmpf", "--mount-proc", "true"), reason="no permission to make a pid namespace"
)
def test_a_shell_that_can_not_read_what_the_first_process_says_is_closed(pod: Slice, tmp_path: Path) -> None:
    """Its slice is told by the environment of the container's first process only."""
    pod.driver.container("pod").limit_bytes[0] = 0
    script = tmp_path / "program.py"
    script.write_text(shortage("NoDescriptors"))
    first = (
        "import os, subprocess, sys\n"
        "bare = {k: v for k, v in os.environ.items() if k != 'VOLCANO_PY_REGION'}\n"
        "sys.exit(subprocess.run([sys.executable, sys.argv[1]], env=bare, input='').returncode)\n"
    )
    command: list[str | Path] = ["unshare", "-rmpf", "--mount-proc", sys.executable, "-c", first, script]
    told = pod.run(command).splitlines()
    assert "2 2 0 2 2" in told
    assert pod.driver.container("pod").peak_bytes[0] == 600 * MIB
