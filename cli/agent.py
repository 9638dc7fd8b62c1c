"""``volcano-py agent``: this node's cards, published and handed out in slices, until it is stopped."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import structlog
import typer

from volcano_py.cli.component import Format, Level, LogFormat, LogLevel, address, fail
from volcano_py.cli.option_groups import grouped
from volcano_py.client.api import AccessError, Api
from volcano_py.scheduler.probes import Address, Web
from volcano_py.scheduler.run.logs import set_up_logs
from volcano_py.shim.agent.agent import Agent
from volcano_py.shim.agent.cgroup.errors import CgroupError
from volcano_py.shim.agent.cgroup.names import ROOTS
from volcano_py.shim.agent.install import InstallError, RegionFault
from volcano_py.shim.agent.keeper import Watch
from volcano_py.shim.agent.options import Options, Paces
from volcano_py.shim.agent.policy import Answer, Freezing, Overuse, Policy, Sharing, Yielding
from volcano_py.shim.agent.publish import Cut

_STANDARD: Final = Options("", Path("/usr/lib/volcano-py/libvgpu.so"))
_PACES: Final = _STANDARD.paces
_WATCH: Final = Watch()
_OVERUSE, _FREEZING = _WATCH.policy.overuse, _WATCH.policy.freezing


@dataclass(frozen=True, slots=True)
class Places:
    """Where this node has things."""

    library: Annotated[Path, typer.Option(help="The quota library that containers get.")] = _STANDARD.library
    kubeconfig: Annotated[str | None, typer.Option(help="Of the API server; else $KUBECONFIG.")] = None
    kubelet_dir: Annotated[Path, typer.Option(help="The kubelet's folder, with device-plugins/ in it.")] = (
        _STANDARD.kubelet
    )
    hook_path: Annotated[Path, typer.Option(help="Folder of the host for the library and the slices.")] = (
        _STANDARD.hook
    )
    device_dir: Annotated[Path, typer.Option(help="Folder of device nodes.")] = _STANDARD.devices
    capabilities_dir: Annotated[
        Path, typer.Option(help="Where the kernel tells the device nodes of MIG instances.")
    ] = _STANDARD.capabilities
    nvml_library: Annotated[str | None, typer.Option(help="NVML's file; else libnvidia-ml.so.1.")] = None


@dataclass(frozen=True, slots=True)
class Handing:
    """How cards are handed out."""

    resource: Annotated[
        list[str] | None,
        typer.Option(
            help="A name of shares, served at the kubelet; may be given often. "
            "[default: nvidia.com/gpu, volcano.sh/vgpu-number, volcano-py.io/accelerator]"
        ),
    ] = None
    split: Annotated[int, typer.Option(min=1, max=1000, help="Shares of a card.")] = _STANDARD.cut.slots
    memory_scaling: Annotated[
        float, typer.Option(min=0.1, max=100, help="How often memory is handed out.")
    ] = _STANDARD.cut.memory_scaling
    region_fault: Annotated[
        RegionFault, typer.Option(help="With a broken region programs get no card memory, or have no limits.")
    ] = _STANDARD.region_fault
    cdi: Annotated[bool, typer.Option(help="Hand slices out as CDI devices.")] = False
    cdi_dir: Annotated[Path, typer.Option(help="Folder of CDI files.")] = Path("/var/run/cdi")


@dataclass(frozen=True, slots=True)
class Looking:
    """How cards and slices are looked after."""

    ignore_xid: Annotated[
        list[int] | None, typer.Option(help="Errors that don't make a card unwell, instead of HAMi's.")
    ] = None
    check_seconds: Annotated[float, typer.Option(min=0.1, help="Between two looks at the cards.")] = (
        _PACES.cards
    )
    quiet_seconds: Annotated[
        float, typer.Option(min=0, help="Without an error until a card is well again.")
    ] = _PACES.quiet
    collect_seconds: Annotated[
        float, typer.Option(min=0.1, help="Between two looks for slices that may go.")
    ] = _PACES.slices

    def paces(self) -> Paces:
        """How often."""
        return Paces(cards=self.check_seconds, quiet=self.quiet_seconds, slices=self.collect_seconds)


@dataclass(frozen=True, slots=True)
class Keeping:
    """How containers are held to their slices from outside."""

    keep: Annotated[bool, typer.Option(help="Hold containers to their slices from outside, by cgroups.")] = (
        True
    )
    overuse: Annotated[Answer, typer.Option(help="What follows on more memory than the slice.")] = (
        Answer.EVENT
    )
    overuse_tolerance: Annotated[
        float, typer.Option(min=0, help="Percent over the slice that is let pass, at least 64 MiB.")
    ] = _OVERUSE.tolerance_percent
    overuse_seconds: Annotated[
        float, typer.Option(min=0, help="How long over it before anything follows.")
    ] = _OVERUSE.over_s
    yielding: Annotated[
        Yielding, typer.Option(help="How containers make way for busy ones of higher priority.")
    ] = Yielding.BLOCK
    freeze_seconds: Annotated[
        float, typer.Option(min=0.1, help="Longest stop of a container; it runs as long in between.")
    ] = _FREEZING.most_s
    guard_devices: Annotated[bool, typer.Option(help="Let containers open their own cards' files only.")] = (
        True
    )
    keep_seconds: Annotated[float, typer.Option(min=0.1, help="Between two looks at containers.")] = (
        _WATCH.every_s
    )
    cgroup_dir: Annotated[Path, typer.Option(help="Where the host's cgroups are mounted.")] = Path(
        "/sys/fs/cgroup"
    )
    kubelet_cgroup_root: Annotated[
        list[str] | None, typer.Option(help="The kubelet's --cgroup-root, where it has one.")
    ] = None

    def watch(self, devices: Path) -> Watch | None:
        """How, with device nodes in *devices*; None: not at all."""
        if not self.keep:
            return None
        policy = Policy(
            Overuse(self.overuse, self.overuse_tolerance, over_s=self.overuse_seconds),
            Sharing(self.yielding),
            Freezing(self.freeze_seconds, self.freeze_seconds),
        )
        return Watch(
            policy,
            self.keep_seconds,
            self.guard_devices,
            cgroups=self.cgroup_dir,
            devices=devices,
            kubelet_roots=tuple(self.kubelet_cgroup_root or ROOTS),
        )


@grouped
def agent(
    node_name: Annotated[str, typer.Option(envvar="NODE_NAME", help="Name of the node it runs on.")],
    places: Places,
    handing: Handing,
    looking: Looking,
    keeping: Keeping,
    listen_address: Annotated[
        str, typer.Option(help="/metrics, /healthz and /readyz; 0 for none.")
    ] = ":9395",
    log_level: Level = LogLevel.info,
    log_format: Format = LogFormat.json,
) -> None:
    """Publish the cards of this node, and hand slices of them to containers through the kubelet.

    Example: [bold]volcano-py agent --node-name n1 --library build/shim/libvgpu.so[/bold]
    """
    set_up_logs(level=log_level.value, form=log_format.value)
    xids = looking.ignore_xid
    options = Options(
        node=node_name,
        library=places.library,
        resources=tuple(handing.resource or _STANDARD.resources),
        kubeconfig=places.kubeconfig,
        kubelet=places.kubelet_dir,
        hook=places.hook_path,
        devices=places.device_dir,
        capabilities=places.capabilities_dir,
        cdi=handing.cdi_dir if handing.cdi else None,
        nvml=places.nvml_library,
        cut=Cut(handing.split, handing.memory_scaling),
        region_fault=handing.region_fault,
        ignored_xids=_STANDARD.ignored_xids if xids is None else frozenset(xids),
        paces=looking.paces(),
        watch=keeping.watch(places.device_dir),
    )
    try:
        asyncio.run(_run(options, address("--listen-address", listen_address)))
    except CgroupError as error:
        fail(f"{error}. Without cgroups: --no-keep, and only the library holds containers to their slices")
    except (AccessError, InstallError, OSError) as error:
        fail(str(error))


async def _run(options: Options, listening: Address | None) -> None:
    async with await Api.connect(options.kubeconfig, agent="volcano-py-agent") as server:
        running = Agent(options, server)
        web = Web(alive=lambda: "", ready=running.ready, metrics=running.metrics)
        await web.start(listening)
        structlog.get_logger().info("started", addresses=[f"{host}:{port}" for host, port in web.bound])
        try:
            await _until_stopped(running)
        finally:
            await web.stop()


async def _until_stopped(running: Agent) -> None:
    """Run until the process is asked to end; what fails for good ends it too."""
    work = asyncio.ensure_future(running.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        return
