"""The library under the sanitizers and valgrind: no memory error, no undefined behaviour, no race of its own.

Each library with the sanitizers is built once, in some ten seconds of CPU.
"""

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shim.harness import Slice, one_slice
from tests.shim.stub import build
from tests.shim.stub.build import ROOT
from tests.shim.test_processes import bury
from volcano_py.shim.agent.region_layout import RegionLayout

STORM = [build.PROGRAMS / name for name in ("storm.c", "families.c", "entry.c")]
LAUNCHES = [build.PROGRAMS / name for name in ("launches.c", "entry.c")]
SANITIZERS = ("address,undefined", "thread")
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1:exitcode=66",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:exitcode=66",
    "TSAN_OPTIONS": "halt_on_error=1:exitcode=66:die_after_fork=0",
}


AS_IT_IS, FIXED_ADDRESSES = 0xFFFFFFFF, 0x0040000
"""What personality(2) is asked and told."""


@pytest.fixture(autouse=True)
def fixed_addresses() -> Iterator[None]:
    """Programs begin where a kernel without random addresses puts them, if we may ask for it.

    TSan of older compilers finds no room for itself where the kernel draws from 32 bits.
    """
    libc = ctypes.CDLL(None)
    before = libc.personality(ctypes.c_ulong(AS_IT_IS))
    libc.personality(ctypes.c_ulong(before | FIXED_ADDRESSES))
    yield
    libc.personality(ctypes.c_ulong(before))


def sanitized_library(sanitize: str) -> Path:
    """The library built with gcc's sanitizers, beside the plain one."""
    subprocess.run(["make", "-s", "-C", str(ROOT), "shim", f"SANITIZE={sanitize}"], check=True)
    return ROOT / "build" / "shim" / sanitize.replace(",", "-") / "libvgpu.so"


def runtimes(sanitize: str) -> list[str]:
    """What must be loaded before everything else."""
    if "address" not in sanitize:
        return []
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return [found.stdout.strip()]


def under(sanitize: str) -> dict[str, str]:
    """The variables by which a program gets the library with *sanitize*."""
    library = sanitized_library(sanitize)
    return {"LD_PRELOAD": ":".join([*runtimes(sanitize), str(library)]), **OPTIONS}


@pytest.mark.parametrize("sanitize", SANITIZERS)
@pytest.mark.parametrize(
    ("rounds", "threads", "steps"), [(1, 4, 60), pytest.param(10, 16, 500, marks=pytest.mark.long)]
)
def test_storms_of_threads(
    library: Path, tmp_path: Path, sanitize: str, rounds: int, threads: int, steps: int
) -> None:
    """Over two cards, two programs at a time."""
    changes = under(sanitize)
    program = build.build_sanitized("storm", sanitize, STORM)
    with one_slice(tmp_path, (1024, 512)) as slice_:
        for seed in range(rounds):
            words: list[str | Path] = [program, *map(str, (seed, threads, steps, 60, 2))]
            beside = slice_.start(words, changes)
            try:
                told = slice_.run(words, changes, deadline_s=600)
                assert told.split()[:2] == beside.communicate(timeout=600)[0].split()[:2] == ["ready", "done"]
            finally:
                bury([beside])
        assert slice_.driver.violations == 0
        assert slice_.held(0) == slice_.held(1) == 0


@pytest.mark.parametrize("sanitize", SANITIZERS)
@pytest.mark.parametrize(("threads", "steps"), [(4, 100), pytest.param(16, 5000, marks=pytest.mark.long)])
def test_launches_of_threads(library: Path, tmp_path: Path, sanitize: str, threads: int, steps: int) -> None:
    """Kernels, captures and graphs, where the card's time is limited."""
    program = build.build_sanitized("launches", sanitize, LAUNCHES)
    with one_slice(tmp_path, (1024,), cores=50) as slice_:
        words: list[str | Path] = [program, str(threads), str(steps)]
        assert slice_.run(words, under(sanitize), deadline_s=600).split() == ["done", str(threads * steps)]


def test_garbage_in_a_region_makes_no_overflow(library: Path, tmp_path: Path) -> None:
    """Tokens and what was spent of the first card are far from all that the library writes."""
    program = build.build_sanitized("launches", SANITIZERS[0], LAUNCHES)
    with one_slice(tmp_path, (1024,), cores=50) as slice_:
        with slice_.region.open("r+b") as file:
            layout = RegionLayout.from_buffer_copy(file.read())
            layout.cards[0].tokens, layout.cards[0].spent_ns = 2**63 - 1, 2**63
            file.seek(0)
            file.write(layout)
        assert slice_.run([program, "1", "100"], under(SANITIZERS[0]), deadline_s=600).split() == [
            "done",
            "100",
        ]


def memcheck(slice_: Slice, words: list[str | Path], deadline_s: float) -> str:
    """What *words* print under valgrind, which must find nothing."""
    checked = ["valgrind", "--quiet", "--error-exitcode=67", "--child-silent-after-fork=yes", *words]
    return slice_.run(checked, deadline_s=deadline_s)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
@pytest.mark.parametrize("steps", [40, pytest.param(1500, marks=pytest.mark.long)])
def test_valgrind_finds_nothing(pair: Slice, steps: int) -> None:
    words: list[str | Path] = [build.build() / "storm", "5", "3", str(steps), "60", "2"]
    assert memcheck(pair, words, 600).split()[-3] == "done"
    assert pair.driver.violations == 0
