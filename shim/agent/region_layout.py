"""Where each field of a region lies: the mirror of ``shim/lib/region.h``.

A test compiles the header and compares every offset. Nothing here decides anything; reading and
writing are in :mod:`~volcano_py.shim.agent.region`.
"""

from ctypes import LittleEndianStructure, Structure, c_char, c_int64, c_uint8, c_uint32, c_uint64

MAGIC = b"VPYQUOTA"
VERSION = 2
DEVICES = 16
SLOTS = 1024
UUID_BYTES = 64
MOST_BLOCKED_NS = 60 * 10**9
BYTES_MASK = (1 << 48) - 1
BY_AGENT = 1


class HeaderLayout(LittleEndianStructure):
    """What never changes; the checksum covers all from ``size`` on."""

    _fields_ = [
        ("magic", c_char * 8),
        ("version", c_uint32),
        ("crc", c_uint32),
        ("size", c_uint64),
        ("device_count", c_uint32),
        ("flags", c_uint32),
        ("created_ns", c_uint64),
        ("reserved", c_uint8 * 24),
    ]
    magic: bytes
    version: int
    crc: int
    size: int
    device_count: int
    flags: int
    created_ns: int


class ControlLayout(LittleEndianStructure):
    """Words that the agent turns while processes run."""

    _fields_ = [
        ("active", c_uint32),
        ("slots_high", c_uint32),
        ("blocked_until", c_uint64),
        ("disbelieved", c_uint64),
        ("reserved", c_uint8 * 40),
    ]
    active: int
    slots_high: int
    blocked_until: int
    disbelieved: int


class DeviceLayout(LittleEndianStructure):
    """The limits of one device."""

    _fields_ = [
        ("uuid", c_uint8 * UUID_BYTES),
        ("memory_limit", c_uint64),
        ("cores", c_uint32),
        ("flags", c_uint32),
        ("reserved", c_uint8 * 48),
    ]
    uuid: bytearray
    memory_limit: int
    cores: int
    flags: int


class LimitsLayout(LittleEndianStructure):
    """One of the two sets of limits; the checksum covers all from ``generation`` on."""

    _fields_ = [
        ("crc", c_uint32),
        ("generation", c_uint32),
        ("priority", c_uint32),
        ("policy", c_uint32),
        ("reserved", c_uint8 * 48),
        ("devices", DeviceLayout * DEVICES),
    ]
    crc: int
    generation: int
    priority: int
    policy: int
    devices: list[DeviceLayout]


class CardLayout(LittleEndianStructure):
    """Counters and the time bucket of a card."""

    _fields_ = [
        ("refused", c_uint64),
        ("throttled_ns", c_uint64),
        ("launches", c_uint64),
        ("busy_ns", c_uint64),
        ("recent_ns", c_uint64),
        ("recent_blocks", c_uint64),
        ("contended_ns", c_uint64),
        ("starved_ns", c_uint64),
        ("tokens", c_int64),
        ("refill_ns", c_uint64),
        ("sample_ns", c_uint64),
        ("seen_us", c_uint64),
        ("spent_ns", c_uint64),
        ("cost", c_uint64),
        ("blocks", c_uint64),
        ("looked_ns", c_uint64),
    ]
    refused: int
    throttled_ns: int
    launches: int
    busy_ns: int


class SlotLayout(LittleEndianStructure):
    """A process."""

    _fields_ = [
        ("pid", c_uint32),
        ("host_pid", c_uint32),
        ("start", c_uint64),
        ("pid_ns", c_uint64),
        ("claimed_ns", c_uint64),
        ("launched_ns", c_uint64),
        ("reserved", c_uint8 * 24),
        ("launches", c_uint64 * DEVICES),
        ("reserved_end", c_uint8 * 64),
    ]
    pid: int
    host_pid: int
    start: int
    pid_ns: int
    claimed_ns: int
    launched_ns: int
    launches: list[int]


class RegionLayout(LittleEndianStructure):
    """The whole file."""

    _fields_ = [
        ("header", HeaderLayout),
        ("control", ControlLayout),
        ("limits", LimitsLayout * 2),
        ("cards", CardLayout * DEVICES),
        ("slots", SlotLayout * SLOTS),
        ("used", (c_uint64 * SLOTS) * DEVICES),
    ]
    header: HeaderLayout
    control: ControlLayout
    limits: list[LimitsLayout]
    cards: list[CardLayout]
    slots: list[SlotLayout]
    used: list[list[int]]


def offset_of(layout: type[Structure], field: str) -> int:
    """Bytes from the start of *layout* to *field*."""
    return int(getattr(layout, field).offset)
