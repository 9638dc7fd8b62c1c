"""``volcano-py plan --replay``: a journal decided again, one line a cycle or one cycle in full."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from volcano_py.cli.output import dump, print_plan
from volcano_py.crds.arguments import ConfigError
from volcano_py.scheduler.model.kube.times import format_time
from volcano_py.scheduler.run.records import JournalError
from volcano_py.scheduler.run.replay import Note, Replayed, replay
from volcano_py.simulator.report import plan_report

DIFFERS: Final = 1
BAD_INPUT: Final = 2
MOST_ROWS: Final = 40
"""Cycles listed in a table; of more, the last ones and those that differ."""


def show_replay(journal: Path, cycle: int | None, form: str, console: Console) -> int:
    """Go through *journal* and print what came of it.

    Args:
        journal: a folder, or one of its files.
        cycle: the number of the one cycle to show in full; None lists all.
        form: ``table``, ``wide``, ``json`` or ``yaml``.
        console: where tables go.

    Returns:
        Exit status: 1 where a decision was another one now, 2 where there is nothing to go through.
    """
    try:
        return _one(journal, cycle, form, console) if cycle is not None else _all(journal, form, console)
    except (JournalError, ConfigError, OSError) as error:
        sys.stderr.write(f"error: --replay: {error}\n")
        return BAD_INPUT


def _one(journal: Path, cycle: int, form: str, console: Console) -> int:
    last = 0
    for played in replay(journal):
        if isinstance(played, Note):
            continue
        last = played.recorded.number
        if last == cycle:
            return _show(played, form, console)
    sys.stderr.write(f"error: --cycle: there is no cycle {cycle} in {journal}; the last one is {last}\n")
    return BAD_INPUT


def _show(played: Replayed, form: str, console: Console) -> int:
    results = [] if played.result is None else [played.result]
    report = plan_report(played.owner.engine, results, played.recorded.now)
    report = {**report, "errors": [], "warnings": [], "replay": _data(played)}
    if form in ("json", "yaml"):
        sys.stdout.write(dump(report, form))
    else:
        print_plan(report, console, wide=form == "wide")
        _print_agreement(played, console)
    return DIFFERS if played.differs else 0


def _print_agreement(played: Replayed, console: Console) -> None:
    number = played.recorded.number
    if played.recorded.fault:
        console.print(f"cycle {number} broke off: {played.recorded.fault}", style="red", markup=False)
    if not played.differs:
        console.print(f"cycle {number}: as recorded", style="green", markup=False)
    for text in played.differs:
        console.print(f"cycle {number} differs: {text}", style="bold red", markup=False)


def _all(journal: Path, form: str, console: Console) -> int:
    rows: list[dict[str, Any]] = []
    notes: list[dict[str, str]] = []
    for played in replay(journal):
        if isinstance(played, Note):
            notes.append({"segment": played.segment.name, "message": played.text})
        else:
            rows.append(_data(played))
    differ = sum(bool(row["differs"]) for row in rows)
    if form in ("json", "yaml"):
        sys.stdout.write(dump({"cycles": rows, "notes": notes, "differ": differ}, form))
    else:
        _print_all(rows, notes, console)
    return DIFFERS if differ else 0


def _data(played: Replayed) -> dict[str, Any]:
    recorded = played.recorded
    kinds = Counter(decision.kind for decision in recorded.decisions)
    return {
        "cycle": recorded.number,
        "segment": played.segment.name,
        "now": format_time(recorded.now),
        "binds": kinds["bind"],
        "promises": kinds["pipeline"],
        "evictions": kinds["evict"],
        "refused": dict(recorded.refused),
        "fault": recorded.fault,
        "differs": list(played.differs),
    }


def _print_all(rows: list[dict[str, Any]], notes: list[dict[str, str]], console: Console) -> None:
    shown = [row for row in rows if row["differs"]]
    shown += [row for row in rows[-MOST_ROWS:] if not row["differs"]]
    table = Table(box=None, pad_edge=False)
    for heading in ("CYCLE", "TIME", "BINDS", "PROMISES", "EVICTIONS", "REFUSED", ""):
        table.add_column(heading)
    for row in sorted(shown, key=lambda row: int(row["cycle"])):
        table.add_row(*_cells(row))
    if rows:
        console.print(table)
    for row in rows:
        for text in row["differs"]:
            console.print(f"cycle {row['cycle']} differs: {text}", style="bold red", markup=False)
    for note in notes:
        console.print(f"{note['segment']}: {note['message']}", style="yellow", markup=False)
    differ = sum(bool(row["differs"]) for row in rows)
    told = f"{differ} differ from the record" if differ else "all as recorded"
    console.print(f"{len(rows)} cycles: {told}", markup=False)


def _cells(row: Mapping[str, Any]) -> list[str]:
    state = "differs" if row["differs"] else "broke off" if row["fault"] else ""
    numbers = [str(row[key] or "") for key in ("binds", "promises", "evictions")]
    refused = sum(row["refused"].values())
    return [str(row["cycle"]), row["now"], *numbers, str(refused or ""), state]
