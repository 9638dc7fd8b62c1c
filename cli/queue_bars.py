"""Queues as a table with bars: what each holds, against what it is entitled to and what it may reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich import box
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from volcano_py.cli.card_lines import amount, lines
from volcano_py.crds.quantity import to_base

Data = Mapping[str, Any]
BAR: Final = 10
"""Cells of a bar; the whole is the queue's max, or its entitlement or what it holds where that is more."""
BLOCKS: Final = ("█", "░", "│")
"""Held, free, and the mark of the entitlement."""
ASCII: Final = ("#", ".", "|")
_KEYS: Final = ("allocated", "deserved", "entitlement", "max")
"""Of a queue's data, in the order of the columns. More than its entitlement is borrowed."""
_BAR_KEYS: Final = ("allocated", "entitlement", "max")


def queue_table(queues: Sequence[Data], *, plain: bool = False) -> Table | None:
    """One block a queue, one line a resource it holds, deserves or is limited in; idle queues are short.

    Args:
        queues: data of ``plan_report``.
        plain: the output takes ASCII only.
    """
    if not queues:
        return None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    for column in ("QUEUE", "RESOURCE", "USE"):
        table.add_column(column, overflow="fold")
    for column in ("HOLDS", "DESERVES", "ENTITLED", "MAX"):
        table.add_column(column, justify="right", overflow="fold")
    for queue in queues:
        _block(table, queue, ASCII if plain else BLOCKS)
    return table


def _block(table: Table, queue: Data, signs: tuple[str, str, str]) -> None:
    name = Text.assemble((queue["name"], "bold"), _state(queue))
    resources = lines(_resources(queue))
    if not resources:
        table.add_row(name, "", "", "-", "-", "-", "-")
    for place, (resource, label) in enumerate(resources.items()):
        holds, owns, most = (_base(resource, queue[key].get(resource)) for key in _BAR_KEYS)
        over = resource in queue["over"]
        style = "yellow" if over else "green" if holds else "dim"
        told = [_told(label, resource, queue[key].get(resource)) for key in _KEYS]
        table.add_row(
            name if place == 0 else "",
            escape(label),
            Text(usage_bar(holds, owns, most, signs), style),
            Text("0" if told[0] == "-" else told[0], "yellow" if over else ""),
            *told[1:],
        )
    if queue["problem"]:
        table.add_row("", Text(queue["problem"], "red"))


def usage_bar(held: int, owed: int, most: int, signs: tuple[str, str, str] = ASCII, width: int = BAR) -> str:
    """A bar of what is *held*, with a mark at what is *owed*, on a scale up to *most*; amounts in base units.

    Args:
        held: something is never shown as nothing.
        owed: 0: no mark.
        most: 0: nothing bounds the queue, the larger of the others is the whole.
        signs: held, free, mark.
        width: cells.
    """
    full, free, mark = signs
    whole = max(most, held, owed)
    if whole == 0:
        return free * width
    cells = -(-held * width // whole)
    bar = [full] * cells + [free] * (width - cells)
    if 0 < owed < whole:
        bar[min(owed * width // whole, width - 1)] = mark
    return "".join(bar)


def _state(queue: Data) -> str:
    notes = [] if queue["state"] == "Open" else [queue["state"].lower()]
    if queue["parent"]:
        notes.append(f"in {queue['parent']}")
    return f" ({', '.join(notes)})" if notes else ""


def _resources(queue: Data) -> list[str]:
    """Resources worth a line: held, deserved, or limited by the queue itself; pods only where limited."""
    told = {
        resource: None
        for key in ("allocated", "deserved", "max")
        for resource, amount in queue[key].items()
        if amount != "0" or key == "max"
    }
    return [resource for resource in told if resource != "pods" or "pods" in queue["max"]]


def _told(label: str, resource: str, text: str | None) -> str:
    return "-" if text is None else amount(label, resource, text)


def _base(resource: str, text: str | None) -> int:
    return 0 if text is None else to_base(resource, text)
