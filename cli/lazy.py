"""Groups of commands that import a command when it is called, and say what a mistyped one may have meant."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from importlib import import_module
from inspect import cleandoc
from typing import Any, ClassVar, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command as as_command

LONGEST_IN_TABLE: Final = 20
"""Characters of options' names for which a table of 80 has room."""


class NearMissGroup(TyperGroup):
    """A group whose unknown verbs are answered with the closest known one.

    ``spellings`` of a subclass are other names of its commands, such as plurals.
    """

    spellings: ClassVar[dict[str, str]] = {}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that *args* begin with; other spellings of it are tried first."""
        if args and args[0] in self.spellings:
            args = [self.spellings[args[0]], *args[1:]]
        known = self.list_commands(ctx)
        if args and args[0] not in known:
            close = get_close_matches(args[0], [*known, *self.spellings], n=1)
            hint = f' (did you mean "{close[0]}"?)' if close else f"; there are {', '.join(known)}"
            ctx.fail(f'there is no command "{args[0]}"{hint}')
        return super().resolve_command(ctx, args)


class Command(TyperCommand):
    """A command whose help has its options in a table, or one below the other where names are long.

    A table cuts names off on a narrow terminal, and two that begin alike look the same.
    """

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Usage, what it does, options."""
        if sum(self._columns()) > LONGEST_IN_TABLE:
            self.rich_markup_mode = None
        super().format_help(ctx, formatter)

    def _columns(self) -> Iterator[int]:
        """Widths of the columns of names: what is switched off has one of its own."""
        for names in ([each.opts for each in self.params], [each.secondary_opts for each in self.params]):
            yield max((len(name) for some in names for name in some), default=0)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """What it does, line by line as it is written."""
        from rich.text import Text  # noqa: PLC0415 - 40 ms, and help alone needs it

        said = Text.from_markup(cleandoc(self.help or "")).plain
        formatter.write_paragraph()
        formatter.write("".join(f"  {line}".rstrip() + "\n" for line in said.split("\n")))


class LazyGroup(NearMissGroup):
    """Commands by name; only the one that is called is imported.

    Subclasses name them: ``commands_by_name`` is name -> (module:function or module:app, line of help), and
    ``panels`` name -> heading in the help.
    """

    commands_by_name: ClassVar[dict[str, tuple[str, str]]] = {}
    panels: ClassVar[dict[str, str]] = {}
    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order people meet them."""
        return list(self.commands_by_name)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command *cmd_name*; while help is being listed, its line of help only."""
        if cmd_name not in self.commands_by_name:
            return None
        where, line = self.commands_by_name[cmd_name]
        if self._listing:
            return _stub(cmd_name, line, self.panels.get(cmd_name))
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
    app.command(name, cls=Command)(function)
    return app


def _stub(name: str, line: str, panel: str | None) -> Any:
    def nothing() -> None:
        """Stands for a command while help is listed."""

    command = as_command(_single(name, nothing))
    command.help = command.short_help = line
    command.rich_help_panel = panel  # type: ignore[attr-defined] # of the command that typer makes
    return command
