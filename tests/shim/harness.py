"""A pretend container: cards, a slice of them, and programs that run under the quota library.

What a container's programs hold is known twice: by the stub driver (the oracle, whose books no library can
touch) and by the region that the library keeps. Tests compare the two.
"""

import os
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.shim.stub import build
from tests.shim.stub.build import ROOT, SYMBOLS
from tests.shim.stub.state import MIB, Card, Clock, Container, Driver, card_uuid
from volcano_py.shim.agent import region

DEADLINE_S = 300
"""After which a program that does not answer is killed, so that no fault of the library holds the tests."""

BUILT = ROOT / "build" / "shim" / "libvgpu.so"
LIBRARY = build.OUTPUT / "libvgpu.so"
"""A copy, so that a build that runs beside the tests takes nothing away from programs that start."""

FAMILIES = (
    *(
        "alloc",
        "alloc_v1",
        "pitch",
        "pitch_v1",
        "managed",
        "array",
        "array_v1",
        "array3d",
        "array3d_v1",
        "mipmap",
    ),
    *(
        "async",
        "async_ptsz",
        "async_free",
        "pool",
        "pool_ptsz",
        "physical",
        "mapped",
        "graph",
        "node",
        "node_v2",
        "captured",
    ),
)
"""The ways in which the probe asks for memory (programs/families.c)."""

WAYS = ("direct", "dlsym", "default", "dlvsym", "proc", "proc2")
"""The ways in which the probe comes by the driver's functions (programs/entry.h)."""

OUT_OF_MEMORY = 2
INVALID_VALUE = 1


def build_library() -> Path:
    """The quota library, built as `make shim` does."""
    subprocess.run(["make", "-s", "-C", str(ROOT), "shim"], check=True)
    copy = build.build() / f".{LIBRARY.name}.{os.getpid()}"
    shutil.copy2(BUILT, copy)
    copy.replace(LIBRARY)
    return LIBRARY


@cache
def can_unshare(*words: str) -> bool:
    """Whether this machine lets us ``unshare`` *words*: namespaces, and what is tried in them."""
    return subprocess.run(["unshare", *words], capture_output=True, check=False).returncode == 0


@dataclass(frozen=True, slots=True)
class Entry:
    """A hooked symbol: *base*, *since* and *flags* are what cuGetProcAddress is asked for to get it."""

    symbol: str
    base: str
    since: int
    flags: int
    family: str


def entries() -> list[Entry]:
    """Every symbol of the one list, per-thread variants among them."""
    found = []
    for raw in tomllib.loads(SYMBOLS.read_text())["symbol"]:
        base = raw.get("base", raw["name"])
        found.append(Entry(raw["name"], base, raw.get("since", 0), 0, raw["family"]))
        if "ptsz" in raw:
            found.append(Entry(f"{raw['name']}_ptsz", base, raw["ptsz"], 2, raw["family"]))
    return found


def write_table(path: Path) -> Path:
    """The table of names for programs that ask cuGetProcAddress."""
    lines = [f"{e.symbol} {e.base} {e.since} {e.flags}" for e in entries() if e.symbol.startswith("cu")]
    path.write_text("\n".join(lines) + "\n")
    return path


class Probe:
    """The program `probe` under the library: commands in, answers out."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def tell(self, command: str) -> None:
        """Sends *command* and waits for nothing."""
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def hear(self) -> list[str]:
        """The words of the next answer."""
        assert self.process.stdout is not None
        patience = threading.Timer(DEADLINE_S, self.process.kill)
        patience.start()
        try:
            answer = self.process.stdout.readline()
        finally:
            patience.cancel()
        if not answer:
            raise AssertionError(f"the program ended with {self.process.wait()}")
        return answer.split()

    def ask(self, command: str) -> list[str]:
        """Sends *command*; the words of its answer."""
        self.tell(command)
        return self.hear()

    def code(self, command: str) -> int:
        """Sends *command*; the driver's code."""
        return int(self.ask(command)[0])

    def start(self, device: int = 0) -> Self:
        """Initialises the driver and makes the primary context of *device* current."""
        assert self.code("init") == 0
        assert self.code(f"retain {device}") == 0
        return self

    def take(self, name: str, mib: int, family: str = "alloc") -> int:
        """Asks for *mib* in the way of *family*; the driver's code."""
        return self.code(f"take {name} {family} {mib * MIB}")

    def kill(self) -> None:
        """Ends the program as kill -9 does, and waits until it is gone."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """Lets the program end by itself."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(DEADLINE_S)
        self.process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None or self.process.poll() is not None:
            self.process.kill()
            self.process.wait()
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            self.process.stdin.close()
            self.process.stdout.close()
        else:
            self.close()


@dataclass
class Slice:
    """One container with its part of the driver's cards; *region* is the file that the agent made for it."""

    driver: Driver
    name: str
    region: Path
    folder: Path
    extra: dict[str, str] = field(default_factory=dict)

    def environment(self, changes: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of the container's programs."""
        keep = {key: os.environ[key] for key in ("PATH", "HOME", "PYTHONPATH") if key in os.environ}
        return {
            **keep,
            **self.driver.environment(build.build(), self.name),
            "LD_PRELOAD": str(LIBRARY),
            "VOLCANO_PY_REGION": str(self.region),
            **self.extra,
            **(changes or {}),
        }

    def start(
        self,
        command: Sequence[str | Path],
        changes: Mapping[str, str] | None = None,
        *,
        preload: bool = True,
        stderr: int | None = None,
    ) -> "subprocess.Popen[str]":
        """Starts *command* in the container."""
        environment = self.environment(changes)
        if not preload:
            del environment["LD_PRELOAD"]
        return subprocess.Popen(
            [str(word) for word in command],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    def run(
        self,
        command: Sequence[str | Path],
        changes: Mapping[str, str] | None = None,
        *,
        preload: bool = True,
        code: int = 0,
        deadline_s: float = DEADLINE_S,
    ) -> str:
        """Runs *command* in the container to its end, which must have *code*; its output and errors."""
        process = self.start(command, changes, preload=preload, stderr=subprocess.STDOUT)
        try:
            told, _ = process.communicate(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        assert process.returncode == code, told
        return told

    def python(self, script: str, changes: Mapping[str, str] | None = None) -> str:
        """What *script* prints in a Python of the container."""
        return self.run([sys.executable, "-c", script], changes).strip()

    def in_clock(self, clock: Clock, command: Sequence[str | Path]) -> str:
        """What *command* prints in the container, where time jumps as *clock* does."""
        preload = f"{build.build() / 'libclock.so'}:{LIBRARY}"
        return self.run(command, {"STUB_CLOCK": str(clock.path), "LD_PRELOAD": preload})

    def spin(self, clock: Clock, wave_us: int = 1000, seconds: int = 10, mode: str = "async") -> float:
        """The percentage of the card that a program had which wants all of it."""
        kernel = ["cuLaunchKernel", str(wave_us), "108"]
        told = self.in_clock(clock, [build.build() / "spin", *kernel, str(seconds), mode])
        _, busy, elapsed = (int(word) for word in told.splitlines()[0].split())
        return 100 * busy / elapsed

    def probe(self, way: str = "dlsym", changes: Mapping[str, str] | None = None) -> Probe:
        """The probe, which comes by the driver's functions in *way*."""
        table = self.folder / "names"
        if not table.exists():
            write_table(table)
        program = "probe-linked" if way == "direct" else "probe"
        return Probe(self.start([build.build() / program, way, table], changes))

    def counted(self, device: int = 0) -> int:
        """Bytes that the library says are held of the slice's card."""
        return region.read(self.region).devices[device].used_bytes

    def held(self, card: int = 0) -> int:
        """Bytes that the driver says are held of the card by this container."""
        return self.driver.used_bytes(card, self.name)


@contextmanager
def one_slice(
    folder: Path,
    limit_mib: Sequence[int] = (1024,),
    *,
    cards: Sequence[Card] | None = None,
    cores: int = 0,
    priority: int = 1,
    policy: region.CorePolicy = region.CorePolicy.ALWAYS,
) -> Iterator[Slice]:
    """A container with *limit_mib* of each of its cards, alone on them."""
    cards = cards if cards is not None else [Card() for _ in limit_mib]
    with Driver.create(folder / "state", cards, [Container("pod", tuple(limit_mib))]) as driver:
        file = folder / "region"
        limits = [
            region.DeviceLimit(card.uuid or card_uuid(index), limit * MIB, cores)
            for index, (card, limit) in enumerate(zip(cards, limit_mib, strict=True))
        ]
        region.create(file, limits, priority=priority, policy=policy)
        yield Slice(driver, "pod", file, folder)


def agree(slice_: Slice, cards: int = 1) -> None:
    """The library's books are the driver's, and no container was ever over its slice."""
    for card in range(cards):
        assert slice_.counted(card) == slice_.held(card)
    assert slice_.driver.violations == 0


def covers(slice_: Slice, cards: int = 1) -> None:
    """The library's books are the driver's or above: what a pool lets go is seen when it is needed."""
    for card in range(cards):
        assert slice_.counted(card) >= slice_.held(card)
    assert slice_.driver.violations == 0
