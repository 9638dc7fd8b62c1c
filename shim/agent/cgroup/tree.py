"""The host's cgroups: where containers are, whose a process is, the one door to a folder that is written.

Read are the host's ``/proc`` and ``/sys/fs/cgroup``, nothing of the container's own saying. Both are given,
so that tests look at trees of their own.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from volcano_py.shim.agent.cgroup.errors import CgroupError, CgroupGone
from volcano_py.shim.agent.cgroup.names import ContainerCgroup, Layout

_ENDED: Final = (FileNotFoundError, ProcessLookupError)


class Whereabouts(enum.Enum):
    """Why a process is in no container."""

    OUTSIDE = "outside"  # of every pod: the host's own, or a container that kubelet did not start
    ENDED = "ended"
    UNCLEAR = "unclear"  # hierarchies disagree, or the path is not told from the host's root


@dataclass(frozen=True, slots=True)
class Tree:
    """One host's cgroups.

    Attributes:
        root: where they are mounted: of v2 the hierarchy itself, of v1 the folder of the controllers.
        proc: the host's ``/proc``.
        unified: version 2.
        layout: how pods are named here.
        own: the container that we are in ourselves, which is never touched.
    """

    root: Path
    proc: Path
    unified: bool
    layout: Layout = field(default_factory=Layout)
    own: ContainerCgroup | None = None

    def container_of(self, pid: int) -> ContainerCgroup | Whereabouts:
        """Whose process *pid* is, from the host's sight. Threads are as their process."""
        try:
            text = (self.proc / str(pid) / "cgroup").read_text("utf-8", "surrogateescape")
        except _ENDED:
            return Whereabouts.ENDED
        lines = [line.split(":", 2) for line in text.splitlines()]
        told = {line[1]: line[2] for line in lines if len(line) == 3 and (line[0] == "0" or not self.unified)}
        return self._agreed(told)

    def _agreed(self, told: dict[str, str]) -> ContainerCgroup | Whereabouts:
        """The container that all hierarchies name; v1 has one for each controller."""
        if not told or any(path.startswith("/..") for path in told.values()):
            return Whereabouts.UNCLEAR
        found = {name: self.layout.parse(path) for name, path in told.items()}
        named = {name: cgroup for name, cgroup in found.items() if cgroup is not None}
        if not named:
            return Whereabouts.OUTSIDE
        if len({(cgroup.pod_uid, cgroup.container_id) for cgroup in named.values()}) > 1:
            return Whereabouts.UNCLEAR
        return named.get("freezer") or next(iter(named.values()))

    def containers(self) -> dict[tuple[str, str], ContainerCgroup]:
        """All containers of pods on this host, by pod UID and container id."""
        top = self.hierarchy("freezer")
        found = (each for base, depth in self.layout.bases() for each in self._below(top, base, depth))
        return {(each.pod_uid, each.container_id): each for each in found}

    def _below(self, top: Path, path: str, depth: int) -> Iterator[ContainerCgroup]:
        for name in _folders(top / path):
            cgroup = self.layout.parse(f"{path}/{name}")
            if cgroup is not None:
                yield cgroup
            elif depth > 1:
                yield from self._below(top, f"{path}/{name}", depth - 1)

    def hierarchy(self, controller: str) -> Path:
        """The folder that *controller*'s cgroups are in."""
        return self.root if self.unified else self.root / controller

    def folder(self, cgroup: ContainerCgroup, controller: str) -> Path:
        """Where *cgroup* is written, for *controller*.

        Raises:
            CgroupError: it is no container of a pod, or our own.
            CgroupGone: it ended.
        """
        if self.layout.parse(cgroup.path) != cgroup:
            raise CgroupError(f"{cgroup.path} is no cgroup of a pod's container")
        if self.own is not None and self.own.pod_uid == cgroup.pod_uid:
            raise CgroupError(f"{cgroup.path} belongs to the agent's own pod")
        folder = self.hierarchy(controller) / cgroup.path
        if not folder.is_dir():
            raise CgroupGone(f"{cgroup.path} ended")
        return folder


def find_tree(
    root: Path = Path("/sys/fs/cgroup"),
    proc: Path = Path("/proc"),
    layout: Layout | None = None,
) -> Tree:
    """The tree at *root*, of the version that is there.

    Raises:
        CgroupError: there is none, or one without a way to stop processes.
    """
    unified = (root / "cgroup.controllers").is_file()
    if not unified and not (root / "freezer" / "cgroup.procs").is_file():
        raise CgroupError(
            f"{root} has neither cgroup v2 nor v1's freezer: mount the host's /sys/fs/cgroup there"
        )
    tree = Tree(root, proc, unified, layout or Layout())
    own = tree.container_of(os.getpid())
    return Tree(root, proc, unified, tree.layout, own if isinstance(own, ContainerCgroup) else None)


def _folders(path: Path) -> list[str]:
    """Names of the folders in *path*, none where it went away."""
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return []
