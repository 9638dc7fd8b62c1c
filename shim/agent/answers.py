"""What a container gets: environment, mounts and device nodes, as the kubelet is answered.

The environment is HAMi's too, so that its own library would work in place of ours; ours believes the region
alone. With CDI the same things stand in a file for the container runtime, and the answer names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from volcano_py.shim.agent.install import FAULT, IN_CONTAINER, LIBRARY, PRELOAD
from volcano_py.shim.agent.slices import CACHE, REGION, Owner, write_file
from volcano_py.shim.agent.wire import deviceplugin_pb2 as plugin

SLICE: Final = f"{IN_CONTAINER}/slice"
CDI_KIND: Final = "volcano-py.io/slice"
CDI_VERSION: Final = "0.6.0"
_CONTROL_NODES: Final = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of the host in the container."""

    host: str
    container: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class Grant:
    """Everything that one container gets.

    Attributes:
        nodes: device nodes, the same inside and outside.
    """

    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Host:
    """Where things are on this machine.

    Attributes:
        hook: folder of the library and of the slices.
        devices: folder of device nodes.
        cdi: folder of CDI files, None without CDI.
        minors: number of the device node of each card.
        oversubscribed: whether more memory is handed out than there is.
    """

    hook: Path
    devices: Path
    cdi: Path | None
    minors: Mapping[str, int]
    oversubscribed: bool = False


def grant(owner: Owner, host: Host) -> Grant:
    """What the container of *owner* gets on *host*."""
    environment = {"NVIDIA_VISIBLE_DEVICES": ",".join(share.uuid for share in owner.shares)}
    if not owner.limited:
        return Grant(environment, (), _nodes(owner, host))
    environment |= _limits(owner, oversubscribed=host.oversubscribed)
    folder = host.hook / "slices" / owner.id
    mounts = (
        Mount(str(host.hook / owner.library), f"{IN_CONTAINER}/{LIBRARY}", read_only=True),
        Mount(str(host.hook / PRELOAD), f"/etc/{PRELOAD}", read_only=True),
        Mount(str(host.hook / FAULT), f"{IN_CONTAINER}/{FAULT}", read_only=True),
        Mount(str(folder / REGION), f"{SLICE}/{REGION}", read_only=False),
        Mount(str(folder / CACHE), f"{IN_CONTAINER}/{CACHE}", read_only=False),
    )
    return Grant(environment, mounts, _nodes(owner, host))


def answer(owner: Owner, host: Host) -> plugin.ContainerAllocateResponse:
    """The kubelet's answer for *owner*; with CDI the file that it names is written. Raises ``OSError``."""
    given = grant(owner, host)
    if host.cdi is not None:
        write_cdi(owner, given, host.cdi)
        return plugin.ContainerAllocateResponse(cdi_devices=[plugin.CDIDevice(name=f"{CDI_KIND}={owner.id}")])
    return plugin.ContainerAllocateResponse(
        envs=given.environment,
        mounts=[
            plugin.Mount(container_path=m.container, host_path=m.host, read_only=m.read_only)
            for m in given.mounts
        ],
        devices=[
            plugin.DeviceSpec(container_path=node, host_path=node, permissions="rw") for node in given.nodes
        ],
    )


def cdi_path(owner: Owner, folder: Path) -> Path:
    """Where the CDI file of *owner* is."""
    return folder / f"volcano-py.io-slice-{owner.id}.json"


def write_cdi(owner: Owner, given: Grant, folder: Path) -> None:
    """Tell container runtimes of *given* under the name of *owner*. Raises ``OSError``."""
    folder.mkdir(parents=True, exist_ok=True)
    write_file(cdi_path(owner, folder), msgspec.json.encode(_cdi(owner, given)))


def _cdi(owner: Owner, given: Grant) -> dict[str, Any]:
    edits = {
        "env": [f"{name}={value}" for name, value in given.environment.items()],
        "deviceNodes": [{"path": node, "permissions": "rw"} for node in given.nodes],
        "mounts": [
            {
                "hostPath": mount.host,
                "containerPath": mount.container,
                "options": ["bind", "nosuid", "nodev", "ro" if mount.read_only else "rw"],
            }
            for mount in given.mounts
        ],
    }
    device = {"name": owner.id, "containerEdits": edits}
    return {"cdiVersion": CDI_VERSION, "kind": CDI_KIND, "devices": [device]}


def _limits(owner: Owner, *, oversubscribed: bool) -> dict[str, str]:
    words = {"VOLCANO_PY_REGION": f"{SLICE}/{REGION}"}
    for at, share in enumerate(owner.shares):
        if share.memory_mib:
            words[f"CUDA_DEVICE_MEMORY_LIMIT_{at}"] = f"{share.memory_mib}m"
        if share.cores:
            words[f"CUDA_DEVICE_SM_LIMIT_{at}"] = str(share.cores)
    if owner.shares and owner.shares[0].cores:
        words["CUDA_DEVICE_SM_LIMIT"] = str(owner.shares[0].cores)
    words["CUDA_DEVICE_MEMORY_SHARED_CACHE"] = f"{IN_CONTAINER}/{CACHE}/cudevshr.cache"
    words["CUDA_TASK_PRIORITY"] = str(owner.priority)
    if oversubscribed:
        words["CUDA_OVERSUBSCRIBE"] = "true"
    return words


def _nodes(owner: Owner, host: Host) -> tuple[str, ...]:
    """The cards' nodes, and of those that all cards have in common the ones that are there."""
    parents = {each.uuid: each.card for each in owner.instances}
    cards = [share.uuid for share in owner.shares]
    cards = [parents.get(card, card) for card in cards]
    own = [host.devices / f"nvidia{host.minors[card]}" for card in _distinct(cards) if card in host.minors]
    cut = [node for each in owner.instances for node in each.nodes]
    common = [path for name in _CONTROL_NODES if (path := host.devices / name).exists()]
    return tuple(_distinct([str(path) for path in (*own, *cut, *common)]))


def _distinct(words: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(words))
