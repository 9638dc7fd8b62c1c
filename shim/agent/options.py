"""What an agent is told when it starts: where things are, how cards are cut, how often it looks."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from volcano_py.crds.cards import names
from volcano_py.shim.agent.health import IGNORED_XIDS
from volcano_py.shim.agent.install import RegionFault
from volcano_py.shim.agent.keeper import Watch
from volcano_py.shim.agent.publish import Cut


@dataclass(frozen=True, slots=True)
class Paces:
    """How often things are looked at, in seconds.

    Attributes:
        cards: how they are.
        kubelet: whether it was started again.
        records: whether they say what the kubelet holds, without anything having happened.
        slices: what may go; two looks in a row decide.
        libraries: how long an old file of the quota library stays after the last slice with it.
        server: how long the API server is waited for at the start.
        quiet: how long a card that reported an error must be quiet to be well again.
        linger: how long the kubelet is still served at the end, so that binds under way arrive.
        patience: how long at most, while pods that were bound wait for their cards.
    """

    cards: float = 5.0
    kubelet: float = 1.0
    records: float = 10.0
    slices: float = 30.0
    libraries: float = 3600.0
    server: float = 10.0
    quiet: float = 300.0
    linger: float = 2.0
    patience: float = 10.0


@dataclass(frozen=True, slots=True)
class Options:
    """What the agent is told.

    Attributes:
        node: name of the node it is on.
        library: the quota library's file.
        resources: names of shares that it serves at the kubelet, each with all shares there are.
        kubeconfig: of the API server; None to look for one.
        kubelet: the kubelet's folder.
        hook: folder for library and slices.
        devices: folder of device nodes.
        capabilities: where the kernel tells the device nodes of MIG instances.
        cdi: folder of CDI files; None answers the kubelet in full.
        nvml: NVML's file; None for the usual one.
        region_fault: what follows where a container's region is broken.
        ignored_xids: errors that say nothing about a card.
        watch: how containers are held from outside; None if they are not.
    """

    node: str
    library: Path
    resources: tuple[str, ...] = (*names.NVIDIA.count, names.ACCELERATOR)
    kubeconfig: str | None = None
    kubelet: Path = Path("/var/lib/kubelet")
    hook: Path = Path("/usr/local/vgpu")
    devices: Path = Path("/dev")
    capabilities: Path = Path("/proc/driver/nvidia/capabilities")
    cdi: Path | None = None
    nvml: str | None = None
    cut: Cut = field(default_factory=lambda: Cut(10, 1.0))
    region_fault: RegionFault = RegionFault.CLOSED
    ignored_xids: frozenset[int] = IGNORED_XIDS
    paces: Paces = field(default_factory=Paces)
    watch: Watch | None = None
