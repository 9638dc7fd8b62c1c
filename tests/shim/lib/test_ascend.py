"""The library for Ascend: the same books, over a pretend AscendCL."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from volcano_py.shim.agent import region
from volcano_py.shim.agent.region import DeviceLimit

HERE = Path(__file__).parent
ROOT = Path(__file__).parents[3]
MIB = 1 << 20
OUT_OF_MEMORY = "207001"
ALLOCATIONS = ("aclrtMalloc", "aclrtMallocAlign32", "aclrtMallocCached", "aclrtMallocWithCfg")


@dataclass(frozen=True)
class Program:
    """A program under the library."""

    process: "subprocess.Popen[str]"
    region: Path

    def ask(self, command: str) -> list[str]:
        """Sends *command*; the words of its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().split()

    def counted_mib(self, card: int = 0) -> int:
        """What the books say that the container holds."""
        return region.read(self.region).devices[card].used_bytes // MIB


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a pretend libascendcl.so."""
    folder = tmp_path_factory.mktemp("ascendcl")
    library = folder / "libascendcl.so"
    source = str(HERE / "ascendcl.c")
    command = ["gcc", "-std=c11", "-Wall", "-fPIC", "-shared", "-Wl,-soname,libascendcl.so", source]
    subprocess.run([*command, "-o", str(library)], check=True, timeout=120)
    subprocess.run(["make", "-s", "shim"], cwd=ROOT, check=True, timeout=300)
    return folder


@pytest.fixture
def program(runtime: Path, tmp_path: Path) -> Iterator[Program]:
    """A container with 256 MiB of each of two devices."""
    file = tmp_path / "region"
    region.create(file, [DeviceLimit("npu-0", 256 * MIB), DeviceLimit("npu-1", 256 * MIB)])
    environment = os.environ | {
        "LD_PRELOAD": str(ROOT / "build" / "shim" / "libvnpu.so"),
        "LD_LIBRARY_PATH": str(runtime),
        "VOLCANO_PY_REGION": str(file),
    }
    with subprocess.Popen(
        [sys.executable, str(HERE / "ascend_program.py")],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        running = Program(process, file)
        assert running.ask("device 0") == ["0"]
        yield running


@pytest.mark.parametrize("symbol", ALLOCATIONS)
def test_no_allocation_gets_past_the_slice(program: Program, symbol: str) -> None:
    assert program.ask(f"take {symbol} a 200") == ["0", "clean"]
    assert program.counted_mib() == 200
    assert program.ask(f"take {symbol} b 57") == [OUT_OF_MEMORY, "clean"]
    assert program.ask(f"take {symbol} b 56") == ["0", "clean"]
    assert program.ask("give aclrtFree a") == ["0"]
    assert program.counted_mib() == 56


def test_each_device_has_its_own_limit(program: Program) -> None:
    assert program.ask("take aclrtMalloc a 256") == ["0", "clean"]
    assert program.ask("device 1") == ["0"]
    assert program.ask("take aclrtMalloc b 256") == ["0", "clean"]
    assert (program.counted_mib(0), program.counted_mib(1)) == (256, 256)
    assert program.ask("reset 1") == ["0"]
    assert (program.counted_mib(0), program.counted_mib(1)) == (256, 0)


def test_a_device_outside_the_slice_gives_nothing(program: Program) -> None:
    assert program.ask("device 2") == ["0"]
    assert program.ask("take aclrtMalloc a 1") == [OUT_OF_MEMORY, "clean"]


def test_physical_memory_counts_until_nothing_holds_it(program: Program) -> None:
    assert program.ask("physical a 200 1 1") == ["0"]
    assert program.ask("physical b 57 1 1") == [OUT_OF_MEMORY]
    assert program.ask("physical c 500 0 0") == ["0"]
    assert program.ask("map a 4096") == ["0"]
    assert program.ask("give aclrtFreePhysical a") == ["0"]
    assert (program.counted_mib(0), program.counted_mib(1)) == (0, 200)
    assert program.ask("unmap 4096") == ["0"]
    assert program.counted_mib(1) == 0


def test_the_slice_is_the_device(program: Program) -> None:
    assert program.ask("take aclrtMalloc a 100") == ["0", "clean"]
    assert program.ask("info") == ["0", "156", "256"]


def test_unknown_addresses_are_the_runtimes_to_judge(program: Program) -> None:
    assert program.ask("take aclrtMalloc a 100") == ["0", "clean"]
    assert program.ask("give aclrtFree a") == ["0"]
    assert program.ask("give aclrtFree a") == ["107000"]
    assert program.counted_mib() == 0
