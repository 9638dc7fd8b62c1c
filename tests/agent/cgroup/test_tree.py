"""Whose a process is, on this machine's kernel."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agent.cgroup.hosts import WAIT_S, Host
from tests.agent.cgroup.test_names import CONTAINERS, ID, OTHER_ID, UID
from volcano_py.shim.agent.cgroup.errors import CgroupError, CgroupGone
from volcano_py.shim.agent.cgroup.names import ContainerCgroup
from volcano_py.shim.agent.cgroup.tree import Tree, Whereabouts, find_tree

POD = f"kubepods/pod{UID}"


@pytest.mark.parametrize("driver", ["systemd", "cgroupfs"])
def test_a_process_is_its_containers(node: Host, driver: str) -> None:
    mine, other = node.container(driver), node.container(driver)
    process = node.sleeper(mine)
    assert node.tree.container_of(process.pid) == mine
    assert set(node.tree.containers().values()) == {mine, other}


def test_a_process_further_down_is_its_containers_too(node: Host) -> None:
    mine = node.container()
    process = node.sleeper(mine, below="kubepods/burstable")
    assert node.tree.container_of(process.pid) == mine


def test_a_process_of_the_host_is_outside(node: Host) -> None:
    assert node.tree.container_of(os.getpid()) is Whereabouts.OUTSIDE


def test_a_process_that_ended(node: Host) -> None:
    process = node.sleeper(node.container())
    process.kill()
    process.wait(WAIT_S)
    assert node.tree.container_of(process.pid) is Whereabouts.ENDED


def test_only_containers_of_pods_are_touched(node: Host) -> None:
    real = node.container()
    (node.tree.hierarchy("freezer") / node.name).mkdir(exist_ok=True)
    with pytest.raises(CgroupError, match="no cgroup of a pod"):
        node.tree.folder(ContainerCgroup(real.pod_uid, real.container_id, node.name), "freezer")
    with pytest.raises(CgroupError, match="no cgroup of a pod"):
        node.tree.folder(ContainerCgroup(real.pod_uid, OTHER_ID, real.path), "freezer")


def test_our_own_pod_is_never_touched(node: Host) -> None:
    own = node.container()
    tree = Tree(node.tree.root, node.tree.proc, node.tree.unified, node.tree.layout, own)
    with pytest.raises(CgroupError, match="the agent's own pod"):
        tree.folder(own, "freezer")


def test_a_container_that_ended_is_told(node: Host) -> None:
    gone = node.container("cgroupfs")
    node.remove(gone)
    with pytest.raises(CgroupGone):
        node.tree.folder(gone, "freezer")


# -- paths as they are written on other machines ------------------------------------------------


def told(tmp_path: Path, text: str, *, unified: bool = True) -> ContainerCgroup | Whereabouts:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_text(text)
    return Tree(tmp_path, tmp_path, unified).container_of(7)


def test_version_2_is_one_line(tmp_path: Path) -> None:
    assert told(tmp_path, f"0::/{POD}/{ID}\n") == ContainerCgroup(UID, ID, f"{POD}/{ID}")


def test_version_1_agrees_over_its_controllers(tmp_path: Path) -> None:
    text = f"9:name=systemd:/{POD}/{ID}\n4:freezer:/{POD}/{ID}/inner\n3:cpu,cpuacct:/{POD}/{ID}\n0::/\n"
    assert told(tmp_path, text, unified=False) == ContainerCgroup(UID, ID, f"{POD}/{ID}")


def test_controllers_that_disagree_name_nobody(tmp_path: Path) -> None:
    text = f"4:freezer:/{POD}/{ID}\n3:memory:/{POD}/{OTHER_ID}\n"
    assert told(tmp_path, text, unified=False) is Whereabouts.UNCLEAR


def test_a_path_from_elsewhere_than_the_hosts_root_names_nobody(tmp_path: Path) -> None:
    assert told(tmp_path, f"0::/../../{POD}/{ID}\n") is Whereabouts.UNCLEAR


def test_a_removed_cgroup_is_still_its_containers(tmp_path: Path) -> None:
    assert told(tmp_path, f"0::/{POD}/{ID} (deleted)\n") == ContainerCgroup(UID, ID, f"{POD}/{ID}")


def test_a_colon_in_a_name_is_part_of_it(tmp_path: Path) -> None:
    path = f"kubepods-pod{UID.replace('-', '_')}.slice:cri-containerd:{ID}"
    assert told(tmp_path, f"0::/{path}/x:y\n") == ContainerCgroup(UID, ID, path)


@pytest.mark.parametrize("path", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_containers_are_found_wherever_they_may_be(tmp_path: Path, path: str) -> None:
    (tmp_path / path / "kubepods" / f"pod{UID}" / OTHER_ID).mkdir(parents=True)
    assert [*Tree(tmp_path, tmp_path, unified=True).containers().values()] == [ContainerCgroup(UID, ID, path)]


@given(st.text("0:/.\n kubepods", max_size=80), st.booleans())
def test_no_text_breaks_it(text: str, unified: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = told(Path(folder), text, unified=unified)
    assert isinstance(found, Whereabouts)


def test_no_cgroups_at_all_is_told(tmp_path: Path) -> None:
    with pytest.raises(CgroupError, match="neither cgroup v2 nor v1"):
        find_tree(tmp_path)
