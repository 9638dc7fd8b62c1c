"""Ending all processes of a container, at once and without one slipping away by forking."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from volcano_py.shim.agent.cgroup.errors import CgroupError, CgroupGone
from volcano_py.shim.agent.cgroup.files import processes, write
from volcano_py.shim.agent.cgroup.freezer import Freezer
from volcano_py.shim.agent.cgroup.names import ContainerCgroup

_STOP_S: Final = 1.0
"""How long a round waits for processes to stop before it ends those that it sees."""


@dataclass(frozen=True, slots=True)
class Killer:
    """Ends containers of pods; kubelet starts them again, or not, as the pod says."""

    freezer: Freezer

    def kill(self, cgroup: ContainerCgroup, within_s: float) -> bool:
        """End *cgroup*; whether nothing of it is left after *within_s* seconds.

        Raises:
            CgroupError: it is no pod's, our own, or the kernel refuses.
        """
        tree, until = self.freezer.tree, self.freezer.timing.until
        try:
            folder = tree.folder(cgroup, "freezer")
            if not tree.unified or not (folder / "cgroup.kill").exists():
                return until(lambda: self._round(cgroup, folder), within_s)
            write(folder / "cgroup.kill", "1")
        except CgroupGone:
            return True
        return until(lambda: not processes(folder), within_s)

    def _round(self, cgroup: ContainerCgroup, folder: Path) -> bool:
        """Before cgroup.kill there was only this: stop them, so that none forks, end each, let them go.

        Somebody else's pause ends with it: frozen processes of v1 die only when they are let go.
        """
        self.freezer.freeze(cgroup, _STOP_S, take_over=True)
        try:
            _signal_all(folder, lambda pid: self.freezer.tree.container_of(pid) == cgroup)
        finally:
            self.freezer.thaw(cgroup, _STOP_S)
        return not processes(folder)


def _signal_all(folder: Path, is_theirs: Callable[[int], bool]) -> None:
    """End every process in *folder*. Raises ``CgroupError`` where one is out of our reach."""
    pids = processes(folder)
    if 0 in pids:
        raise CgroupError(f"{folder} has processes outside our PID namespace: run with hostPID")
    for pid in pids:
        _signal(pid, is_theirs)


def _signal(pid: int, is_theirs: Callable[[int], bool]) -> None:
    """End process *pid* if it still is the one that was listed: its number may be somebody else's by now."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except OSError as error:
        if error.errno == errno.EINVAL:  # its first thread ended: the number is no process any more
            return
        raise CgroupError(f"process {pid} can't be ended: {error.strerror}") from error
    try:
        if is_theirs(pid):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)
