"""Old contents of the quota library on the host: which files may go.

A file stays while it is the one that is handed out, while a slice was handed out with it (its container may
start again and mounts it then), and while a process has it mapped. Neighbours: ``install`` puts them there.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Final

from volcano_py.shim.agent.collect import Inode, mapped_files
from volcano_py.shim.agent.install import LIBRARY
from volcano_py.shim.agent.slices import Slices

_OURS: Final = re.compile(re.escape(LIBRARY) + r"\.[0-9a-f]{16}")


class Libraries:
    """Removes files that nobody has needed for a while.

    Args:
        hook: their folder.
        current: the name that is handed out.
        slices: all there are.
        grace_s: how long a file must have been of no use.
        proc: where the kernel tells of processes.
    """

    def __init__(
        self, hook: Path, current: str, slices: Slices, grace_s: float, proc: Path = Path("/proc")
    ) -> None:
        self._hook, self._current, self._slices = hook, current, slices
        self._grace_s, self._proc = grace_s, proc
        self._useless: dict[str, float] = {}

    def collect(self, now: float) -> list[str]:
        """Remove what may go at *now*, in a clock's seconds; the names. Raises ``OSError``."""
        there = {path.name for path in self._hook.iterdir() if _OURS.fullmatch(path.name)}
        useless = there - self._needed(there)
        self._useless = {name: self._useless.get(name, now) for name in useless}
        old = sorted(name for name, since in self._useless.items() if now - since >= self._grace_s)
        mapped = mapped_files(self._proc) if old else frozenset()
        return [name for name in old if self._removed(self._hook / name, mapped)]

    def _needed(self, there: set[str]) -> set[str]:
        """Files that may be mounted again; all, where a slice does not say which one it was made with."""
        told = self._slices.libraries()
        return there if told is None else {self._current, *told}

    def _removed(self, path: Path, mapped: Collection[Inode]) -> bool:
        found = path.stat()
        if (found.st_dev, found.st_ino) in mapped:
            return False
        path.unlink()
        return True
