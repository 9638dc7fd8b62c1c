"""The stub driver's state file, field by field: what state.h says, in Python.

``tests/shim/test_stub_driver.py`` holds the sizes of both sides together.
"""

import ctypes

CARDS = 16
MIGS = 8
CONTAINERS = 64
SLOTS = 2048
FAULTS = 32
EVENTS = 64
TIMELINES = 256
BUCKETS = 16384
MAGIC = 0x5354554244525631

U8, I32, U32 = ctypes.c_uint8, ctypes.c_int32, ctypes.c_uint32
U64, I64 = ctypes.c_uint64, ctypes.c_int64


class Mig(ctypes.Structure):
    _fields_ = (
        ("uuid", ctypes.c_char * 64),
        ("name", ctypes.c_char * 64),
        ("memory_bytes", U64),
        ("gpu_instance", U32),
        ("compute_instance", U32),
        ("profile", U32),
        ("start", U32),
        ("size", U32),
        ("users", U32),
    )


class CardState(ctypes.Structure):
    _fields_ = (
        ("uuid", ctypes.c_char * 64),
        ("name", ctypes.c_char * 64),
        ("bus_id", ctypes.c_char * 32),
        ("serial", ctypes.c_char * 32),
        ("memory_bytes", U64),
        ("reserved_bytes", U64),
        ("context_bytes", U64),
        ("module_bytes", U64),
        ("used_bytes", U64),
        ("peak_bytes", U64),
        ("free_at_ns", U64),
        ("busy_ns", U64),
        ("sms", I32),
        ("threads_per_sm", I32),
        ("minor", I32),
        ("numa", I32),
        ("compute_major", I32),
        ("compute_minor", I32),
        ("mig_mode", I32),
        ("lost", I32),
        ("hide_utilisation", I32),
        ("process_list_most", I32),
        ("links", U8 * CARDS),
        ("level", U8 * CARDS),
        ("migs", Mig * MIGS),
    )


class ContainerState(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 64),
        ("limit_bytes", U64 * CARDS),
        ("used_bytes", U64 * CARDS),
        ("peak_bytes", U64 * CARDS),
        ("busy_ns", U64 * CARDS),
        ("launches", U64),
        ("violations", U64),
        ("worst_bytes", U64),
    )


class SlotState(ctypes.Structure):
    _fields_ = (
        ("pid", I32),
        ("host_pid", I32),
        ("container", I32),
        ("padding", I32),
        ("used_bytes", U64 * CARDS),
        ("context_bytes", U64 * CARDS),
        ("contexts", U32 * CARDS),
        ("busy_ns", U64 * CARDS),
        ("launches", U64),
    )


class FaultState(ctypes.Structure):
    _fields_ = (
        ("symbol", ctypes.c_char * 64),
        ("first", U64),
        ("times", U64),
        ("code", I32),
        ("delay_us", U32),
        ("calls", U64),
    )


class EventState(ctypes.Structure):
    _fields_ = (("card", U32), ("instance", U32), ("kind", U64), ("data", U64))


class Bucket(ctypes.Structure):
    _fields_ = (("epoch", U64), ("busy_ns", U64))


class TimelineState(ctypes.Structure):
    _fields_ = (("slot", I32), ("card", I32), ("buckets", Bucket * BUCKETS))


class DriverState(ctypes.Structure):
    _fields_ = (
        ("magic", U64),
        ("size", U64),
        ("cards", U32),
        ("containers", U32),
        ("faults", U32),
        ("driver_version", U32),
        ("driver_name", ctypes.c_char * 32),
        ("lock", U8 * 64),
        ("events_seen", U64),
        ("slots_high", U32),
        ("clock_virtual", U32),
        ("card", CardState * CARDS),
        ("container", ContainerState * CONTAINERS),
        ("fault", FaultState * FAULTS),
        ("event", EventState * EVENTS),
        ("slot", SlotState * SLOTS),
        ("timeline", TimelineState * TIMELINES),
    )


CLOCK_THREADS = 256


class ClockThread(ctypes.Structure):
    _fields_ = (("pid", I32), ("padding", I32), ("wake_ns", U64))


class ClockState(ctypes.Structure):
    """What clock.c shares."""

    _fields_ = (
        ("lock", U8 * 64),
        ("now_ns", U64),
        ("jumps", U32),
        ("missing", U32),
        ("wall_ns", I64),
        ("thread", ClockThread * CLOCK_THREADS),
    )
