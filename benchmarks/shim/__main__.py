"""``make bench-shim``: what the quota library costs per call, as a table and build/bench-shim.json.

The driver is the stub of tests/shim/stub, whose calls cost far less than a real driver's: the added time is
the library's own, the ratio is a bound from above.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from tests.shim import harness
from tests.shim.harness import Slice, one_slice
from tests.shim.stub import build
from volcano_py.shim.agent import region

HERE: Final = Path(__file__).parent
OUTPUT: Final = build.ROOT / "build" / "bench-shim.json"
PAIRS: Final = 100_000
LAUNCHES: Final = 500_000
ROUNDS: Final = 7
KEPT: Final = 8
MIB_EACH: Final = 4  # of a crowd's slice; a process would hold as much on average


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU ns of one call; medians over rounds."""

    pair_ns: float
    launch_ns: float


@dataclass(frozen=True, slots=True)
class Crowd:
    """Processes that allocated at once. The counted bytes are the region's, the held ones the driver's."""

    processes: int
    seconds: float
    pairs: int
    refused: int
    longest_us: float
    counted_bytes: int
    held_bytes: int
    kept_bytes: int
    violations: int

    @property
    def is_exact(self) -> bool:
        """Whether all three books agree, and nothing was ever granted past the slice."""
        return self.counted_bytes == self.held_bytes == self.kept_bytes and self.violations == 0


def program(name: str) -> Path:
    """The benchmark program *name*, built and linked with the stub driver."""
    output = build.build() / f"bench-{name}"
    build.compile_to(output, [HERE / f"{name}.c", build.OUTPUT / "libcuda.so.1"], "-pie")
    return output


@contextmanager
def container(limit_mib: int, cores: int = 0) -> Iterator[Slice]:
    """A container alone on a card of 16 GiB."""
    with (
        tempfile.TemporaryDirectory() as folder,
        one_slice(Path(folder), (limit_mib,), cores=cores) as slice_,
    ):
        yield slice_


def cost(slice_: Slice, *, preload: bool) -> Cost:
    """Runs the program once."""
    words: Sequence[str | Path] = [program("cost"), str(PAIRS), str(LAUNCHES), str(ROUNDS)]
    told = slice_.run(words, preload=preload, deadline_s=600)
    rounds = [tuple(map(float, line.split())) for line in told.splitlines()]
    return Cost(statistics.median(r[0] for r in rounds), statistics.median(r[1] for r in rounds))


def costs() -> dict[str, Cost]:
    """Without the library, with it, and with a core limit of 50 % that never has to hold anything back."""
    with container(1024) as slice_:
        found = {"without": cost(slice_, preload=False), "with": cost(slice_, preload=True)}
    with container(1024, cores=50) as slice_:
        found["with a core limit"] = cost(slice_, preload=True)
    return found


def crowd(processes: int, seconds: float) -> Crowd:
    """*processes* allocate at once in a slice that is too small for all of them."""
    words: Sequence[str | Path] = [program("crowd"), str(seconds)]
    with container(MIB_EACH * processes) as slice_:
        running = [slice_.start([*words, str(seed), str(KEPT)]) for seed in range(processes)]
        for one in running:
            _line(one)
        for one in running:
            _go(one)
        told = [_line(one).split() for one in running]
        counted = region.read(slice_.region).devices[0].used_bytes
        found = Crowd(
            processes,
            seconds,
            pairs=sum(int(words[0]) for words in told),
            refused=sum(int(words[1]) for words in told),
            longest_us=max(float(words[3]) for words in told),
            counted_bytes=counted,
            held_bytes=slice_.held(),
            kept_bytes=sum(int(words[2]) for words in told),
            violations=slice_.driver.violations,
        )
        for one in running:
            one.communicate("\n", timeout=60)
    return found


def _line(program: subprocess.Popen[str]) -> str:
    assert program.stdout is not None
    return program.stdout.readline()


def _go(program: subprocess.Popen[str]) -> None:
    assert program.stdin is not None
    program.stdin.write("\n")
    program.stdin.flush()


def show(console: Console, found: dict[str, Cost], many: Crowd) -> None:
    """The tables that docs/benchmarks.md has."""
    bare = found["without"]
    table = Table("library", "alloc/free pair, ns", "added", "ratio", "launch, ns", "added", "ratio")
    for name, one in found.items():
        table.add_row(
            name,
            f"{one.pair_ns:.0f}",
            f"{one.pair_ns - bare.pair_ns:.0f}",
            f"{one.pair_ns / bare.pair_ns:.2f}",
            f"{one.launch_ns:.0f}",
            f"{one.launch_ns - bare.launch_ns:.0f}",
            f"{one.launch_ns / bare.launch_ns:.2f}",
        )
    console.print(table)
    exact = "exact" if many.is_exact else "WRONG"
    console.print(
        f"{many.processes} processes for {many.seconds:g} s: {many.pairs:,} pairs, "
        f"{many.refused:,} refusals, longest call {many.longest_us / 1000:.0f} ms, books {exact} "
        f"({many.counted_bytes:,} counted, {many.held_bytes:,} held, {many.violations} past the slice)"
    )


def main() -> None:
    """Measures, prints, writes; ends with 1 when the books are wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=64, help="how many allocate at once")
    parser.add_argument("--seconds", type=float, default=60, help="for how long")
    options = parser.parse_args()
    harness.build_library()
    found = costs()
    many = crowd(options.processes, options.seconds)
    show(Console(), found, many)
    record = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
        "cost": {name: asdict(one) for name, one in found.items()},
        "crowd": {**asdict(many), "is_exact": many.is_exact},
    }
    OUTPUT.write_text(json.dumps(record, indent=2) + "\n")
    if not many.is_exact:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
