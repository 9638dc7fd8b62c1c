"""Makes and reads the file in which the stub driver keeps its cards, and puts faults and events into it.

Point ``STUB_DRIVER`` at the file and ``LD_LIBRARY_PATH`` at ``build.build()``; ``STUB_CONTAINER`` names the
container to which a process belongs.
"""

import contextlib
import ctypes
import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.shim.stub import layout
from tests.shim.stub.layout import DriverState

MIB = 1 << 20
NVML_EVENT_XID = 8
NVML_LEVEL_SYSTEM = 50
EVERY_CALL = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class MigInstance:
    """A MIG instance that NVML lists on a card."""

    uuid: str
    memory_mib: int
    name: str = "NVIDIA A100 MIG 1g.10gb"
    gpu_instance: int = 1
    compute_instance: int = 0


@dataclass(frozen=True, slots=True)
class Card:
    """A pretend card; memory in MiB.

    ``context_mib`` is what a process's first context on the card takes, ``module_kib`` what each loaded
    module takes, ``reserved_mib`` what nobody ever gets. ``mig_mode`` is NVML's: 0 off, 1 on, -1 for a card
    without MIG. ``links`` are the NVLinks to each card, by index.
    """

    uuid: str = ""
    memory_mib: int = 16384
    name: str = "NVIDIA A100-SXM4-80GB"
    context_mib: int = 0
    module_kib: int = 0
    reserved_mib: int = 0
    sms: int = 108
    numa: int = 0
    minor: int | None = None
    mig_mode: int = 0
    migs: tuple[MigInstance, ...] = ()
    links: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Container:
    """A container of the oracle: its processes together may never pass ``limit_mib`` per card (0: none)."""

    name: str
    limit_mib: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Holder:
    """What one living process holds; bytes and ns are per card, by index."""

    pid: int
    container: str
    used_bytes: tuple[int, ...]
    contexts: tuple[int, ...]
    busy_ns: tuple[int, ...]
    launches: int


class Driver:
    """The stub driver's state, mapped. Use it as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), ctypes.sizeof(DriverState))
        self.raw = DriverState.from_buffer(self._map)

    @classmethod
    def create(
        cls,
        path: Path,
        cards: Sequence[Card] = (Card(),),
        containers: Sequence[Container] = (),
        *,
        driver_version: int = 12040,
        driver_name: str = "550.54.14",
    ) -> Self:
        """Makes the file anew, with nothing held, and maps it."""
        with path.open("wb") as file:
            file.truncate(ctypes.sizeof(DriverState))
        driver = cls(path)
        raw = driver.raw
        raw.driver_version, raw.driver_name = driver_version, driver_name.encode()
        raw.cards = len(cards)
        for index, card in enumerate(cards):
            _write_card(raw.card[index], index, card, len(cards))
        raw.containers = 1 + len(containers)
        for index, container in enumerate(containers, start=1):
            _write_container(raw.container[index], container)
        _make_lock(raw)
        raw.magic, raw.size = layout.MAGIC, ctypes.sizeof(DriverState)
        return driver

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Unmaps the file, once nobody holds a part of ``raw`` any more."""
        del self.raw
        with contextlib.suppress(BufferError):
            self._map.close()

    def environment(self, libraries: Path, container: str = "") -> dict[str, str]:
        """The variables by which a program finds this driver."""
        found = {"STUB_DRIVER": str(self.path), "LD_LIBRARY_PATH": str(libraries)}
        return found | ({"STUB_CONTAINER": container} if container else {})

    def fail(
        self, symbol: str, code: int, *, first: int = 1, times: int = EVERY_CALL, delay_us: int = 0
    ) -> "Fault":
        """Lets calls of *symbol* answer *code*, from the *first*-th call on, *times* of them."""
        index = self.raw.faults
        fault = self.raw.fault[index]
        fault.symbol, fault.first, fault.times = symbol.encode(), first, times
        fault.code, fault.delay_us, fault.calls = code, delay_us, 0
        self.raw.faults = index + 1
        return Fault(self, index)

    def watch(self, symbol: str) -> "Fault":
        """Counts the calls of *symbol* by all processes and lets them through."""
        return self.fail(symbol, 0)

    def clear_faults(self) -> None:
        """Forgets all faults and counts."""
        self.raw.faults = 0

    def raise_event(self, card: int, xid: int, *, kind: int = NVML_EVENT_XID) -> None:
        """Tells every NVML event set that waits for it of XID *xid* on *card*."""
        seen = self.raw.events_seen
        event = self.raw.event[seen % layout.EVENTS]
        event.card, event.kind, event.data, event.instance = card, kind, xid, 0xFFFFFFFF
        self.raw.events_seen = seen + 1

    def lose(self, card: int, *, lost: bool = True) -> None:
        """Lets *card* fall off the bus, or come back."""
        self.raw.card[card].lost = lost

    def holders(self) -> Iterator[Holder]:
        """What every living process holds; the dead are left out."""
        cards = self.raw.cards
        for slot in list(self.raw.slot[: self.raw.slots_high]):
            if slot.pid and _is_alive(slot.host_pid):
                yield Holder(
                    slot.host_pid,
                    self.raw.container[slot.container].name.decode(),
                    tuple(slot.used_bytes[:cards]),
                    tuple(slot.contexts[:cards]),
                    tuple(slot.busy_ns[:cards]),
                    slot.launches,
                )

    def used_bytes(self, card: int, container: str | None = None) -> int:
        """What living processes (of *container*, if given) hold of *card*."""
        held = (h for h in self.holders() if container is None or h.container == container)
        return sum(holder.used_bytes[card] for holder in held)

    def container(self, name: str) -> layout.ContainerState:
        """The oracle's record of the container *name*; KeyError when there is none."""
        for index in range(self.raw.containers):
            if self.raw.container[index].name == name.encode():
                found: layout.ContainerState = self.raw.container[index]
                return found
        raise KeyError(name)

    @property
    def violations(self) -> int:
        """How often any container came to hold more than its limit."""
        return sum(self.raw.container[index].violations for index in range(self.raw.containers))


class Fault:
    """A fault or watch in a driver's state."""

    def __init__(self, driver: Driver, index: int) -> None:
        self._driver = driver
        self._index = index

    @property
    def calls(self) -> int:
        """How often the symbol was called by anyone since the fault was set."""
        calls: int = self._driver.raw.fault[self._index].calls
        return calls


class Clock:
    """A clock for programs that jumps when all of them sleep (clock.c). Use it as a context manager.

    It waits until *parties* threads have slept once, so that programs start together.
    """

    def __init__(self, path: Path, *, parties: int = 0, start_s: int = 1000) -> None:
        self.path = path
        with path.open("wb") as file:
            file.truncate(ctypes.sizeof(layout.ClockState))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), ctypes.sizeof(layout.ClockState))
        self.raw = layout.ClockState.from_buffer(self._map)
        self.raw.now_ns, self.raw.missing = start_s * 10**9, parties
        _make_lock(self.raw)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del self.raw
        self._map.close()

    @property
    def now_ns(self) -> int:
        """What programs read now."""
        now: int = self.raw.now_ns
        return now


def card_uuid(index: int) -> str:
    """The UUID of the *index*-th card when none is given."""
    return f"GPU-{index:08x}-5712-4b6e-9d1c-{index:012x}"


def _write_card(raw: layout.CardState, index: int, card: Card, count: int) -> None:
    raw.uuid = (card.uuid or card_uuid(index)).encode()
    raw.name, raw.serial = card.name.encode(), f"13210{index:08d}".encode()
    raw.bus_id = f"00000000:{0x10 + index:02X}:00.0".encode()
    raw.memory_bytes, raw.reserved_bytes = card.memory_mib * MIB, card.reserved_mib * MIB
    raw.context_bytes, raw.module_bytes = card.context_mib * MIB, card.module_kib * 1024
    raw.sms, raw.threads_per_sm, raw.numa = card.sms, 2048, card.numa
    raw.minor = index if card.minor is None else card.minor
    raw.compute_major, raw.compute_minor = 8, 0
    raw.mig_mode, raw.process_list_most = card.mig_mode, -1
    for peer in range(count):
        raw.links[peer] = card.links[peer] if peer < len(card.links) else 0
        raw.level[peer] = 0 if peer == index else NVML_LEVEL_SYSTEM
    for place, mig in enumerate(card.migs):
        entry = raw.migs[place]
        entry.uuid, entry.name, entry.memory_bytes = (
            mig.uuid.encode(),
            mig.name.encode(),
            mig.memory_mib * MIB,
        )
        entry.gpu_instance, entry.compute_instance = mig.gpu_instance, mig.compute_instance


def _write_container(raw: layout.ContainerState, container: Container) -> None:
    raw.name = container.name.encode()
    for card, limit in enumerate(container.limit_mib):
        raw.limit_bytes[card] = limit * MIB


def _make_lock(raw: DriverState | layout.ClockState) -> None:
    """A mutex that processes share and that outlives its owner (PTHREAD_PROCESS_SHARED, _MUTEX_ROBUST)."""
    libc = ctypes.CDLL(None)
    attributes = ctypes.create_string_buffer(64)
    steps = (
        libc.pthread_mutexattr_init(attributes),
        libc.pthread_mutexattr_setpshared(attributes, 1),
        libc.pthread_mutexattr_setrobust(attributes, 1),
        libc.pthread_mutex_init(ctypes.byref(raw.lock), attributes),
    )
    if any(steps):
        raise OSError(max(steps), os.strerror(max(steps)))


def _is_alive(pid: int) -> bool:
    """Whether *pid* runs (a zombie holds nothing)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
