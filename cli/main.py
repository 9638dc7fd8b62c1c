"""``volcano-py``: the components and tools, one command each.

Commands are imported when they are called, so that ``--help`` and a typo answer at once. A command is a
typed function in a module of its own; this file only knows their names.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, ClassVar, Final

import typer

from volcano_py.cli.lazy import LazyGroup

COMMANDS: Final = {
    "scheduler": ("volcano_py.cli.scheduler:scheduler", "Schedule the pods of a cluster (a component)."),
    "controller": ("volcano_py.cli.controller:controller", "Make PodGroups, keep queues (a component)."),
    "agent": ("volcano_py.cli.agent:agent", "Hand out slices of a node's cards (a component)."),
    "plan": ("volcano_py.cli.plan:plan", "What the scheduler would do with manifests, and why."),
    "simulate": ("volcano_py.cli.simulate:app", "Replay a published trace through the engine."),
    "bench": ("volcano_py.cli.bench:bench", "Time decisions on known shapes of clusters."),
    "demo": ("volcano_py.cli.demo:demo", "A gang, shared cards, a borrow and a reclaim, in a minute."),
    "playground": ("volcano_py.cli.playground:playground", "A cluster without machines, for trying."),
    "kubelets": ("volcano_py.cli.kubelets:kubelets", "Pretend nodes on any API server."),
    "plugins": (
        "volcano_py.cli.plugins:plugins",
        "Which plugins and actions there are, with their arguments.",
    ),
}
"""Name -> (module:function or module:app, one line of help)."""


class Commands(LazyGroup):
    """What ``volcano-py`` can do."""

    commands_by_name: ClassVar = COMMANDS


app = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_enable=False)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"volcano-py {version('volcano-py')}")
        raise typer.Exit


@app.callback()
def top(
    _version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_tell_version, help="Say which version this is."),
    ] = False,
) -> None:
    """volcano-py: a batch scheduler for Kubernetes.

    To try it: [bold]volcano-py demo[/bold], [bold]volcano-py playground[/bold].
    Without a cluster: [bold]volcano-py plan -f examples/sharing[/bold].
    What a cluster holds, and why: [bold]vcctl-py --help[/bold].
    """


def main() -> None:
    """Entry point of the console script."""
    app()


if __name__ == "__main__":
    main()
