"""Programs for the kernel that decide who may open a device file: assembled here, loaded by bpf(2).

A program of this type is asked at every open of a device file below its cgroup. Several may be attached to
one cgroup, and a file is opened only if all agree; so ours stands beside the runtime's and only takes away.
Numbers are those of linux/bpf.h.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from volcano_py.shim.agent.cgroup.errors import CgroupError

_SYSCALL: Final = {"x86_64": 321, "aarch64": 280, "ppc64le": 361, "s390x": 351, "riscv64": 280}
_PROG_LOAD, _PROG_ATTACH, _PROG_DETACH = 5, 8, 9
_PROG_GET_FD_BY_ID, _OBJ_GET_INFO_BY_FD, _PROG_QUERY = 13, 15, 16
_TYPE_CGROUP_DEVICE, _ATTACH_CGROUP_DEVICE = 15, 6
_ALLOW_MULTI, _REPLACE = 2, 4
_ATTR_BYTES: Final = 128
_LOG_BYTES: Final = 65536
_INFO_BYTES, _NAME_AT, _NAME_BYTES = 80, 64, 16
_MOST_DEVICES: Final = 10_000
_MOST_PROGRAMS: Final = 64
"""As many as the kernel lets one cgroup have."""

CHARACTER: Final = 2
READ_OR_WRITE: Final = 2 | 4
"""Bits of an access; making a file (1) opens nothing."""


@dataclass(frozen=True, slots=True, order=True)
class Device:
    """A character device, as the kernel numbers them."""

    major: int
    minor: int


# -- assembling ---------------------------------------------------------------------------------

_LOAD_WORD, _MOVE, _SHIFT_RIGHT, _AND = 0x61, 0xBF, 0x77, 0x57
_SET, _JUMP_NOT_EQUAL, _JUMP_IF_BIT, _JUMP, _EXIT = 0xB7, 0x55, 0x45, 0x05, 0x95
_ANSWER, _CONTEXT, _KIND, _ACCESS, _MAJOR, _MINOR = range(6)
"""Registers: the kernel gives r1 and takes r0."""


def _instruction(code: int, to: int = 0, of: int = 0, offset: int = 0, value: int = 0) -> bytes:
    # Device numbers have up to 20 bits and so are no negative immediates.
    return struct.pack("<BBhi", code, of << 4 | to, offset, value)


def assemble(denied: Iterable[Device]) -> bytes:
    """A program that refuses to open *denied* for reading or writing, and lets all else pass.

    The context that the kernel gives: access << 16 | type, major, minor, each 32 bits.
    """
    refused = sorted(set(denied))
    if len(refused) > _MOST_DEVICES:
        raise CgroupError(f"{len(refused)} devices are more than a jump can pass over")
    head = [
        _instruction(_LOAD_WORD, _KIND, _CONTEXT, 0),
        _instruction(_MOVE, _ACCESS, _KIND),
        _instruction(_SHIFT_RIGHT, _ACCESS, value=16),
        _instruction(_AND, _KIND, value=0xFFFF),
        _instruction(_LOAD_WORD, _MAJOR, _CONTEXT, 4),
        _instruction(_LOAD_WORD, _MINOR, _CONTEXT, 8),
    ]
    allow = [_instruction(_SET, _ANSWER, value=1), _instruction(_EXIT)]
    deny = [_instruction(_SET, _ANSWER, value=0), _instruction(_EXIT)]
    to_allow = 3 * len(refused)  # instructions between the tests of the head and `allow`
    tests = [
        _instruction(_JUMP_NOT_EQUAL, _KIND, offset=to_allow + 2, value=CHARACTER),
        _instruction(_JUMP_IF_BIT, _ACCESS, offset=1, value=READ_OR_WRITE),
        _instruction(_JUMP, offset=to_allow),
    ]
    for place, device in enumerate(refused):
        to_deny = 3 * (len(refused) - place - 1) + len(allow)
        tests += [
            _instruction(_JUMP_NOT_EQUAL, _MAJOR, offset=2, value=device.major),
            _instruction(_JUMP_NOT_EQUAL, _MINOR, offset=1, value=device.minor),
            _instruction(_JUMP, offset=to_deny),
        ]
    # What can't be reached the kernel refuses.
    return b"".join((*head, *tests, *allow, *(deny if refused else ())))


# -- the kernel's side --------------------------------------------------------------------------


def _bpf(command: int, attributes: bytes) -> tuple[int, bytes]:
    """bpf(2): its result, and the attributes as the kernel left them. Raises ``OSError``."""
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise CgroupError(f"the number of bpf(2) on {platform.machine()} is not known here")
    buffer = ctypes.create_string_buffer(attributes, _ATTR_BYTES)
    call = ctypes.CDLL(None, use_errno=True).syscall
    result = call(number, command, ctypes.byref(buffer), _ATTR_BYTES)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return int(result), buffer.raw


@contextmanager
def loaded(program: bytes, name: str) -> Iterator[int]:
    """A handle on *program* in the kernel; it lives on where it is attached. Raises ``CgroupError``.

    Args:
        program: as ``assemble`` gives it.
        name: up to 15 letters, digits and underscores.
    """
    try:
        handle = _load(program, name, None)
    except OSError as error:
        said = f"{error.strerror}: {_complaint(program, name)}"
        raise CgroupError(f"the kernel does not take the device program: {said}") from error
    try:
        yield handle
    finally:
        os.close(handle)


def _load(program: bytes, name: str, log: ctypes.Array[ctypes.c_char] | None) -> int:
    code = ctypes.create_string_buffer(program, len(program))
    licence = ctypes.create_string_buffer(b"Apache-2.0")
    attributes = struct.pack(
        "<IIQQIIQII16s",
        _TYPE_CGROUP_DEVICE,
        len(program) // 8,
        ctypes.addressof(code),
        ctypes.addressof(licence),
        0 if log is None else 1,
        0 if log is None else len(log),
        0 if log is None else ctypes.addressof(log),
        0,
        0,
        name.encode(),
    )
    return _bpf(_PROG_LOAD, attributes)[0]


def _complaint(program: bytes, name: str) -> str:
    """What the verifier says about *program*, which was refused; asked for only then, since a log costs."""
    log = ctypes.create_string_buffer(_LOG_BYTES)
    try:
        os.close(_load(program, name, log))
    except OSError:
        return log.value.decode("utf-8", "replace").strip()
    return "it takes it now"


def attach(folder: int, program: int, replaced: int | None) -> None:
    """Attach *program* to the cgroup open as *folder*, in one step in place of *replaced*."""
    flags = _ALLOW_MULTI | (_REPLACE if replaced is not None else 0)
    _bpf(_PROG_ATTACH, struct.pack("<IIIII", folder, program, _ATTACH_CGROUP_DEVICE, flags, replaced or 0))


def detach(folder: int, program: int) -> None:
    """Take *program* off the cgroup open as *folder*. Raises ``OSError``."""
    _bpf(_PROG_DETACH, struct.pack("<IIII", folder, program, _ATTACH_CGROUP_DEVICE, 0))


def attached(folder: int) -> Sequence[int]:
    """Numbers of the device programs that stand on the cgroup open as *folder* itself. Raises ``OSError``."""
    ids = (ctypes.c_uint32 * _MOST_PROGRAMS)()
    ask = struct.pack("<IIIIQI", folder, _ATTACH_CGROUP_DEVICE, 0, 0, ctypes.addressof(ids), _MOST_PROGRAMS)
    _, told = _bpf(_PROG_QUERY, ask)
    (count,) = struct.unpack_from("<I", told, 24)
    return list(ids[:count])


def open_program(program_id: int) -> int:
    """A handle on the program of that number, to be closed by the caller. Raises ``OSError``."""
    handle, _ = _bpf(_PROG_GET_FD_BY_ID, struct.pack("<I", program_id))
    return handle


def name_of(program: int) -> str:
    """The name that *program* was loaded with. Raises ``OSError``."""
    info = ctypes.create_string_buffer(_INFO_BYTES)
    _bpf(_OBJ_GET_INFO_BY_FD, struct.pack("<IIQ", program, _INFO_BYTES, ctypes.addressof(info)))
    return info.raw[_NAME_AT : _NAME_AT + _NAME_BYTES].rstrip(b"\0").decode("ascii", "replace")
