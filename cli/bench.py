"""``volcano-py bench``: how fast the engine is, on known shapes of clusters."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from volcano_py.simulator.bench.measure import WrongOutcomeError
from volcano_py.simulator.bench.report import Report, cost_lines, markdown, notes, table
from volcano_py.simulator.bench.runs import Plan, run_growth, run_idle, run_shape, runs_of
from volcano_py.simulator.bench.shapes import (
    BENCHMARKS,
    GROWTH_NODES,
    GROWTH_PODS,
    Shape,
    read_shapes,
    read_targets,
)


class Form(StrEnum):
    """How results are printed."""

    table = "table"
    json = "json"
    markdown = "markdown"


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SHAPE...", help="Shapes to run, such as ksp-s8; without any, their names are listed."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every shape, growth and idle memory.")] = False,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs of each; medians are shown.")] = 3,
    growth: Annotated[bool, typer.Option("--growth", help="How cost grows with nodes and pods.")] = False,
    idle: Annotated[bool, typer.Option("--idle", help="Memory over many cycles without work.")] = False,
    profile: Annotated[bool, typer.Option("--profile", help="Name the largest costs of each shape.")] = False,
    config: Annotated[Path | None, typer.Option("--config", help="Other scheduler configuration.")] = None,
    folder: Annotated[
        Path,
        typer.Option(
            "--shapes",
            help="Folder with shapes.csv, targets.csv.",
            show_default="benchmarks of the project",
        ),
    ] = BENCHMARKS,
    to: Annotated[Path, typer.Option("--to", help="Where the results go as JSON.")] = Path(
        "build/bench.json"
    ),
    output: Annotated[Form, typer.Option("-o", "--output", help="Form of what is printed.")] = Form.table,
) -> None:
    """Time decisions on benchmark shapes, each run in a process of its own.

    Decoding of objects is shown apart and not counted. Exit 1 if a shape was decided wrongly.
    """
    shapes = _shapes(folder)
    chosen = list(shapes.values()) if every else [_named(shapes, name) for name in names or ()]
    if not (chosen or growth or idle):
        raise typer.BadParameter(f"name shapes or say --all; known are {', '.join(shapes)}")
    plan = Plan(runs, profile, config.read_text(encoding="utf-8") if config else "")
    report = Report(runs, read_targets(folder))
    _run(report, plan, shapes, chosen, growth=growth or every, idle=idle or every)
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(json.dumps(report.records(), indent=1) + "\n", encoding="utf-8")
    _print(report, output)
    if report.failures:
        raise typer.Exit(1)


def _shapes(folder: Path) -> dict[str, Shape]:
    try:
        return read_shapes(folder)
    except (OSError, KeyError, ValueError) as error:
        raise typer.BadParameter(f"no shapes in {folder}: {error}", param_hint="--shapes") from error


def _named(shapes: dict[str, Shape], name: str) -> Shape:
    if name not in shapes:
        raise typer.BadParameter(f"no shape {name!r}; known are {', '.join(shapes)}")
    return shapes[name]


def _run(
    report: Report, plan: Plan, shapes: dict[str, Shape], chosen: list[Shape], *, growth: bool, idle: bool
) -> None:
    """Fill *report*, with a progress bar on standard error."""
    grown = plan.runs * (len(GROWTH_NODES) + len(GROWTH_PODS)) if growth else 0
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        bar = progress.add_task("", total=runs_of(plan) * len(chosen) + grown + idle)

        def tick() -> None:
            progress.advance(bar)

        for shape in chosen:
            progress.update(bar, description=shape.name)
            try:
                report.shapes[shape.name] = run_shape(shape, plan, tick)
            except WrongOutcomeError as error:
                report.failures.append(str(error))
        if growth:
            progress.update(bar, description="growth")
            report.growth = run_growth(shapes, plan, tick)
        if idle:
            progress.update(bar, description="idle cycles")
            report.idle_growth_mib = run_idle(shapes, plan, tick)


def _print(report: Report, output: Form) -> None:
    if output is Form.json:
        print(json.dumps(report.as_dict(), indent=1))
    elif output is Form.markdown:
        print(markdown(report), end="")
    else:
        console, shown = Console(), table(report)
        # A narrow terminal wraps lines rather than cutting figures.
        console.width = max(console.width, Console(width=1_000).measure(shown).maximum)
        console.print(shown)
        for line in (*notes(report), *cost_lines(report)):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
