"""A plan for people: what starts where, who goes for whom, how queues stand, why the rest waits.

``print_plan`` takes the data of ``simulator.report`` (with ``errors`` and ``warnings`` of
``simulator.planning``); ``dump`` writes any such data for programs. Colours and styles are the console's
affair: it leaves them out where the output is no terminal.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import yaml
from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from volcano_py.cli.queue_bars import queue_table

Data = Mapping[str, Any]
MOST_BINDS: Final = 12
"""Binds listed one by one; more are summed up by group."""
MOST_NODES: Final = 4
"""Nodes named in a summary."""
MOST_PODS: Final = 3
"""Pods named where many wait for the same reason."""
_PHASE_STYLE: Final = {
    "Running": "green",
    "Completed": "dim",
    "Inqueue": "yellow",
    "Pending": "yellow",
    "Unknown": "red",
}


def dump(data: Any, fmt: Literal["json", "yaml"] | str) -> str:
    """*data* as JSON or YAML, keys in the order they are in.

    Raises:
        ValueError: another *fmt*.
    """
    if fmt == "json":
        return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    if fmt == "yaml":
        return yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    raise ValueError(f"unknown form {fmt!r}; known forms: json, yaml")


def print_plan(report: Data, console: Console, *, wide: bool = False) -> None:
    """Print *report* in sections; empty ones are left out.

    Args:
        report: data of ``plan_report``; ``errors`` and ``warnings`` may be missing.
        console: where to; its width is kept.
        wide: list every bind and every waiting pod.
    """
    if not report["podGroups"] and not report["decisions"] and report.get("errors"):
        report = {**report, "queues": ()}  # nothing came in: a table of empty queues would hide that
    sections = [
        ("Starts", _binds(report, wide=wide)),
        ("Room kept, for when the pods that are leaving are gone", _reservations(report)),
        ("Evictions", _evictions(report)),
        ("Queues", queue_table(report["queues"], plain=console.options.ascii_only)),
        ("Pod groups", _groups(report["podGroups"])),
        ("Waiting", _pending(_without_room(report), wide=wide)),
        ("Errors", _faults(report.get("errors", ()), "red")),
        ("Warnings", _faults(report.get("warnings", ()), "yellow")),
    ]
    for title, body in sections:
        if body is not None:
            console.print(Text(title, "bold"))
            console.print(Padding(body, (0, 0, 1, 2), expand=False))
    console.print(_summary(report))


def _summary(report: Data) -> Text:
    counts = Counter(decision["kind"] for decision in report["decisions"])
    cycles = report["cycles"]
    line = f"{counts['bind']} started, {counts['evict']} evicted, {len(report['pending'])} waiting"
    errors = len(report.get("errors", ()))
    if errors:
        line += f", {errors} error" + ("s" if errors > 1 else "")
    return Text(f"{line} after {cycles} cycle" + ("s" if cycles != 1 else ""), "bold")


# -- decisions ----------------------------------------------------------------------------------


def _binds(report: Data, *, wide: bool) -> RenderableType | None:
    binds = [decision for decision in report["decisions"] if decision["kind"] == "bind"]
    if not binds:
        return None
    if not wide and len(binds) > MOST_BINDS:
        return _by_group(binds)
    cycles = report["cycles"] > 1
    table = _table(*(["CYCLE"] if cycles else []), "POD", "NODE", "CARDS", "BY")
    for bind in binds:
        cells = [bind["pod"], bind["node"], _cards(bind["slices"]), bind["action"]]
        table.add_row(*_plain([str(bind["cycle"]), *cells] if cycles else cells))
    return _without_empty(table)


def _by_group(binds: list[Data]) -> RenderableType:
    """One line a group: ``ml/serve: 6 pods -> gpu-0 x3, gpu-2 x3``."""
    groups: dict[str, Counter[str]] = {}
    for bind in binds:
        groups.setdefault(bind["podGroup"] or bind["pod"], Counter())[bind["node"]] += 1
    lines = [
        Text(f"{name}: {_pods(nodes.total())} -> {_most(nodes, MOST_NODES, 'nodes')}")
        for name, nodes in groups.items()
    ]
    return Group(*lines, Text("(-o wide lists every pod)", "dim"))


def _kept(report: Data) -> list[Data]:
    """Promises of room that the last cycle left."""
    return [
        decision
        for decision in report["decisions"]
        if decision["kind"] == "pipeline" and decision["cycle"] == report["cycles"]
    ]


def _without_room(report: Data) -> dict[str, Data]:
    """Pods that wait and have no room promised: those with room are told of above."""
    kept = {decision["pod"] for decision in _kept(report)}
    return {pod: refusal for pod, refusal in report["pending"].items() if pod not in kept}


def _reservations(report: Data) -> RenderableType | None:
    kept = _kept(report)
    if not kept:
        return None
    table = _table("POD", "NODE", "CARDS", "BY")
    for decision in kept:
        cells = (decision["pod"], decision["node"], _cards(decision["slices"]), decision["action"])
        table.add_row(*_plain(cells))
    return _without_empty(table)


def _evictions(report: Data) -> RenderableType | None:
    """Every eviction in full: nobody loses a pod without being told for whom and why."""
    evicted = [decision for decision in report["decisions"] if decision["kind"] == "evict"]
    if not evicted:
        return None
    blocks: list[RenderableType] = []
    for decision in evicted:
        blocks.append(Text.assemble((decision["pod"], "red"), f" on {decision['node']}"))
        facts = (
            ("for", decision["forWhom"]),
            ("why", decision["reason"].removeprefix(f"{decision['action']}: ")),
            ("lost", decision["lost"]),
            ("by", decision["action"]),
        )
        rows = Table.grid(padding=(0, 1))
        rows.add_column(style="dim", no_wrap=True)
        rows.add_column(overflow="fold")
        for name, value in facts:
            if value:
                rows.add_row(name, escape(value))
        blocks.append(Padding(rows, (0, 0, 0, 2), expand=False))
    return Group(*blocks)


def _cards(slices: Iterable[Data]) -> str:
    """``main: card 0 (4096 MiB, 50 %)``."""
    return ", ".join(
        f"{part['container']}: card {part['card']} ({part['memory']} MiB, {part['cores']} %)"
        for part in slices
    )


# -- groups and what waits ----------------------------------------------------------------------


def _groups(groups: list[Data]) -> RenderableType | None:
    if not groups:
        return None
    table = _table("POD GROUP", "QUEUE", "PHASE", "NEEDS", "PODS")
    for group in groups:
        pods = ", ".join(f"{count} {status.lower()}" for status, count in group["pods"].items())
        phase = Text(group["phase"], _PHASE_STYLE.get(group["phase"], ""))
        name, queue, pods = _plain((group["name"], group["queue"], pods or "none"))
        table.add_row(name, queue, phase, str(group["minMember"]), pods)
    return table


def _pending(pending: Mapping[str, Data], *, wide: bool) -> RenderableType | None:
    """Reasons, the commonest first, each with how many wait for it and who."""
    if not pending:
        return None
    waiting: dict[str, list[str]] = {}
    for pod, refusal in pending.items():
        waiting.setdefault(refusal["reason"], []).append(pod)
    blocks: list[RenderableType] = []
    for reason, pods in sorted(waiting.items(), key=lambda item: (-len(item[1]), item[0])):
        shown = pods if wide else pods[:MOST_PODS]
        more = f" and {len(pods) - len(shown)} more" if len(shown) < len(pods) else ""
        blocks.append(Text.assemble((_pods(len(pods)), "yellow"), f": {', '.join(shown)}{more}"))
        blocks.append(Padding(Text(reason, overflow="fold"), (0, 0, 0, 2), expand=False))
    return Group(*blocks)


def _faults(faults: Iterable[Data], style: str) -> RenderableType | None:
    lines = [_fault(fault, style) for fault in faults]
    return Group(*lines) if lines else None


def _fault(fault: Data, style: str) -> Text:
    """``jobs.yaml:12: Pod ml/a: spec.x: message``, as far as it is known."""
    file, line = fault.get("file", ""), fault.get("line", 0)
    where = f"{file}:{line}" if file and line else file
    text = Text(overflow="fold")
    if where:
        text.append(where, style).append(": ")
    parts = (fault.get("object", ""), fault.get("field", ""), fault.get("message", ""))
    return text.append(": ".join(str(part) for part in parts if part))


# -- small things -------------------------------------------------------------------------------


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _plain(cells: Iterable[str]) -> list[str]:
    """*cells* as they are: a name in square brackets is no style."""
    return [escape(cell) for cell in cells]


def _without_empty(table: Table) -> Table:
    """*table* without the columns in which nothing stands."""
    table.columns = [column for column in table.columns if any(cell for cell in column.cells)]
    return table


def _pods(count: int) -> str:
    return f"{count} pod" + ("s" if count != 1 else "")


def _most(counts: Counter[str], most: int, what: str) -> str:
    """The largest of *counts* by name, the others as a number of *what*."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{name} x{count}" for name, count in ordered[:most])
    more = len(ordered) - most
    return f"{shown} and {more} more {what}" if more > 0 else shown
