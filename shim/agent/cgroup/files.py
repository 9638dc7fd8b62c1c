"""Reading and writing the small files of a cgroup, whose container may end between two of them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from volcano_py.shim.agent.cgroup.errors import CgroupError, CgroupGone

_GONE: Final = (errno.ENOENT, errno.ENODEV)
_STEPS_S: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
"""Waits between two looks; the last one is repeated."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Clock and wait, given so that tests need no real ones.

    Attributes:
        clock: seconds; only differences count.
        sleep: waits that many seconds.
    """

    clock: Callable[[], float]
    sleep: Callable[[float], None]

    def until(self, true: Callable[[], bool], within_s: float) -> bool:
        """Whether *true* came to hold before *within_s* seconds were over."""
        deadline, steps = self.clock() + within_s, iter(_STEPS_S)
        while not true():
            if self.clock() >= deadline:
                return False
            self.sleep(next(steps, _STEPS_S[-1]))
        return True


def read(path: Path) -> str:
    """The text of *path*. Raises ``CgroupGone`` where its cgroup ended."""
    try:
        return path.read_text()
    except OSError as error:
        raise _told(error, f"{path} can't be read") from error


def write(path: Path, text: str) -> None:
    """Write *text* in one go, which is what the kernel asks for. Raises ``CgroupGone``, ``CgroupError``."""
    try:
        file = os.open(path, os.O_WRONLY)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)
    except OSError as error:
        raise _told(error, f"{text!r} can't be written to {path}") from error


def fields(path: Path) -> dict[str, str]:
    """A file of ``name value`` lines."""
    pairs = (line.partition(" ") for line in read(path).splitlines())
    return {name: value for name, _, value in pairs}


def processes(folder: Path) -> list[int]:
    """Processes in *folder* and all cgroups below it; empty where it ended."""
    return [pid for file in _lists(folder) for pid in _pids(file)]


def _lists(folder: Path) -> Iterator[Path]:
    for where, _, _ in os.walk(folder):
        yield Path(where) / "cgroup.procs"


def _pids(file: Path) -> list[int]:
    try:
        return [int(line) for line in file.read_text().split()]
    except OSError as error:
        # A threaded cgroup (v2) has no list of its own: its processes stand in the one above.
        if error.errno in (*_GONE, errno.EOPNOTSUPP):
            return []
        raise _told(error, f"{file} can't be read") from error


def _told(error: OSError, what: str) -> CgroupError:
    if error.errno in _GONE:
        return CgroupGone(f"{what}: it ended")
    return CgroupError(f"{what}: {error.strerror}")
