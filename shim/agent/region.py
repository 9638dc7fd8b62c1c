"""The region: what a container may hold of its cards, and what its processes hold.

The agent makes one file a container before the container starts and reads it for metrics. The file is
writable in the container, so whatever it says is a claim: nothing is enforced from outside by it, and
no content can break the reader. The format is in ``docs/shim-region.md``; the other side is
``shim/lib/region.h``. Neighbours: :mod:`~volcano_py.shim.agent.region_layout` (offsets).
"""

import fcntl
import os
import stat
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import addressof, sizeof, string_at
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from volcano_py.shim.agent.region_layout import (
    BY_AGENT,
    BYTES_MASK,
    DEVICES,
    MAGIC,
    SLOTS,
    UUID_BYTES,
    VERSION,
    ControlLayout,
    DeviceLayout,
    HeaderLayout,
    LimitsLayout,
    RegionLayout,
    SlotLayout,
    offset_of,
)

SIZE = sizeof(RegionLayout)
_MODE = 0o666  # a container may run as any user
_FLOCK = struct.Struct("hhqqi4x")  # struct flock of 64-bit Linux
_MAX_BYTES = 1 << 47


class RegionError(Exception):
    """A file that is no region; the message says what is wrong with it."""


class CorePolicy(IntEnum):
    """When the core limit of a slice holds."""

    SHARED = 0  # while another container is busy on the card
    ALWAYS = 1
    NEVER = 2


@dataclass(frozen=True, slots=True)
class DeviceLimit:
    """What the container may hold of one card.

    Attributes:
        uuid: as NVML writes it, ``GPU-...`` or ``MIG-...``.
        memory_bytes: 0 means no limit.
        cores: percent of the card's time; 0 and 100 mean no limit.
    """

    uuid: str
    memory_bytes: int
    cores: int = 0


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """A card of the container: its limits, and what living processes say they hold."""

    uuid: str
    limit_bytes: int
    cores: int
    used_bytes: int
    refused: int
    throttled_ns: int
    busy_ns: int
    launches: int


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """A process of the container that uses cards.

    Attributes:
        slot: its place in the file.
        pid: in its own pid namespace.
        host_pid: as the host sees it; None if nobody noted it yet.
        start_ticks: field 22 of its ``/proc/<pid>/stat``.
        pid_namespace: inode of its pid namespace.
        launched_ns: CLOCK_MONOTONIC of a recent launch; 0 if it never launched.
        used_bytes: per card, in the order of ``Region.devices``.
    """

    slot: int
    pid: int
    host_pid: int | None
    start_ticks: int
    pid_namespace: int
    launched_ns: int
    used_bytes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Region:
    """A region as it was at one time.

    Attributes:
        blocked_until_ns: CLOCK_MONOTONIC; 0 means launches run.
        disbelieved: how often that word was none that an agent writes, and was not obeyed.
    """

    devices: tuple[DeviceUse, ...]
    processes: tuple[ProcessUse, ...]
    priority: int
    policy: CorePolicy
    made_by_agent: bool
    created_ns: int
    blocked_until_ns: int
    disbelieved: int


def create(
    path: str | Path,
    devices: Sequence[DeviceLimit],
    *,
    priority: int = 1,
    policy: CorePolicy = CorePolicy.ALWAYS,
) -> None:
    """Write a new region at *path*, whole or not at all; one that is there is replaced.

    Raises:
        ValueError: more cards than a region holds, or limits out of range.
        OSError: as the file system says.
    """
    image = _image(devices, priority, policy)
    target = Path(path)
    scratch = target.with_name(f".{target.name}.{os.getpid()}.{time.monotonic_ns()}")
    fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        _write_all(fd, image)
        os.fchmod(fd, _MODE)
        os.fsync(fd)
        os.rename(scratch, target)
    except BaseException:
        os.unlink(scratch)
        raise
    finally:
        os.close(fd)
    _sync_folder(target.parent)


def read(path: str | Path) -> Region:
    """What the region at *path* says.

    Raises:
        RegionError: the file is missing or is no region of this version.
    """
    with _opened(path, os.O_RDONLY) as fd:
        layout = _load(fd)
        return _region(layout, lambda slot: _is_locked(fd, slot))


def block(path: str | Path, until_ns: int) -> None:
    """Hold all launches of the container until *until_ns* (CLOCK_MONOTONIC); 0 lets them run at once.

    The word runs out by itself, so that an agent that died never holds a container for ever. The library
    believes no word that is further ahead than ``MOST_BLOCKED_NS``.
    """
    offset = offset_of(RegionLayout, "control") + offset_of(ControlLayout, "blocked_until")
    _patch(path, offset, struct.pack("<Q", until_ns))


def note_host_pid(path: str | Path, process: ProcessUse, host_pid: int) -> None:
    """Tell the library how NVML names *process*; nothing happens if another one has its slot now."""
    offset = offset_of(RegionLayout, "slots") + process.slot * sizeof(SlotLayout)
    with _opened(path, os.O_RDWR) as fd:
        slot = _load(fd).slots[process.slot]
        if (slot.pid, slot.start) == (process.pid, process.start_ticks):
            os.pwrite(fd, struct.pack("<I", host_pid), offset + offset_of(SlotLayout, "host_pid"))


def _image(devices: Sequence[DeviceLimit], priority: int, policy: CorePolicy) -> bytes:
    layout = RegionLayout()
    layout.limits[0] = _limits(devices, priority, policy)
    header = layout.header
    header.magic = MAGIC
    header.version = VERSION
    header.size = SIZE
    header.device_count = len(devices)
    header.flags = BY_AGENT
    header.created_ns = time.time_ns()
    header.crc = _crc(header, offset_of(HeaderLayout, "size"))
    return bytes(layout)


def _limits(devices: Sequence[DeviceLimit], priority: int, policy: CorePolicy) -> LimitsLayout:
    if len(devices) > DEVICES:
        raise ValueError(f"{len(devices)} cards: a region holds {DEVICES}")
    limits = LimitsLayout()
    limits.generation = 1
    limits.priority = priority
    limits.policy = policy
    for place, device in enumerate(devices):
        _fill(limits.devices[place], device)
    limits.crc = _crc(limits, offset_of(LimitsLayout, "generation"))
    return limits


def _fill(place: DeviceLayout, device: DeviceLimit) -> None:
    uuid = device.uuid.encode()
    if len(uuid) >= UUID_BYTES:
        raise ValueError(f"UUID {device.uuid!r} is longer than {UUID_BYTES - 1} bytes")
    if not 0 <= device.memory_bytes < _MAX_BYTES:
        raise ValueError(f"{device.memory_bytes} bytes of card memory")
    if not 0 <= device.cores <= 100:
        raise ValueError(f"{device.cores} % of a card")
    place.uuid[: len(uuid)] = uuid
    place.memory_limit = device.memory_bytes
    place.cores = device.cores


def _crc(layout: HeaderLayout | LimitsLayout, start: int) -> int:
    return zlib.crc32(string_at(addressof(layout) + start, sizeof(layout) - start))


def _write_all(fd: int, image: bytes) -> None:
    rest = memoryview(image)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def _opened(path: str | Path, mode: int) -> Iterator[int]:
    """The file, opened so that nothing a container puts in its place can hold or mislead us."""
    try:
        fd = os.open(path, mode | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise RegionError(f"{path}: {error.strerror}") from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise RegionError(f"{path}: not a regular file")
        yield fd
    except RegionError as error:
        raise RegionError(f"{path}: {error}") from error
    finally:
        os.close(fd)


def _load(fd: int) -> RegionLayout:
    image = os.pread(fd, SIZE, 0)
    if len(image) < SIZE:
        raise RegionError(f"{len(image)} bytes, a region has {SIZE}")
    layout = RegionLayout.from_buffer_copy(image)
    _check_header(layout.header)
    if layout.control.active > 1:
        raise RegionError("no such set of limits")
    _check_limits(layout.limits[layout.control.active])
    return layout


def _check_header(header: HeaderLayout) -> None:
    if header.magic != MAGIC:
        raise RegionError("no region (magic)")
    if header.version != VERSION:
        raise RegionError(f"version {header.version} of the format, we know {VERSION}")
    if header.crc != _crc(header, offset_of(HeaderLayout, "size")):
        raise RegionError("header checksum does not match")
    if header.size != SIZE:
        raise RegionError(f"says that it has {header.size} bytes, a region has {SIZE}")
    if header.device_count > DEVICES:
        raise RegionError(f"{header.device_count} cards, a region holds {DEVICES}")


def _check_limits(limits: LimitsLayout) -> None:
    if limits.crc != _crc(limits, offset_of(LimitsLayout, "generation")):
        raise RegionError("checksum of the limits does not match")
    if limits.policy > CorePolicy.NEVER:
        raise RegionError(f"unknown core policy {limits.policy}")
    for device in limits.devices:
        if device.memory_limit >= _MAX_BYTES:
            raise RegionError(f"{device.memory_limit} bytes of card memory")
        if device.cores > 100:
            raise RegionError(f"{device.cores} % of a card")
        if 0 not in bytes(device.uuid):
            raise RegionError("a UUID without end")


def _region(layout: RegionLayout, is_locked: Callable[[int], bool]) -> Region:
    limits = layout.limits[layout.control.active]
    count = layout.header.device_count
    high = min(layout.control.slots_high, SLOTS)
    owned = [slot for slot in range(high) if layout.slots[slot].pid and is_locked(slot)]
    return Region(
        devices=tuple(_device(layout, limits, place, owned) for place in range(count)),
        processes=tuple(_process(layout, slot, count) for slot in owned),
        priority=limits.priority,
        policy=CorePolicy(limits.policy),
        made_by_agent=bool(layout.header.flags & BY_AGENT),
        created_ns=layout.header.created_ns,
        blocked_until_ns=layout.control.blocked_until,
        disbelieved=layout.control.disbelieved,
    )


def _device(layout: RegionLayout, limits: LimitsLayout, place: int, owned: Sequence[int]) -> DeviceUse:
    card = layout.cards[place]
    high = min(layout.control.slots_high, SLOTS)
    return DeviceUse(
        uuid=bytes(limits.devices[place].uuid).split(b"\0")[0].decode(errors="replace"),
        limit_bytes=limits.devices[place].memory_limit,
        cores=limits.devices[place].cores,
        used_bytes=sum(layout.used[place][slot] & BYTES_MASK for slot in owned),
        refused=card.refused,
        throttled_ns=card.throttled_ns,
        busy_ns=card.busy_ns,
        launches=card.launches + sum(layout.slots[slot].launches[place] for slot in range(high)),
    )


def _process(layout: RegionLayout, index: int, count: int) -> ProcessUse:
    slot = layout.slots[index]
    return ProcessUse(
        slot=index,
        pid=slot.pid,
        host_pid=slot.host_pid or None,
        start_ticks=slot.start,
        pid_namespace=slot.pid_ns,
        launched_ns=slot.launched_ns,
        used_bytes=tuple(layout.used[place][index] & BYTES_MASK for place in range(count)),
    )


def _is_locked(fd: int, byte: int) -> bool:
    """Whether some process holds the lock on *byte*: the kernel drops it when its owner is gone."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
    answer = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_OFD_GETLK, asked))
    return bool(answer[0] != fcntl.F_UNLCK)


def _patch(path: str | Path, offset: int, word: bytes) -> None:
    with _opened(path, os.O_RDWR) as fd:
        _load(fd)
        os.pwrite(fd, word, offset)
