"""Paths of cgroups as a containerised agent sees them, before and after it joins the host's view."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.cgroup.hosts import WAIT_S, Host, heard, tell
from volcano_py.shim.agent.cgroup.errors import CgroupError
from volcano_py.shim.agent.cgroup.namespace import join_host_cgroups

CONTAINERISED = """
import ctypes, sys
from pathlib import Path
from volcano_py.shim.agent.cgroup.names import Layout
from volcano_py.shim.agent.cgroup.namespace import join_host_cgroups
from volcano_py.shim.agent.cgroup.tree import find_tree

root, name, pid, proc = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
print("started", flush=True)
input()
assert ctypes.CDLL(None, use_errno=True).unshare(0x02000000) == 0, "no cgroup namespace of our own"
tree = find_tree(root, layout=Layout((name,)))
print(tree.container_of(pid))
print(join_host_cgroups(proc), tree.container_of(pid), join_host_cgroups(proc), sep="|")
"""


def test_whose_a_process_is_becomes_clear_in_the_hosts_namespace(node: Host, tmp_path: Path) -> None:
    agent, mine = node.container(), node.container()
    process = node.sleeper(mine)
    (tmp_path / "1").symlink_to(f"/proc/{os.getpid()}")
    given = [str(node.tree.root), node.name, str(process.pid), str(tmp_path)]
    pipe = subprocess.PIPE
    child = subprocess.Popen([sys.executable, "-c", CONTAINERISED, *given], stdin=pipe, stdout=pipe)
    node.running.append(child)
    assert heard(child) == b"started\n"
    node.join(agent, child.pid)
    tell(child, b"go\n")
    said = child.communicate(timeout=WAIT_S)[0].decode().splitlines()
    assert said == ["Whereabouts.UNCLEAR", f"True|{mine}|False"]


def test_no_host_to_join_is_told(tmp_path: Path) -> None:
    with pytest.raises(CgroupError, match="can't be opened"):
        join_host_cgroups(tmp_path)
