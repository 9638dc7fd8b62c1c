"""Does with AscendCL what it is told on standard input, a line each, and answers a line each.

Answers are the runtime's code, where there is one, and what else was asked for.
"""

import ctypes
import sys
from collections.abc import Callable

acl = ctypes.CDLL("libascendcl.so")
held: dict[str, ctypes.c_void_p] = {}
DEVICE, HOST = 1, 0


class Location(ctypes.Structure):
    """aclrtMemLocation."""

    _fields_ = [("id", ctypes.c_uint32), ("type", ctypes.c_int)]


class Prop(ctypes.Structure):
    """aclrtPhysicalMemProp."""

    _fields_ = [
        ("handle_type", ctypes.c_int),
        ("allocation_type", ctypes.c_int),
        ("attribute", ctypes.c_int),
        ("location", Location),
        ("reserve", ctypes.c_uint64),
    ]


def device(number: str) -> str:
    """Sets the device."""
    return str(acl.aclrtSetDevice(int(number)))


def take(symbol: str, name: str, mib: str) -> str:
    """Allocates by *symbol*; whether a refusal left the output alone."""
    out = ctypes.c_void_p(0xABC)
    more = (None,) if symbol == "aclrtMallocWithCfg" else ()
    code = getattr(acl, symbol)(ctypes.byref(out), ctypes.c_size_t((int(mib) << 20) - 32), 0, *more)
    held[name] = out
    return f"{code} {'clean' if code == 0 or out.value == 0xABC else 'touched'}"


def physical(name: str, mib: str, number: str, kind: str) -> str:
    """Makes physical memory on a device, or on the host."""
    out = ctypes.c_void_p()
    prop = Prop(0, 0, 0, Location(int(number), int(kind)), 0)
    code = acl.aclrtMallocPhysical(
        ctypes.byref(out), ctypes.c_size_t(int(mib) << 20), ctypes.byref(prop), ctypes.c_uint64()
    )
    held[name] = out
    return str(code)


def map_at(name: str, at: str) -> str:
    """Maps physical memory at an address."""
    size = ctypes.c_size_t(1 << 20)
    return str(
        acl.aclrtMapMem(ctypes.c_void_p(int(at)), size, ctypes.c_size_t(), held[name], ctypes.c_uint64())
    )


def unmap(at: str) -> str:
    """Undoes map_at."""
    return str(acl.aclrtUnmapMem(ctypes.c_void_p(int(at))))


def give(symbol: str, name: str) -> str:
    """Gives back by *symbol*."""
    return str(getattr(acl, symbol)(held[name]))


def reset(number: str) -> str:
    """Resets the device."""
    return str(acl.aclrtResetDevice(int(number)))


def info() -> str:
    """Free and total MiB of the current device."""
    left, total = ctypes.c_size_t(), ctypes.c_size_t()
    code = acl.aclrtGetMemInfo(1, ctypes.byref(left), ctypes.byref(total))
    return f"{code} {left.value >> 20} {total.value >> 20}"


COMMANDS: dict[str, Callable[..., str]] = {
    "device": device,
    "take": take,
    "physical": physical,
    "map": map_at,
    "unmap": unmap,
    "give": give,
    "reset": reset,
    "info": info,
}

for line in sys.stdin:
    command, *words = line.split()
    sys.stdout.write(COMMANDS[command](*words) + "\n")
    sys.stdout.flush()
