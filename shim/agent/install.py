"""The quota library on the host: put where containers find it, and never written over.

Running containers have the file mapped; writing into it would end them. So each content has a name of its
own, appears by a rename, and stays until nobody needs it (``libraries``).
"""

from __future__ import annotations

import enum
from hashlib import sha256
from pathlib import Path
from typing import Final

from volcano_py.shim.agent.slices import write_file

IN_CONTAINER: Final = "/usr/local/vgpu"
"""Where everything of ours is inside a container; HAMi's place, since its library looks nowhere else."""
LIBRARY: Final = "libvgpu.so"
PRELOAD: Final = "ld.so.preload"
FAULT: Final = "region-fault"
"""Tells the library what follows where a container's region can't be used."""
_DIGITS: Final = 16


class RegionFault(enum.StrEnum):
    """What follows where a container's region is broken."""

    CLOSED = "closed"
    OPEN = "open"


class InstallError(Exception):
    """The library can't be put in place; the message says why."""


def install(library: Path, hook: Path, fault: RegionFault = RegionFault.CLOSED) -> str:
    """Put *library* and what names it to the loader below *hook*; the file name it has there.

    *fault* holds for containers that start from now on.

    Raises:
        InstallError: it is missing, or *hook* can't be written.
    """
    try:
        content = library.read_bytes()
        name = f"{LIBRARY}.{sha256(content).hexdigest()[:_DIGITS]}"
        hook.mkdir(parents=True, exist_ok=True)
        _put(hook / name, content, 0o755)
        _put(hook / FAULT, f"{fault.value}\n".encode(), 0o644)
        _put(hook / PRELOAD, f"{IN_CONTAINER}/{LIBRARY}\n".encode(), 0o644)
    except OSError as error:
        raise InstallError(f"the library {library} can't be put below {hook}: {error}") from error
    return name


def _put(path: Path, content: bytes, mode: int) -> None:
    try:
        if path.read_bytes() == content:
            return
    except FileNotFoundError:
        pass
    write_file(path, content, mode)
