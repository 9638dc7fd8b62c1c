"""``volcano-py``: the components and tools, one command each.

Commands are imported when they are called, so that ``--help`` and a typo answer at once. A command is a
typed function in a module of its own; this file only knows their names.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command as as_command

COMMANDS: Final = {
    "scheduler": ("volcano_py.cli.scheduler:scheduler", "Schedule the pods of a cluster."),
    "controller": ("volcano_py.cli.controller:controller", "Make PodGroups, keep queues."),
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


class LazyGroup(TyperGroup):
    """Commands by name; only the one that is called is imported."""

    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order people meet them."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command *cmd_name*; while help is being listed, its line of help only."""
        if cmd_name not in COMMANDS:
            return None
        where, line = COMMANDS[cmd_name]
        if self._listing:
            return _stub(cmd_name, line)
        module, _, name = where.partition(":")
        target = getattr(import_module(module), name)
        return as_command(target if isinstance(target, typer.Typer) else _single(cmd_name, target))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Help without importing what it lists."""
        self._listing = True
        super().format_help(ctx, formatter)
        self._listing = False


def _single(name: str, function: Any) -> typer.Typer:
    app = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
    app.command(name)(function)
    return app


def _stub(name: str, line: str) -> Any:
    def nothing() -> None:
        """Stands for a command while help is listed."""

    command = as_command(_single(name, nothing))
    command.help = command.short_help = line
    return command


app = typer.Typer(
    cls=LazyGroup, no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_enable=False
)


@app.callback()
def top() -> None:
    """volcano-py: a batch scheduler for Kubernetes, off-line.

    Example: [bold]volcano-py plan -f examples/sharing[/bold]
    """


def main() -> None:
    """Entry point of the console script."""
    app()


if __name__ == "__main__":
    main()
