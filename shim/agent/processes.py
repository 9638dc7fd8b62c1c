"""Telling the library by which numbers the host, and so the driver, knows its processes.

A container sees its processes under numbers of its own. The host's kernel shows both, and when each began, so
a process of a container's cgroup that has both right is the one in the region.
"""

from __future__ import annotations

from pathlib import Path

from volcano_py.shim.agent.attribution import start_ticks
from volcano_py.shim.agent.cgroup.files import processes
from volcano_py.shim.agent.cgroup.names import ContainerCgroup
from volcano_py.shim.agent.cgroup.tree import Tree
from volcano_py.shim.agent.region import Region, RegionError, note_host_pid
from volcano_py.shim.agent.tenants import Tenant


def note_host_pids(tenant: Tenant, region: Region, cgroup: ContainerCgroup, tree: Tree) -> int:
    """Note in *tenant*'s region the host's numbers of processes that have none yet; how many were found."""
    missing = [each for each in region.processes if each.host_pid is None]
    if not missing or tenant.region is None:
        return 0
    there = {
        inner_and_start(tree.proc / str(pid)): pid
        for pid in processes(tree.hierarchy("freezer") / cgroup.path)
    }
    found = 0
    for each in missing:
        pid = there.get((each.pid, each.start_ticks))
        if pid:
            try:
                note_host_pid(tenant.region, each, pid)
                found += 1
            except RegionError:
                return found  # the container took it away or broke it: the next look tells
    return found


def inner_and_start(folder: Path) -> tuple[int, int]:
    """A process's number in its own namespace, and when it began; zeros where it ended."""
    began = start_ticks(folder)
    try:
        text = (folder / "status").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    line = next(line for line in text.splitlines() if line.startswith("NSpid:"))
    return int(line.split()[-1]), began or 0
