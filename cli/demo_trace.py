"""The part of the demo that needs no server: a plan of a shared cluster, and a production trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.rule import Rule

from volcano_py.cli.output import print_plan
from volcano_py.cli.simulate import Form, openb
from volcano_py.crds.schedulerconfig import DEFAULT_CONFIG, load_scheduler_config
from volcano_py.scheduler.model.kube.times import parse_time
from volcano_py.simulator.manifests import read_paths
from volcano_py.simulator.planning import plan_manifests

NOW: Final = "2026-01-01T12:00:00Z"
CYCLES: Final = 2
POLICY: Final = "fragmentation-gradient"


def show_trace(examples: Path, to: Path, console: Console) -> None:
    """Plan a small cluster that two teams share, then replay a trace; pictures go *to* a folder."""
    console.print(Rule("Two teams, twelve cards: a gang, a borrow and a reclaim"))
    config = load_scheduler_config(DEFAULT_CONFIG)
    read = read_paths([str(examples / "sharing")])
    report = plan_manifests(read, config, parse_time(NOW), cycles=CYCLES, settle=True)
    print_plan(report, console)
    picture = to / "demo-sharing.png"
    draw_sharing(report, picture)
    console.print(f"drawn: {picture}\n")
    console.print(Rule(f"A production trace (OpenB), policy {POLICY}"))
    trace = examples / "openb"
    openb(
        trace / "nodes.csv",
        trace / "openb_pod_list_default.csv",
        [POLICY],
        "42",
        Form.table,
        to / "demo-openb.png",
    )


def draw_sharing(report: dict[str, Any], path: Path) -> None:
    """What each queue's pods do over the cycles: who starts, who goes, for whom."""
    import matplotlib as mpl  # noqa: PLC0415  # half a second to import; only pictures need it

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    colours = {"bind": "#0ca678", "pipeline": "#f08c00", "evict": "#e03131"}
    words = {"bind": "starts", "pipeline": "room kept", "evict": "evicted"}
    decisions = report["decisions"]
    figure, axes = plt.subplots(figsize=(9, 0.34 * len(decisions) + 1.2))
    for row, decision in enumerate(decisions):
        kind = decision["kind"]
        for_whom = f" for {decision['forWhom']}" if decision["forWhom"] else ""
        text = f"{decision['pod']}  {words[kind]} on {decision['node']}{for_whom}"
        axes.barh(row, 0.12, left=decision["cycle"], color=colours[kind])
        axes.text(decision["cycle"] + 0.15, row, text, va="center", fontsize=8)
    first = min(decision["cycle"] for decision in decisions)
    last = max(decision["cycle"] for decision in decisions)
    axes.set_xticks(range(first, last + 1), [f"cycle {cycle}" for cycle in range(first, last + 1)])
    axes.set_xlim(first - 0.1, last + 1.2)
    axes.set_yticks([])
    axes.invert_yaxis()
    axes.set_title("Two teams, twelve cards: what the scheduler decides, cycle by cycle")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)
