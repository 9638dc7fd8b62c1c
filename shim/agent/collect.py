"""Slices of containers that are gone: which may go, and removing them.

A slice stays while its pod lives, while the kubelet lists its devices, and while any process of the host has
its region mapped. What is left is looked at twice, so that nothing goes that was only about to begin.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import structlog

from volcano_py.shim.agent.answers import cdi_path
from volcano_py.shim.agent.identify import ids_of, told
from volcano_py.shim.agent.instances import Instance
from volcano_py.shim.agent.nvml import DriverError
from volcano_py.shim.agent.pods import Pod
from volcano_py.shim.agent.slices import Owner, Slices
from volcano_py.shim.agent.view import View

Inode = tuple[int, int]
"""Device and inode of a file."""


def abandoned(owners: Iterable[Owner], view: View) -> list[Owner]:
    """Those of *owners* that nobody has any more, by what the API server and the kubelet say."""
    known = list(owners)
    living = {pod.uid: pod for pod in view.pods}
    return [owner for owner in known if not _is_held(owner, known, living.get(owner.pod_uid), view)]


def _is_held(owner: Owner, owners: Iterable[Owner], pod: Pod | None, view: View) -> bool:
    """Whether a living pod, or somebody by the ledger, has what *owner* speaks of."""
    if any(_replaces(each, owner) for each in owners):
        return False
    if pod is not None and ids_of(view.ledger, pod, owner.container, owner.resource) in (
        frozenset(),  # not told yet, or no longer: the pod is there
        frozenset(owner.ids),
    ):
        return True
    holders = view.ledger.owners(owner.resource, owner.ids)
    # The kubelet's checkpoint is written at allocations only, so it may tell of pods that are gone.
    return told(view.pods, holders) is not None or any(each.pod for each in holders)


def _replaces(later: Owner, owner: Owner) -> bool:
    """Whether the same ids were allocated again, as *later*, to another pod or to the same container."""
    same = (later.resource, later.ids) == (owner.resource, owner.ids) and later.sequence > owner.sequence
    return same and (later.pod_uid != owner.pod_uid or later.container == owner.container)


class Collector:
    """Removes slices that were abandoned at two looks in a row.

    Args:
        slices: all there are.
        cdi: folder of CDI files, None without CDI.
        end: ends a MIG instance; raises ``DriverError`` where it can't, and the slice stays.
        proc: where the kernel tells of processes.
    """

    def __init__(
        self,
        slices: Slices,
        cdi: Path | None,
        end: Callable[[Instance], None],
        proc: Path = Path("/proc"),
    ) -> None:
        self._slices, self._cdi, self._end, self._proc = slices, cdi, end, proc
        self._seen: frozenset[str] = frozenset()
        self._log = structlog.get_logger()

    def collect(self, view: View) -> list[Owner]:
        """Remove what may go; what was removed. Raises ``OSError``."""
        doomed = abandoned(self._slices.all(), view)
        again = [owner for owner in doomed if owner.id in self._seen]
        self._seen = frozenset(owner.id for owner in doomed)
        mapped = mapped_files(self._proc) if again else frozenset()
        return [owner for owner in again if self._inode(owner) not in mapped and self._removed(owner)]

    def _removed(self, owner: Owner) -> bool:
        """Remove *owner*'s slice; whether it could be, since an instance may be in use still."""
        others = {made.wish for each in self._slices.all() if each.id != owner.id for made in each.instances}
        try:
            for instance in owner.instances:
                if instance.wish not in others:  # the next one at its place was given it as it was
                    self._end(instance)
        except DriverError as error:
            self._log.warning("a slice stays", slice=owner.id, error=str(error))
            return False
        if self._cdi is not None:
            cdi_path(owner, self._cdi).unlink(missing_ok=True)
        self._slices.remove(owner)
        return True

    def _inode(self, owner: Owner) -> Inode | None:
        try:
            found = self._slices.region(owner).stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino


def mapped_files(proc: Path) -> Collection[Inode]:
    """Every file that some process has mapped."""
    found: set[Inode] = set()
    for process in proc.iterdir():
        if not process.name.isdecimal():
            continue
        try:
            text = (process / "maps").read_text(errors="replace")
        except OSError:
            continue  # ended meanwhile
        found.update(_inodes(text))
    return found


def _inodes(maps: str) -> Iterable[Inode]:
    for line in maps.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) >= 5 and fields[4] != "0":
            major, _, minor = fields[3].partition(":")
            yield os.makedev(int(major, 16), int(minor, 16)), int(fields[4])
