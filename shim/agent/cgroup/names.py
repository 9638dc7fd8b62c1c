"""Which container a cgroup path belongs to, in every spelling that kubelets and runtimes use.

Only the outermost folders of a path are believed: kubelet and runtime made those, as root of the host. What
stands below a container's own cgroup is the container's doing and says nothing, however it is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_UID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}")
"""A pod's UID; a static pod has a hash without dashes."""
_LEAF: Final = re.compile(r"(?:(?:cri-containerd|crio|docker|libpod)-)?([0-9a-f]{64})")
"""A container. What CRI-O calls ``crio-conmon-…`` is its watcher and none."""
_MISPLACED: Final = re.compile(r"(?P<slice>[^:]+\.slice):cri-containerd:(?P<id>[0-9a-f]{64})")
"""containerd with the cgroupfs driver under a kubelet with the systemd driver."""

_CLASS_POD_CONTAINER: Final = 3

QOS: Final = ("", "burstable", "besteffort")
"""Folders of the service classes; guaranteed pods stand in none."""
ROOTS: Final = ("", "kubelet")
"""``--cgroup-root`` of a kubelet: usually none; ``kubelet`` where nodes are containers themselves (kind)."""
SERVICES: Final = ("containerd", "k3s", "k3s-agent", "rke2-server", "rke2-agent")
"""Units below which a containerd with the wrong driver puts its containers."""


@dataclass(frozen=True, slots=True, order=True)
class ContainerCgroup:
    """One container's own cgroup.

    Attributes:
        pod_uid: with dashes, as the API server writes it.
        container_id: 64 hexadecimal digits, as in the pod's status behind ``containerd://``.
        path: from the root of its hierarchy, without a slash at its ends.
    """

    pod_uid: str
    container_id: str
    path: str


@dataclass(frozen=True, slots=True)
class Layout:
    """Where this node's pods are.

    Attributes:
        roots: values of the kubelet's ``--cgroup-root`` to look below; "" is the top.
    """

    roots: tuple[str, ...] = ROOTS

    def parse(self, path: str) -> ContainerCgroup | None:
        """The container that *path* is, or is below; None where it is no pod's.

        Args:
            path: as in ``/proc/PID/cgroup``: from the root of the hierarchy.
        """
        parts = path.removesuffix(" (deleted)").strip("/").split("/")
        if not all(part and part != ".." and part != "." for part in parts):
            return None
        for root in self.roots:
            found = _cgroupfs(parts, root) or _systemd(parts, root)
            if found is not None:
                return found
        return _misplaced(parts, self.roots)

    def bases(self) -> Iterator[tuple[str, int]]:
        """Folders in which containers may be, and how far down they are at most."""
        for root in self.roots:
            yield "/".join([*_split(root), "kubepods"]), _CLASS_POD_CONTAINER
            yield "/".join(_slices([*_split(root), "kubepods"])), _CLASS_POD_CONTAINER
        yield from ((f"system.slice/{service}.service", 1) for service in SERVICES)
        yield "", 1


def _split(root: str) -> list[str]:
    return [part for part in root.split("/") if part]


def _slices(names: Sequence[str]) -> list[str]:
    """``a, b`` as systemd nests them: ``a.slice/a-b.slice``."""
    plain = [name.replace("-", "_") for name in names]
    return ["-".join(plain[: depth + 1]) + ".slice" for depth in range(len(plain))]


def _cgroupfs(parts: list[str], root: str) -> ContainerCgroup | None:
    """``kubepods/burstable/pod<uid>/<id>``."""
    base = [*_split(root), "kubepods"]
    for qos in QOS:
        above = [*base, qos] if qos else base
        pod, leaf = _two_below(parts, above)
        uid = pod.removeprefix("pod")
        named = _LEAF.fullmatch(leaf)
        if pod != uid and _UID.fullmatch(uid) and named:
            return ContainerCgroup(uid, named[1], "/".join(parts[: len(above) + 2]))
    return None


def _systemd(parts: list[str], root: str) -> ContainerCgroup | None:
    """``kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<u_i_d>.slice/<runtime>-<id>.scope``."""
    names = [*_split(root), "kubepods"]
    for qos in QOS:
        full = [*names, qos] if qos else names
        above = _slices(full)
        pod, leaf = _two_below(parts, above)
        uid = _uid_of_slice(pod, above[-1])
        named = _LEAF.fullmatch(leaf.removesuffix(".scope"))
        if uid and named and leaf.endswith(".scope"):
            return ContainerCgroup(uid, named[1], "/".join(parts[: len(above) + 2]))
    return None


def _misplaced(parts: list[str], roots: Sequence[str]) -> ContainerCgroup | None:
    """``kubepods-burstable-pod<u_i_d>.slice:cri-containerd:<id>``, at the top or below containerd's unit."""
    at_unit = len(parts) > 2 and parts[0] == "system.slice" and parts[1].removesuffix(".service") in SERVICES
    place = 2 if at_unit else 0
    told = _MISPLACED.fullmatch(parts[place])
    if told is None:
        return None
    for root in roots:
        for qos in QOS:
            above = _slices([*_split(root), "kubepods", *([qos] if qos else [])])
            uid = _uid_of_slice(told["slice"], above[-1])
            if uid:
                return ContainerCgroup(uid, told["id"], "/".join(parts[: place + 1]))
    return None


def _two_below(parts: list[str], above: list[str]) -> tuple[str, str]:
    """The two folders below *above*, "" where there are none."""
    if parts[: len(above)] != above or len(parts) < len(above) + 2:
        return "", ""
    return parts[len(above)], parts[len(above) + 1]


def _uid_of_slice(name: str, parent: str) -> str:
    """The UID in a pod's slice directly below *parent*; "" where it is none."""
    stem = parent.removesuffix(".slice") + "-pod"
    uid = name.removesuffix(".slice").removeprefix(stem).replace("_", "-")
    is_pod = name.startswith(stem) and name.endswith(".slice") and _UID.fullmatch(uid)
    return uid if is_pod else ""
