"""Seeing cgroups from the host's root.

In a container of its own the agent is told the paths of other containers from where it stands itself
(``/../../kubepods-…``), and such a path names nobody for sure. In the host's cgroup namespace it is told
them whole.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Final

from volcano_py.shim.agent.cgroup.errors import CgroupError

_CLONE_NEWCGROUP: Final = 0x02000000  # Linux uapi, linux/sched.h


def join_host_cgroups(proc: Path = Path("/proc")) -> bool:
    """Let the calling thread, and those it starts from now on, see cgroups as the host's first process does.

    Args:
        proc: the host's ``/proc``.

    Returns:
        False if it did already.

    Raises:
        CgroupError: it may not: CAP_SYS_ADMIN and the host's PIDs are needed.
    """
    host = proc / "1" / "ns" / "cgroup"
    try:
        lines = (proc / "1" / "cgroup").read_text().splitlines()
        if not any(line.split(":", 2)[-1].startswith("/..") for line in lines):
            return False
        handle = os.open(host, os.O_RDONLY)
    except OSError as error:
        raise CgroupError(
            f"the host's cgroup namespace can't be opened at {host}: {error.strerror}"
        ) from error
    try:
        if ctypes.CDLL(None, use_errno=True).setns(handle, _CLONE_NEWCGROUP) != 0:
            reason = os.strerror(ctypes.get_errno())
            raise CgroupError(f"the host's cgroup namespace can't be joined: {reason}")
    finally:
        os.close(handle)
    return True
