"""``volcano-py playground``: a cluster without machines, until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.markup import escape

from volcano_py.cli.node_options import NodeOptions
from volcano_py.cli.option_groups import grouped
from volcano_py.simulator.playground.playground import Playground, PlaygroundError, Wishes

_MANIFESTS: Final = Path("examples/playground")


@grouped
def playground(
    each: NodeOptions,
    nodes: Annotated[int, typer.Option("--nodes", min=0, max=20000, help="Pretend nodes.")] = 4,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Folder that keeps the cluster; else it is gone at the end."),
    ] = None,
    port: Annotated[
        int,
        typer.Option("--port", min=0, max=65535, help="Of the API server; 0: the last one or a free one."),
    ] = 0,
    kubeconfig: Annotated[
        Path | None, typer.Option("--kubeconfig", help="Write the kubeconfig here, not into the folder.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--for", min=0, help="Stop after so many seconds; else at Ctrl-C.")
    ] = None,
) -> None:
    """Run an API server, pretend nodes, the controllers and the scheduler on this machine.

    No Docker, no cluster: any Kubernetes client works with it.
    It listens on 127.0.0.1 only, and asks for the token in its kubeconfig.

    Example: [bold]volcano-py playground --nodes 4 --gpus 8 --data build/playground[/bold]
    """
    wishes = Wishes(nodes, each.shape(), data, port, kubeconfig)
    console = _Terminal(highlight=False)
    try:
        asyncio.run(_run(wishes, seconds, console))
    except PlaygroundError as error:
        sys.stderr.write(f"error: {error}\n")
        raise typer.Exit(1) from None


class _Terminal(Console):
    """A console that falls silent where nobody reads it any more; the playground goes on."""

    def on_broken_pipe(self) -> None:
        """Write to nowhere from now on."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _run(wishes: Wishes, seconds: float | None, console: Console) -> None:
    """Up, until a signal or the time is over, down."""
    asked = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, asked.set)
    play = Playground(wishes, lambda line: console.print(f"  {escape(line)}"))
    console.print(f"playground in {play.folder.root}", style="bold")
    try:
        if not await _first(play.up(), asked.wait()):
            await _stay(play, asked, seconds, console)
    finally:
        await play.down()
    kept = f"; {play.folder.root} keeps the cluster" if play.folder.is_kept else ""
    console.print(f"stopped{kept}")


async def _stay(play: Playground, asked: asyncio.Event, seconds: float | None, console: Console) -> None:
    """Watch over the parts until a signal, the end of the time, or an error."""
    _next_steps(play, console)
    watching, asking = asyncio.create_task(play.watch()), asyncio.create_task(asked.wait())
    await asyncio.wait([watching, asking], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    console.print("stopping")
    await _end(watching, asking)


async def _end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel *tasks*; an error of one that had ended by itself is raised."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _first(work: Awaitable[None], asked: Awaitable[bool]) -> bool:
    """Whether *asked* came before *work* was done; what is not done is cancelled.

    Raises:
        PlaygroundError: *work* did.
    """
    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(asked)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    is_done = tasks[0].done()
    for task in tasks:
        task.cancel()
    if is_done:
        tasks[0].result()
    else:
        with contextlib.suppress(asyncio.CancelledError):
            await tasks[0]
    return not is_done


def _next_steps(play: Playground, console: Console) -> None:
    lines = [f"export KUBECONFIG={play.kubeconfig}", "kubectl get nodes"]
    if _MANIFESTS.is_dir():
        lines += [
            f"kubectl apply -f {_MANIFESTS}/queues.yaml -f {_MANIFESTS}/gang.yaml",
            "kubectl get podgroups,pods -A -o wide",
            f"{_program('vcctl-py')} explain podgroup train -n research",
        ]
    console.print(f"logs of the parts: {play.folder.logs}\n", soft_wrap=True)
    console.print("In another terminal:", style="bold")
    for line in lines:
        console.print(f"  {line}", soft_wrap=True)
    console.print("\nCtrl-C stops it.")


def _program(name: str) -> str:
    """How to call a program of ours from here: by its name where the shell finds it, else by its path."""
    ours = Path(sys.executable).parent / name
    if shutil.which(name):
        return name
    return str(ours.relative_to(Path.cwd())) if ours.is_relative_to(Path.cwd()) else str(ours)
