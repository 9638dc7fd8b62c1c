"""Objects on the screen: tables as kubectl prints them, JSON, YAML, names, and what changes.

A table never wraps or cuts a cell: what a program reads must be whole, and a terminal wraps by itself.
Columns stand apart by two blanks; colour only where the output is a terminal.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from volcano_py.cli.output import dump
from volcano_py.cli.vcctl.cluster import USAGE, Cluster, CommandError, Document
from volcano_py.cli.vcctl.flags import Flags, Form
from volcano_py.cli.vcctl.watching import REDRAW_S, SEEN, changes
from volcano_py.crds.times import parse_time_s

Cell = str | Text
Row = tuple[Cell, ...]
AGE: Final = "Age"
"""The heading of the column that changes while nothing happens."""
GAP: Final = "  "
STYLES: Final = {
    "Running": "green", "Open": "green", "Ready": "green", "Completed": "dim", "Succeeded": "dim",
    "Succeed": "dim", "Pending": "yellow", "Inqueue": "yellow", "Closing": "yellow", "Restarting": "yellow",
    "Terminating": "yellow", "Closed": "red", "Failed": "red", "Unknown": "red", "Aborted": "red",
    "Terminated": "red", "Held": "magenta",
}  # fmt: skip
"""Words that say how something stands, in their colours."""
_SPANS: Final = ((86400, "d"), (3600, "h"), (60, "m"))


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its heading, what stands there for a document, and whether only ``-o wide`` shows it."""

    head: str
    cell: Callable[[Any], object]
    wide: bool = False


def table(columns: Sequence[Column], items: Iterable[Any], flags: Flags) -> list[Row]:
    """Heading and one row an item."""
    shown = [column for column in columns if flags.output is Form.wide or not column.wide]
    head: Row = tuple(Text(column.head, "dim") for column in shown)
    return [head, *(tuple(cell(column.cell(item)) for column in shown) for item in items)]


def cell(value: object) -> Cell:
    """*value* as it stands in a table; words of state in their colour."""
    if isinstance(value, Text):
        return value
    text = "" if value is None else str(value)
    return Text(text, STYLES[text]) if text in STYLES else text


def print_rows(rows: Sequence[Row], widths: list[int] | None = None) -> list[int]:
    """Print *rows* aligned; returns the widths of the columns, for rows that follow."""
    found = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))] if rows else []
    wide = [max(pair) for pair in zip(found, widths or found, strict=True)]
    console = out()
    for row in rows:
        line = Text()
        for place, value in enumerate(row):
            last = place == len(row) - 1
            line.append_text(value if isinstance(value, Text) else Text(value))
            if not last:
                line.append(" " * (wide[place] - len(str(value))) + GAP)
        line.rstrip()
        console.print(line)
    return wide


def out() -> Console:
    """Where people read; never wrapped, never marked up."""
    return Console(highlight=False, markup=False, soft_wrap=True, emoji=False)


def say(text: str) -> None:
    """One line for people."""
    sys.stdout.write(f"{text}\n")


def names(items: Iterable[Document]) -> str:
    """``queue.scheduling.volcano.sh/ml`` for each, as kubectl writes them."""
    lines = []
    for item in items:
        group = str(item["apiVersion"]).rpartition("/")[0]
        kind = str(item["kind"]).lower()
        lines.append(f"{kind}.{group}/" if group else f"{kind}/")
        lines.append(f"{item['metadata']['name']}\n")
    return "".join(lines)


def print_objects(
    flags: Flags, columns: Sequence[Column], items: list[Document], *, one: bool = False
) -> None:
    """Print *items* in the form that was asked for; *one* is not a list but its only object."""
    if flags.output is Form.name:
        sys.stdout.write(names(items))
    elif flags.for_programs:
        plain = [without_managed_fields(item) for item in items]
        whole = plain[0] if one else {"apiVersion": "v1", "kind": "List", "items": plain}
        sys.stdout.write(dump(whole, flags.output.value))
    elif items:
        print_rows(table(columns, items, flags))
    else:
        sys.stderr.write("No resources found.\n")


def print_data(flags: Flags, data: Any) -> bool:
    """Print an answer as JSON or YAML, if that was asked for. Raises ``CommandError`` on ``-o name``."""
    if flags.output is Form.name:
        raise CommandError("-o name is for objects; use -o json or -o yaml", code=USAGE)
    if flags.for_programs:
        sys.stdout.write(dump(data, flags.output.value))
    return flags.for_programs


def without_managed_fields(document: Document) -> Document:
    """*document* without the server's notes on who wrote which field, which kubectl hides as well."""
    meta = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    return {**document, "metadata": meta}


async def show(
    cluster: Cluster,
    columns: Sequence[Column],
    listed: Callable[[], Awaitable[list[Document]]],
    watched: Sequence[str],
) -> None:
    """Print what *listed* gives, and with ``--watch`` every row or object that changes, until interrupted.

    Args:
        cluster: where the objects are.
        columns: of the table.
        listed: lists the objects, with everything that their columns need.
        watched: kinds whose changes may change a row; the first is the one that is listed.
    """
    flags = cluster.flags
    items = await listed()
    if not flags.watch:
        print_objects(flags, columns, items)
        return
    if flags.for_programs:
        await _stream(cluster, items, listed, watched)
        return
    rows = table(columns, items, flags)
    widths = print_rows(rows)
    before = set(without_age(rows))
    async for _ in changes(cluster, watched):
        rows = table(columns, await listed(), flags)
        now = without_age(rows)
        new = [row for row, told in zip(rows, now, strict=True) if told not in before]
        if new:
            widths = print_rows(new, widths)
            sys.stdout.flush()
        before = set(now)


async def _stream(
    cluster: Cluster,
    items: list[Document],
    listed: Callable[[], Awaitable[list[Document]]],
    watched: Sequence[str],
) -> None:
    """*items* one by one, and each that changes, as kubectl has them: no list is ever complete."""
    _print_each(cluster.flags, items)
    before = dict(map(_keyed, items))
    async for _ in changes(cluster, watched):
        items = await listed()
        _print_each(cluster.flags, [item for item in items if before.get(_keyed(item)[0]) != item])
        before = dict(map(_keyed, items))


def _print_each(flags: Flags, items: Iterable[Document]) -> None:
    for item in items:
        sys.stdout.write("---\n" if flags.output is Form.yaml else "")
        print_objects(flags, (), [item], one=True)
    sys.stdout.flush()


def _keyed(item: Document) -> tuple[tuple[str, str], Document]:
    meta = item["metadata"]
    return (meta.get("namespace", ""), meta["name"]), item


async def drawn(cluster: Cluster, draw: Callable[[Cluster], Awaitable[None]]) -> None:
    """Draw the cluster once, and with ``--watch`` again after changes, until interrupted.

    On a terminal each picture takes the place of the one before.
    """
    flags = cluster.flags
    if flags.watch and flags.for_programs:
        raise CommandError("--watch prints tables: leave out -o", code=USAGE)
    await draw(cluster)
    if not flags.watch:
        return
    whole = Cluster(cluster.api, replace(flags, all_namespaces=True))
    sys.stdout.flush()
    async for _ in changes(whole, SEEN):
        out().clear()  # of a terminal; elsewhere it does nothing
        await draw(cluster)
        sys.stdout.flush()
        await asyncio.sleep(REDRAW_S)


def without_age(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """What *rows* (the heading first) say apart from their age, which changes by itself."""
    shown = [at for at, head in enumerate(rows[0]) if str(head) != AGE]
    return [tuple(str(row[at]) for at in shown) for row in rows]


def age(document: Document) -> str:
    """How long ago it was made, as kubectl says it (5s, 3m, 4h, 12d)."""
    made = document["metadata"].get("creationTimestamp")
    return span(time.time() - parse_time_s(made)) if made else "<unknown>"


def counted(amount: int, noun: str) -> str:
    """``1 pod``, ``2 pods``."""
    return f"{amount} {noun}{'' if amount == 1 else 's'}"


def span(seconds: float) -> str:
    """A time span in its largest unit."""
    for size, unit in _SPANS:
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(int(seconds), 0)}s"
