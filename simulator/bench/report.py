"""Results as data, as tables for people, and as Markdown for the record."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from volcano_py.simulator.bench.measure import Measurement
from volcano_py.simulator.bench.runs import IDLE_CYCLES, IDLE_SHAPE, Growth
from volcano_py.simulator.bench.shapes import Target

COLUMNS = (
    "shape", "decisions", "CPU s", "wall s", "refresh", "cycle", "decode", "peak MiB", "target", "Volcano",
    "ratio", "",
)  # fmt: skip


@dataclass(slots=True)
class Report:
    """All that was measured.

    Attributes:
        shapes: shape name -> medians.
        idle_growth_mib: None where it was not asked for.
        failures: what came out wrong.
    """

    runs: int
    targets: dict[str, Target]
    shapes: dict[str, Measurement] = field(default_factory=dict)
    growth: list[Growth] = field(default_factory=list)
    idle_growth_mib: float | None = None
    failures: list[str] = field(default_factory=list)

    def records(self) -> list[dict[str, Any]]:
        """What ``build/bench.json`` holds."""
        names = ("cpu_s", "wall_s", "peak_mib", "decisions")
        return [
            {"shape": shape, **{name: getattr(measured, name) for name in names}}
            for shape, measured in self.shapes.items()
        ]

    def as_dict(self) -> dict[str, Any]:
        """Everything, as JSON has it."""
        return {
            "machine": machine(),
            "runs": self.runs,
            "shapes": [{"shape": shape, **m.as_dict()} for shape, m in self.shapes.items()],
            "growth": [asdict(growth) for growth in self.growth],
            "idle_growth_mib": self.idle_growth_mib,
            "failures": self.failures,
        }


def rows(report: Report) -> Iterable[tuple[str, ...]]:
    """The table's rows, as texts in the order of ``COLUMNS``."""
    for shape, measured in report.shapes.items():
        target = report.targets.get(shape)
        theirs = None if target is None else target.volcano_cpu_s
        yield (
            shape,
            str(measured.decisions),
            seconds(measured.cpu_s),
            seconds(measured.wall_s),
            seconds(measured.refresh_cpu_s),
            seconds(measured.cycle_cpu_s),
            seconds(measured.decode_cpu_s),
            f"{measured.peak_mib:.0f}",
            "" if target is None else f"{target.cpu_s:g}",
            "" if theirs is None else f"{theirs:g}",
            "" if theirs is None else f"{theirs / max(measured.cpu_s, 1e-6):.0f}x",
            "" if target is None else ("ok" if measured.cpu_s <= target.cpu_s else "over"),
        )


def seconds(value: float) -> str:
    """Three digits after the point, more for what is shorter than 10 ms."""
    return f"{value:.3f}" if value >= 0.01 else f"{value:.5f}"


def table(report: Report) -> Table:
    """For the terminal."""
    shown = Table(box=SIMPLE_HEAD, title=f"CPU seconds, medians of {report.runs}; ratio: Volcano's over ours")
    for column in COLUMNS:
        shown.add_column(column, no_wrap=True, justify="left" if column in ("shape", "") else "right")
    for row in rows(report):
        style = {"over": "red", "ok": "green"}.get(row[-1], "")
        shown.add_row(*row[:-1], f"[{style}]{row[-1]}[/]" if style else row[-1])
    return shown


def notes(report: Report) -> list[str]:
    """Growth, memory and failures, a line each."""
    lines = []
    for growth in report.growth:
        points = ", ".join(
            f"{size}: {seconds(cost)} s" for size, cost in zip(growth.sizes, growth.cpu_s, strict=True)
        )
        verdict = "ok" if growth.exponent <= growth.limit else "over"
        lines.append(
            f"growth in {growth.axis}: exponent {growth.exponent:.2f} "
            f"(at most {growth.limit}: {verdict}); {points}"
        )
    if report.idle_growth_mib is not None:
        lines.append(
            f"{IDLE_SHAPE}: {report.idle_growth_mib:+.1f} MiB over {IDLE_CYCLES} cycles with nothing to do"
        )
    return lines + [f"WRONG: {failure}" for failure in report.failures]


def cost_lines(report: Report) -> list[str]:
    """The largest costs of each shape, where it was profiled."""
    return [
        f"{shape}: " + "; ".join(f"{share:.0%} {where}" for where, share in measured.costs)
        for shape, measured in report.shapes.items()
        if measured.costs
    ]


def markdown(report: Report) -> str:
    """The tables and lists of docs/benchmarks.md."""
    head = f"| {' | '.join(COLUMNS)} |\n|{'|'.join('---' for _ in COLUMNS)}|"
    body = "\n".join(f"| {' | '.join(row)} |" for row in rows(report))
    lists = "\n".join(f"- {line}" for line in notes(report))
    costs = "\n".join(f"- {line}" for line in cost_lines(report))
    parts = [f"Measured on {machine()}; medians of {report.runs} runs.", f"{head}\n{body}", lists, costs]
    return "\n\n".join(part for part in parts if part) + "\n"


def machine() -> str:
    """Processor, cores and versions."""
    return (
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}"
    )


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
