"""Which container a path belongs to: every spelling in use, and nothing that only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.shim.agent.cgroup.names import ContainerCgroup, Layout

UID = "0a1b2c3d-1111-4222-8333-0123456789ab"
SLICED = UID.replace("-", "_")
ID = "9f" * 32
OTHER_UID = "ffffffff-1111-4222-8333-0123456789ab"
OTHER_ID = "ab" * 32
STATIC = "0123456789abcdef0123456789abcdef"

CONTAINERS = {
    "cgroupfs, guaranteed, containerd": f"kubepods/pod{UID}/{ID}",
    "cgroupfs, burstable, docker": f"kubepods/burstable/pod{UID}/{ID}",
    "cgroupfs, best effort": f"kubepods/besteffort/pod{UID}/{ID}",
    "cgroupfs, cri-o": f"kubepods/burstable/pod{UID}/crio-{ID}",
    "systemd, guaranteed": f"kubepods.slice/kubepods-pod{SLICED}.slice/cri-containerd-{ID}.scope",
    "systemd, burstable": f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SLICED}.slice/"
    f"cri-containerd-{ID}.scope",
    "systemd, cri-o": f"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{SLICED}.slice/"
    f"crio-{ID}.scope",
    "systemd, docker": f"kubepods.slice/kubepods-pod{SLICED}.slice/docker-{ID}.scope",
    "kind, cgroupfs": f"kubelet/kubepods/burstable/pod{UID}/{ID}",
    "kind, systemd": "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
    f"kubelet-kubepods-burstable-pod{SLICED}.slice/cri-containerd-{ID}.scope",
    "mixed drivers": "system.slice/containerd.service/"
    f"kubepods-burstable-pod{SLICED}.slice:cri-containerd:{ID}",
    "mixed drivers, at the top": f"kubepods-pod{SLICED}.slice:cri-containerd:{ID}",
    "mixed drivers, k3s": "system.slice/k3s.service/"
    f"kubepods-besteffort-pod{SLICED}.slice:cri-containerd:{ID}",
}


@pytest.mark.parametrize("path", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_every_spelling_is_read(path: str) -> None:
    assert Layout().parse(f"/{path}") == ContainerCgroup(UID, ID, path)


def test_a_static_pod_has_a_hash_for_its_uid() -> None:
    found = Layout().parse(f"/kubepods/burstable/pod{STATIC}/{ID}")
    assert found is not None
    assert found.pod_uid == STATIC


@pytest.mark.parametrize("path", CONTAINERS.values(), ids=CONTAINERS.keys())
@pytest.mark.parametrize(
    "below",
    ["init.scope", "container", f"docker/{OTHER_ID}", f"kubepods/pod{OTHER_UID}/{OTHER_ID}", "a (deleted)"],
)
def test_what_a_container_makes_below_itself_is_the_container(path: str, below: str) -> None:
    """A container that can write its cgroup could else pass for another pod's."""
    assert Layout().parse(f"/{path}/{below}") == ContainerCgroup(UID, ID, path)


NO_CONTAINERS = {
    "the top": "/",
    "all pods": "/kubepods.slice",
    "a pod, no container": f"/kubepods/burstable/pod{UID}",
    "a pod's slice": f"/kubepods.slice/kubepods-pod{SLICED}.slice",
    "the watcher of cri-o": f"/kubepods.slice/kubepods-pod{SLICED}.slice/crio-conmon-{ID}.scope",
    "a unit in a pod": f"/kubepods.slice/kubepods-pod{SLICED}.slice/sshd.service",
    "plain docker": f"/docker/{ID}",
    "docker below systemd": f"/system.slice/docker-{ID}.scope",
    "a user's session that looks like pods": f"/user.slice/user-1000.slice/kubepods/pod{UID}/{ID}",
    "a user's service": f"/system.slice/mine.service/kubepods-pod{SLICED}.slice:cri-containerd:{ID}",
    "not from the host's root": f"/../../kubepods/pod{UID}/{ID}",
    "leaving and coming back": f"/kubepods/../kubepods/pod{UID}/{ID}",
    "a way out of it again": f"/kubepods/pod{UID}/{ID}/../{OTHER_ID}",
    "no UID": f"/kubepods/podhello/{ID}",
    "a short id": f"/kubepods/pod{UID}/9f9f",
    "capital letters": f"/kubepods/pod{UID.upper()}/{ID}",
    "dashes in a slice": f"/kubepods.slice/kubepods-pod{UID}.slice/cri-containerd-{ID}",
    "an unknown runtime": f"/kubepods/pod{UID}/lxc-{ID}",
    "classes that disagree": "/kubepods.slice/kubepods-burstable.slice/"
    f"kubepods-besteffort-pod{SLICED}.slice/cri-containerd-{ID}.scope",
    "drivers mixed within a path": f"/kubepods.slice/burstable/pod{UID}/{ID}",
}


@pytest.mark.parametrize("path", NO_CONTAINERS.values(), ids=NO_CONTAINERS.keys())
def test_what_only_looks_like_a_container_is_none(path: str) -> None:
    assert Layout().parse(path) is None


def test_a_kubelet_with_a_root_of_its_own() -> None:
    layout = Layout(roots=("nodes/my-node",))
    plain = layout.parse(f"/nodes/my-node/kubepods/pod{UID}/{ID}")
    sliced = layout.parse(
        f"/nodes.slice/nodes-my_node.slice/nodes-my_node-kubepods.slice/nodes-my_node-kubepods-pod{SLICED}.slice/"
        f"crio-{ID}.scope"
    )
    assert plain is not None
    assert sliced is not None
    assert layout.parse(f"/kubepods/pod{UID}/{ID}") is None


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_no_path_breaks_it(text: str) -> None:
    Layout().parse(text)
    Layout().parse(f"/kubepods/pod{UID}/{text}")
    Layout().parse(f"/kubepods.slice/{text}")
