"""``volcano-py simulate``: replay published traces through the engine."""

from __future__ import annotations

import csv
import io
import json
import statistics
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from volcano_py.plugins.deviceshare.placement import POLICIES, TypicalAsks
from volcano_py.plugins.deviceshare.placement.fragmentation import UsableRoom
from volcano_py.simulator.openb import play_through_engine
from volcano_py.simulator.openb_reference import Outcome, outcome
from volcano_py.simulator.openb_workload import SIZE_CLASSES, Trace, read_trace, tuned_workload

app = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False
)

WIDTH: Final = 100
"""Columns the table needs; a narrower terminal wraps lines rather than cutting figures."""
TYPICAL_COVER: Final = 0.95
"""Share of pods whose asks fragmentation is measured against, as published."""


class Form(StrEnum):
    """How results are printed."""

    table = "table"
    json = "json"
    csv = "csv"


@dataclass(frozen=True, slots=True)
class Run:
    """One policy on one seed's workload."""

    workload: str
    policy: str
    seed: int
    figures: Outcome
    cpu_s: float

    @property
    def last(self) -> int:
        """The last arrival bucket that was filled (130 for a whole list)."""
        return max(self.figures.alloc_pct)

    def data(self) -> dict[str, Any]:
        """For output."""
        return {
            "workload": self.workload,
            "policy": self.policy,
            "seed": self.seed,
            "arrived_pct": self.last,
            "alloc_pct": round(self.figures.alloc_pct[self.last], 3),
            "frag_pct": round(self.figures.frag_pct[self.last], 3),
            "unplaced": self.figures.unplaced,
            "placed": self.figures.placed,
            "cpu_s": round(self.cpu_s, 3),
        }


@app.callback()
def traces() -> None:
    """Replay published traces through the engine."""


@app.command()
def openb(
    nodes: Annotated[Path, typer.Option("--nodes", exists=True, dir_okay=False, help="Node list (CSV).")],
    pods: Annotated[Path, typer.Option("--pods", exists=True, dir_okay=False, help="Pod list (CSV).")],
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", help=f"One of {', '.join(POLICIES)}; may be repeated. Default: all."),
    ] = None,
    seeds: Annotated[str, typer.Option("--seeds", help="Such as 42-51 or 42,45.")] = "42-51",
    output: Annotated[Form, typer.Option("-o", "--output", help="Form of what is printed.")] = Form.table,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw allocation over arrivals into this file.")
    ] = None,
) -> None:
    """Run the published OpenB experiment: how much of the cluster's card room each policy fills.

    Example:
      volcano-py simulate openb --nodes examples/openb/nodes.csv
      --pods examples/openb/openb_pod_list_default.csv
      --policy best-fit --policy expected-fill --seeds 42-44 --plot openb.png

    alloc% is the card room allocated, ± its deviation over seeds; frag% the
    card room that is free but of no use to typical pods. Then pods placed: of
    four cards or more, of whole cards, of large and of small slices, without
    cards; and pods that fitted nowhere.
    """
    chosen = _policies(policy)
    numbers = _seeds(seeds)
    try:
        trace = read_trace(nodes, pods)
    except (ValueError, OSError) as error:
        _fail(str(error))
    runs = _runs(trace, pods.stem.removeprefix("openb_pod_list_"), chosen, numbers)
    if output is Form.json:
        sys.stdout.write(json.dumps([run.data() for run in runs], indent=2) + "\n")
    elif output is Form.csv:
        sys.stdout.write(_as_csv(runs))
    else:
        console = Console(highlight=False)
        console.width = max(console.width, WIDTH)
        console.print(_table(runs))
    if plot is not None:
        _plot(runs, plot)


def _runs(trace: Trace, workload: str, policies: list[str], seeds: list[int]) -> list[Run]:
    typical = UsableRoom(TypicalAsks.from_counts(trace.counts(), TYPICAL_COVER))
    done: list[Run] = []
    with _progress() as progress:
        task = progress.add_task("", total=len(policies) * len(seeds))
        for seed in seeds:
            arrivals = tuned_workload(trace, seed)
            for policy in policies:
                progress.update(task, description=f"{policy}, seed {seed}")
                played = play_through_engine(trace, arrivals, policy)
                figures = outcome(trace, arrivals, played.history, typical)
                done.append(Run(workload, policy, seed, figures, played.cpu_s))
                progress.advance(task)
    order = {policy: place for place, policy in enumerate(policies)}
    return sorted(done, key=lambda run: (order[run.policy], run.seed))


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _policies(names: list[str] | None) -> list[str]:
    unknown = [name for name in names or () if name not in POLICIES]
    if unknown:
        _fail(f"there is no policy {unknown[0]!r}; there are {', '.join(POLICIES)}")
    return list(names or POLICIES)


def _seeds(text: str) -> list[int]:
    """``42-51`` or ``1,3,5``."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.strip().isdigit() or (dash and not last.strip().isdigit()):
            _fail(f"--seeds {text!r}: write it like 42-51 or 42,45")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def _table(runs: list[Run]) -> Table:
    """Means over seeds, with the pods placed in every size class beside each figure."""
    title = f"pod list {runs[0].workload}, {runs[0].last} % arrived: card room allocated, and pods placed"
    table = Table(title=title, box=SIMPLE, padding=(0, 1, 0, 0))
    sizes = [size.replace("-slices", "").replace("-only", "") for size in SIZE_CLASSES]
    for column in ("policy", "alloc%", "±", "frag%", *sizes, "refused", "CPU s"):
        table.add_column(column, justify="left" if column == "policy" else "right", no_wrap=True)
    for policy in dict.fromkeys(run.policy for run in runs):
        mine = [run for run in runs if run.policy == policy]
        alloc = [run.figures.alloc_pct[run.last] for run in mine]
        frag = statistics.mean(run.figures.frag_pct[run.last] for run in mine)
        placed = [f"{statistics.mean(run.figures.placed[size] for run in mine):.0f}" for size in SIZE_CLASSES]
        unplaced = statistics.mean(run.figures.unplaced for run in mine)
        cpu = statistics.mean(run.cpu_s for run in mine)
        spread = f"{statistics.pstdev(alloc):.2f}"
        table.add_row(
            policy,
            f"{statistics.mean(alloc):.2f}",
            spread,
            f"{frag:.2f}",
            *placed,
            f"{unplaced:.0f}",
            f"{cpu:.1f}",
        )
    return table


def _as_csv(runs: list[Run]) -> str:
    text = io.StringIO()
    rows = []
    for run in runs:
        data = run.data()
        rows.append({**data, **{f"placed_{size}": count for size, count in data.pop("placed").items()}})
        rows[-1].pop("placed")
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _plot(runs: list[Run], path: Path) -> None:
    """Allocated card room over arrived card room, a line a policy (mean over seeds)."""
    import matplotlib as mpl  # noqa: PLC0415  # half a second to import, and few ask for a picture

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(8, 5))
    for policy in dict.fromkeys(run.policy for run in runs):
        mine = [run for run in runs if run.policy == policy]
        buckets = sorted(set.intersection(*(set(run.figures.alloc_pct) for run in mine)))
        means = [statistics.mean(run.figures.alloc_pct[bucket] for run in mine) for bucket in buckets]
        axes.plot(buckets, means, label=f"{policy} ({means[-1]:.2f} %)")
    axes.axline((0, 0), slope=1, color="0.6", linewidth=1, linestyle="--", label="all that arrived")
    title = f"OpenB, pod list {runs[0].workload}: how full each policy gets the cards"
    axes.set(xlabel="arrived, % of the cluster's card room", ylabel="allocated, %", title=title)
    axes.set_xlim(60, runs[0].last)
    axes.set_ylim(60, 100)
    axes.legend(loc="lower right")
    axes.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)
    sys.stderr.write(f"drawn: {path}\n")


def _fail(message: str) -> NoReturn:
    sys.stderr.write(f"error: {message}\n")
    raise typer.Exit(2)
