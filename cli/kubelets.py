"""``volcano-py kubelets``: pretend nodes on an API server, real or embedded, until Ctrl-C."""

from __future__ import annotations

import asyncio
import math
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated

import typer

from volcano_py.cli.node_options import NodeOptions
from volcano_py.cli.option_groups import grouped
from volcano_py.client.api import AccessError, Api, ApiError, Unreachable
from volcano_py.simulator.kubelet.kubelets import Kubelets
from volcano_py.simulator.kubelet.play import PLAYING, play
from volcano_py.simulator.volumes.plan import PROVISIONER


@grouped
def kubelets(
    each: NodeOptions,
    nodes: Annotated[
        int,
        typer.Option(
            "--nodes", min=0, max=20000, help="Nodes to make; pretend ones that are there are played too."
        ),
    ] = 4,
    kubeconfig: Annotated[
        str | None, typer.Option("--kubeconfig", help="Of the API server; else $KUBECONFIG.")
    ] = None,
    context: Annotated[str | None, typer.Option("--context", help="Of the kubeconfig.")] = None,
    leases: Annotated[
        bool, typer.Option("--leases/--no-leases", help="Renew the nodes' leases, for a node controller.")
    ] = True,
    leases_per_second: Annotated[
        float | None,
        typer.Option(
            "--leases-per-second",
            min=0.1,
            help="Renew no more a second, where no node controller looks; else each node every 10 s.",
        ),
    ] = None,
    volumes: Annotated[
        bool,
        typer.Option(
            "--volumes", help=f"Make volumes for claims whose class has the provisioner {PROVISIONER}."
        ),
    ] = False,
    in_flight: Annotated[int, typer.Option("--in-flight", min=1, help="Requests at once.")] = 16,
) -> None:
    """Make pretend nodes and run the pods that are bound to them, by script.

    A pod runs until it is deleted, or as its annotations under [bold]playground.volcano-py.io/[/bold] say:
    run-seconds, exit-code, start-delay-seconds, log, ignore-sigterm-seconds.
    """
    work = partial(
        play,
        nodes=nodes,
        shape=each.shape(),
        in_flight=in_flight,
        leases_per_s=(leases_per_second or math.inf) if leases else 0.0,
        volumes=volumes,
        ready=_say_ready,
    )
    try:
        asyncio.run(_run(kubeconfig, context, work))
    except (AccessError, ApiError, Unreachable) as error:
        sys.stderr.write(f"error: {error}\n")
        raise typer.Exit(1) from None


def _say_ready(kubelets: Kubelets) -> None:
    del kubelets  # it has only just begun to read
    print(PLAYING, flush=True)


async def _run(kubeconfig: str | None, context: str | None, work: Callable[[Api], Awaitable[None]]) -> None:
    async with await Api.connect(kubeconfig, context, agent="volcano-py-kubelets") as api:
        playing = asyncio.ensure_future(work(api))
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, playing.cancel)
        await asyncio.wait([playing])
        if not playing.cancelled():
            playing.result()
