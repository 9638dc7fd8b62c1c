"""Stopping a container's processes for a while, in a way that outlives us only until we start again.

A mark is put on the cgroup before it is frozen and taken off after it is thawed. The mark lives and ends with
the cgroup, a container can't put one there (``trusted.*`` takes CAP_SYS_ADMIN on the host), and it tells our
freezes from those of others: whom somebody else paused stays paused.
"""

from __future__ import annotations

import enum
import errno
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from volcano_py.shim.agent.cgroup.errors import CgroupError, CgroupGone
from volcano_py.shim.agent.cgroup.files import Timing, fields, read, write
from volcano_py.shim.agent.cgroup.names import ContainerCgroup
from volcano_py.shim.agent.cgroup.tree import Tree

MARK: Final = "trusted.volcano-py.frozen"
_NO_MARK: Final = (errno.ENODATA, errno.ENOENT, errno.ENODEV)


class State(enum.Enum):
    """How a container stands, as the kernel says."""

    THAWED = "thawed"
    FREEZING = "freezing"  # asked for; some process is still inside a call to the kernel
    FROZEN = "frozen"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Freezer:
    """Freezes and thaws containers of pods."""

    tree: Tree
    timing: Timing = field(default_factory=lambda: Timing(time.monotonic, time.sleep))

    def state(self, cgroup: ContainerCgroup) -> State:
        """How *cgroup* stands. Raises ``CgroupError`` where it may not be touched."""
        try:
            folder = self.tree.folder(cgroup, "freezer")
            return _state_v2(folder) if self.tree.unified else _state_v1(folder)
        except CgroupGone:
            return State.GONE

    def is_ours(self, cgroup: ContainerCgroup) -> bool:
        """Whether it was us who froze *cgroup*."""
        try:
            os.getxattr(self.tree.folder(cgroup, "freezer"), MARK)
        except CgroupGone:
            return False
        except OSError as error:
            if error.errno not in _NO_MARK:
                raise CgroupError(f"marks of {cgroup.path} can't be read: {error.strerror}") from error
            return False
        return True

    def is_paused(self, cgroup: ContainerCgroup) -> bool:
        """Whether somebody else froze *cgroup*."""
        return self.state(cgroup) in (State.FREEZING, State.FROZEN) and not self.is_ours(cgroup)

    def freeze(self, cgroup: ContainerCgroup, within_s: float, *, take_over: bool = False) -> State:
        """Stop *cgroup*; what was asked for stays asked for when time runs out (``FREEZING``).

        Args:
            cgroup: whom.
            within_s: how long to wait until all its processes have stopped.
            take_over: make the freeze of somebody else ours; for those who end the container anyway.

        Returns:
            how it stands then.

        Raises:
            CgroupError: somebody else froze it, or it can't be marked as ours.
        """
        try:
            if not take_over and self.is_paused(cgroup):
                raise CgroupError(f"{cgroup.path} was frozen by somebody else")
            folder = self.tree.folder(cgroup, "freezer")
            _mark(folder)
            self._ask(folder, frozen=True)
        except CgroupGone:
            return State.GONE
        self.timing.until(lambda: self.state(cgroup) in (State.FROZEN, State.GONE), within_s)
        return self.state(cgroup)

    def thaw(self, cgroup: ContainerCgroup, within_s: float) -> State:
        """Let *cgroup* run again, if it was us who stopped it; returns how it stands then."""
        if not self.is_ours(cgroup):
            return self.state(cgroup)
        try:
            folder = self.tree.folder(cgroup, "freezer")
            self._ask(folder, frozen=False)
            self.timing.until(lambda: self.state(cgroup) in (State.THAWED, State.GONE), within_s)
            _unmark(folder)
        except CgroupGone:
            return State.GONE
        return self.state(cgroup)

    def thaw_all(self, within_s: float) -> list[ContainerCgroup]:
        """Let everybody run again whom we stopped, in this life or an earlier one.

        One that can't be thawed does not keep the others from it.

        Raises:
            CgroupError: names those that could not be thawed.
        """
        thawed, failed = [], []
        for cgroup in self.tree.containers().values():
            try:
                if self.is_ours(cgroup):
                    self.thaw(cgroup, within_s)
                    thawed.append(cgroup)
            except CgroupError as error:
                failed.append(str(error))
        if failed:
            raise CgroupError(f"containers may still be frozen: {'; '.join(failed)}")
        return thawed

    def _ask(self, folder: Path, *, frozen: bool) -> None:
        if self.tree.unified:
            write(folder / "cgroup.freeze", "1" if frozen else "0")
        else:
            write(folder / "freezer.state", "FROZEN" if frozen else "THAWED")


def _state_v2(folder: Path) -> State:
    if fields(folder / "cgroup.events")["frozen"] == "1":
        return State.FROZEN
    return State.FREEZING if read(folder / "cgroup.freeze").strip() == "1" else State.THAWED


def _state_v1(folder: Path) -> State:
    return State(read(folder / "freezer.state").strip().lower())


def _mark(folder: Path) -> None:
    try:
        os.setxattr(folder, MARK, b"1")
    except FileNotFoundError as error:
        raise CgroupGone(f"{folder} ended") from error
    except OSError as error:
        raise CgroupError(f"{folder} can't be marked, so it isn't frozen: {error.strerror}") from error


def _unmark(folder: Path) -> None:
    try:
        os.removexattr(folder, MARK)
    except OSError as error:
        if error.errno not in _NO_MARK:
            raise CgroupError(f"the mark of {folder} can't be removed: {error.strerror}") from error
