"""``volcano-py plugins``: which plugins and actions there are, and what arguments they take."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from volcano_py.scheduler.framework.registry import (
    BUILT_IN_ACTIONS,
    BUILT_IN_PLUGINS,
    known_actions,
    known_plugins,
)


class Form(StrEnum):
    """How the list is printed."""

    table = "table"
    json = "json"


def plugins(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One of them, with its arguments.")
    ] = None,
    output: Annotated[Form, typer.Option("-o", "--output", help="Form of what is printed.")] = Form.table,
) -> None:
    """List plugins and actions, built in or installed, with what they decide.

    For example:

      volcano-py plugins

      volcano-py plugins proportion
    """
    found = [_describe("plugin", n, where) for n, where in sorted(known_plugins().items())]
    found += [_describe("action", n, where) for n, where in sorted(known_actions().items())]
    if name is not None:
        found = [entry for entry in found if entry["name"] == name]
        if not found:
            names = ", ".join(sorted({*known_plugins(), *known_actions()}))
            sys.stderr.write(f"error: there is no plugin or action {name!r}; there are {names}\n")
            raise typer.Exit(2)
    if output is Form.json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        return
    console = Console(highlight=False)
    for entry in found if name is not None else ():
        console.print(f"[bold]{entry['name']}[/] ({entry['kind']}, {entry['origin']})\n{entry['decides']}")
    console.print(_arguments(found[0]) if name is not None else _overview(found))


def _describe(kind: str, name: str, where: str) -> dict[str, Any]:
    """Its first line, arguments and origin, out of its own code."""
    module, _, attribute = where.partition(":")
    loaded = import_module(module)
    target = getattr(loaded, attribute)
    built_in = BUILT_IN_PLUGINS if kind == "plugin" else BUILT_IN_ACTIONS
    text = (loaded.__doc__ or "").strip().split("\n\n")[0].replace("\n", " ").replace("``", "")
    return {
        "name": name,
        "kind": kind,
        "origin": "built in" if name in built_in else f"from {module}",
        "decides": text.partition(": ")[2] or text,
        "arguments": dict(target.ARGUMENTS),
    }


def _overview(found: list[dict[str, Any]]) -> Table:
    caption = "volcano-py plugins NAME shows the arguments of one"
    table = Table("name", "kind", "decides", "arguments", caption=caption)
    for entry in found:
        table.add_row(entry["name"], entry["kind"], entry["decides"], str(len(entry["arguments"])))
    return table


def _arguments(entry: dict[str, Any]) -> Table:
    table = Table("argument", "meaning")
    for key, line in entry["arguments"].items():
        table.add_row(key, line)
    return table
