"""The library under the sanitizers and valgrind: no memory error, no undefined behaviour, no race of its own.

Building the instrumented library takes longer than any other test here; valgrind has the short form.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.shim.harness import Slice, one_slice
from tests.shim.stub import build
from tests.shim.stub.build import ROOT

STORM = [build.PROGRAMS / name for name in ("storm.c", "families.c", "entry.c")]
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1:exitcode=66",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:exitcode=66",
    "TSAN_OPTIONS": "halt_on_error=1:exitcode=66:die_after_fork=0",
}


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


def run_storms(folder: Path, sanitize: str, rounds: int, threads: int, steps: int) -> None:
    """Storms over two cards, each of them a program and a library with *sanitize*."""
    library = sanitized_library(sanitize)
    program = build.build_sanitized("storm", sanitize, STORM)
    with one_slice(folder, (1024, 512)) as slice_:
        changes = {"LD_PRELOAD": ":".join([*runtimes(sanitize), str(library)]), **OPTIONS}
        for seed in range(rounds):
            words: list[str | Path] = [program, *map(str, (seed, threads, steps, 60, 2))]
            told = slice_.run(words, changes, deadline_s=600)
            assert told.split()[:2] == ["ready", "done"]
        assert slice_.driver.violations == 0
        assert slice_.held(0) == slice_.held(1) == 0


@pytest.mark.long
@pytest.mark.parametrize("sanitize", ["address,undefined", "thread"])
def test_storms_of_threads(library: Path, tmp_path: Path, sanitize: str) -> None:
    run_storms(tmp_path, sanitize, rounds=10, threads=16, steps=500)


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
