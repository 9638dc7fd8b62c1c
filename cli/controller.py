"""``volcano-py controller``: PodGroups for plain pods, and the state of queues, until it is stopped."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from volcano_py.cli.component import Format, Level, LogFormat, LogLevel, address, failed
from volcano_py.client.api import AccessError
from volcano_py.controllers.keys import DEFAULT_QUEUE
from volcano_py.controllers.operator import Operator
from volcano_py.controllers.options import Election, Options
from volcano_py.controllers.podgroup.build import Rules
from volcano_py.controllers.reconciler import Limits
from volcano_py.scheduler.run.logs import set_up_logs


def controller(
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option("--scheduler-name", help="Whose pods get PodGroups. [default: volcano-py, volcano]"),
    ] = None,
    kubeconfig: Annotated[
        str | None, typer.Option("--kubeconfig", help="Of the API server; else $KUBECONFIG.")
    ] = None,
    context: Annotated[str | None, typer.Option("--context", help="Of the kubeconfig.")] = None,
    default_queue: Annotated[
        str,
        typer.Option("--default-queue", help="Queue of pods that name none; it is made where it is missing."),
    ] = DEFAULT_QUEUE,
    inherit_owner_annotations: Annotated[
        bool,
        typer.Option(
            "--inherit-owner-annotations/--no-inherit-owner-annotations",
            help="Whether annotations of ReplicaSets and the like count for their pods' PodGroup.",
        ),
    ] = True,
    leader_elect: Annotated[
        bool,
        typer.Option(
            "--leader-elect/--no-leader-elect",
            help="Wait for a Lease before acting, so that several may run.",
        ),
    ] = True,
    lease_namespace: Annotated[
        str, typer.Option("--lease-namespace", help="Where the Lease is; it must exist.")
    ] = "volcano-system",
    lease_name: Annotated[str, typer.Option("--lease-name", help="Name of the Lease.")] = (
        "volcano-py-controller"
    ),
    listen_address: Annotated[
        str, typer.Option("--listen-address", help="/metrics, /healthz and /readyz; 0 for none.")
    ] = ":8081",
    workers: Annotated[int, typer.Option("--workers", min=1, help="Keys looked at at once.")] = 8,
    log_level: Level = LogLevel.info,
    log_format: Format = LogFormat.json,
) -> None:
    """Make PodGroups for pods that have none, open and close queues, count their groups.

    Example: [bold]volcano-py controller --kubeconfig ~/.kube/config --lease-namespace default[/bold]
    """
    set_up_logs(level=log_level.value, form=log_format.value)
    options = Options(
        kubeconfig=kubeconfig,
        context=context,
        scheduler_names=tuple(scheduler_name or Options().scheduler_names),
        rules=Rules(inherit_owner_annotations, default_queue),
        election=Election(lease_namespace, lease_name) if leader_elect else None,
        listening=address("--listen-address", listen_address),
        limits=Limits(workers=workers),
    )
    try:
        asyncio.run(_run(options))
    except (AccessError, OSError) as error:
        failed(error, "--listen-address")


async def _run(options: Options) -> None:
    operator = Operator(options)
    operator.stop_on_signals()
    await operator.run()
