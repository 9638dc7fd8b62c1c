"""``volcano-py agent``: this node's cards, published and handed out in slices, until it is stopped."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Annotated, Final

import structlog
import typer

from volcano_py.cli.component import Format, Level, LogFormat, LogLevel, address, fail
from volcano_py.scheduler.probes import Address, Web
from volcano_py.scheduler.run.logs import set_up_logs
from volcano_py.shim.agent.agent import Agent, Options, Paces
from volcano_py.shim.agent.cgroup.errors import CgroupError
from volcano_py.shim.agent.cgroup.names import ROOTS
from volcano_py.shim.agent.install import InstallError
from volcano_py.shim.agent.keeper import Watch
from volcano_py.shim.agent.policy import Answer, Freezing, Overuse, Policy, Sharing, Yielding
from volcano_py.shim.agent.publish import Cut
from volcano_py.shim.agent.server import NoServer, Server

_PACES: Final = Paces()
_WATCH: Final = Watch()
_OVERUSE, _FREEZING = _WATCH.policy.overuse, _WATCH.policy.freezing


def agent(
    node_name: Annotated[
        str, typer.Option("--node-name", envvar="NODE_NAME", help="Name of the node it runs on.")
    ],
    library: Annotated[Path, typer.Option("--library", help="The quota library that containers get.")] = Path(
        "/usr/lib/volcano-py/libvgpu.so"
    ),
    kubeconfig: Annotated[
        str | None, typer.Option("--kubeconfig", help="Of the API server; else $KUBECONFIG.")
    ] = None,
    kubelet_dir: Annotated[
        Path, typer.Option("--kubelet-dir", help="The kubelet's folder, with device-plugins/ in it.")
    ] = Path("/var/lib/kubelet"),
    hook_path: Annotated[
        Path, typer.Option("--hook-path", help="Folder of the host for the library and the slices.")
    ] = Path("/usr/local/vgpu"),
    device_dir: Annotated[Path, typer.Option("--device-dir", help="Folder of device nodes.")] = Path("/dev"),
    nvml_library: Annotated[
        str | None, typer.Option("--nvml-library", help="NVML's file; else libnvidia-ml.so.1.")
    ] = None,
    resource: Annotated[
        list[str] | None,
        typer.Option(
            "--resource", help="Served at the kubelet. [default: nvidia.com/gpu, volcano.sh/vgpu-number]"
        ),
    ] = None,
    split: Annotated[int, typer.Option("--split", min=1, max=1000, help="Shares of a card.")] = 10,
    memory_scaling: Annotated[
        float, typer.Option("--memory-scaling", min=0.1, max=100, help="How often memory is handed out.")
    ] = 1.0,
    cdi: Annotated[bool, typer.Option("--cdi/--no-cdi", help="Hand slices out as CDI devices.")] = False,
    cdi_dir: Annotated[Path, typer.Option("--cdi-dir", help="Folder of CDI files.")] = Path("/var/run/cdi"),
    ignore_xid: Annotated[
        list[int] | None,
        typer.Option("--ignore-xid", help="Errors that don't make a card unwell, instead of HAMi's."),
    ] = None,
    check_seconds: Annotated[
        float, typer.Option("--check-seconds", min=0.1, help="Between two looks at the cards.")
    ] = _PACES.cards,
    quiet_seconds: Annotated[
        float, typer.Option("--quiet-seconds", min=0, help="Without an error until a card is well again.")
    ] = _PACES.quiet,
    collect_seconds: Annotated[
        float, typer.Option("--collect-seconds", min=0.1, help="Between two looks for slices that may go.")
    ] = _PACES.slices,
    keep: Annotated[
        bool,
        typer.Option("--keep/--no-keep", help="Hold containers to their slices from outside, by cgroups."),
    ] = True,
    overuse: Annotated[
        Answer, typer.Option("--overuse", help="What follows on more memory than the slice.")
    ] = Answer.EVENT,
    overuse_tolerance: Annotated[
        float,
        typer.Option(
            "--overuse-tolerance", min=0, help="Percent over the slice that is let pass, at least 64 MiB."
        ),
    ] = _OVERUSE.tolerance_percent,
    overuse_seconds: Annotated[
        float, typer.Option("--overuse-seconds", min=0, help="How long over it before anything follows.")
    ] = _OVERUSE.over_s,
    yielding: Annotated[
        Yielding, typer.Option("--yielding", help="How containers make way for busy ones of higher priority.")
    ] = Yielding.BLOCK,
    freeze_seconds: Annotated[
        float,
        typer.Option(
            "--freeze-seconds", min=0.1, help="Longest stop of a container; it runs as long in between."
        ),
    ] = _FREEZING.most_s,
    guard_devices: Annotated[
        bool,
        typer.Option(
            "--guard-devices/--no-guard-devices", help="Let containers open their own cards' files only."
        ),
    ] = True,
    keep_seconds: Annotated[
        float, typer.Option("--keep-seconds", min=0.1, help="Between two looks at containers.")
    ] = _WATCH.every_s,
    cgroup_dir: Annotated[
        Path, typer.Option("--cgroup-dir", help="Where the host's cgroups are mounted.")
    ] = Path("/sys/fs/cgroup"),
    kubelet_cgroup_root: Annotated[
        list[str] | None,
        typer.Option("--kubelet-cgroup-root", help="The kubelet's --cgroup-root, where it has one."),
    ] = None,
    listen_address: Annotated[
        str, typer.Option("--listen-address", help="/metrics, /healthz and /readyz; 0 for none.")
    ] = ":9395",
    log_level: Level = LogLevel.info,
    log_format: Format = LogFormat.json,
) -> None:
    """Publish the cards of this node, and hand slices of them to containers through the kubelet.

    Example: [bold]volcano-py agent --node-name n1 --library build/shim/libvgpu.so[/bold]
    """
    set_up_logs(level=log_level.value, form=log_format.value)
    standard = Options(node_name, library)
    watch = Watch(
        Policy(
            Overuse(overuse, overuse_tolerance, over_s=overuse_seconds),
            Sharing(yielding),
            Freezing(freeze_seconds, freeze_seconds),
        ),
        keep_seconds,
        guard_devices,
        cgroups=cgroup_dir,
        devices=device_dir,
        kubelet_roots=tuple(kubelet_cgroup_root or ROOTS),
    )
    paces = Paces(cards=check_seconds, quiet=quiet_seconds, slices=collect_seconds)
    options = Options(
        node=node_name,
        library=library,
        resources=tuple(resource or standard.resources),
        kubeconfig=kubeconfig,
        kubelet=kubelet_dir,
        hook=hook_path,
        devices=device_dir,
        cdi=cdi_dir if cdi else None,
        nvml=nvml_library,
        cut=Cut(split, memory_scaling),
        ignored_xids=standard.ignored_xids if ignore_xid is None else frozenset(ignore_xid),
        paces=paces,
        watch=watch if keep else None,
    )
    try:
        asyncio.run(_run(options, address("--listen-address", listen_address)))
    except CgroupError as error:
        fail(f"{error}. Without cgroups: --no-keep, and only the library holds containers to their slices")
    except (NoServer, InstallError, OSError) as error:
        fail(str(error))


async def _run(options: Options, listening: Address | None) -> None:
    async with await Server.connect(options.kubeconfig) as server:
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
