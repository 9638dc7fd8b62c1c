"""``volcano-py plan``: what the scheduler would do with manifests, and why; and scenarios with right answers."""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from volcano_py.cli.output import dump, print_plan
from volcano_py.crds.arguments import ConfigError
from volcano_py.crds.schedulerconfig import DEFAULT_CONFIG, SchedulerConfig, load_scheduler_config
from volcano_py.scheduler.framework.registry import known_actions, known_plugins
from volcano_py.scheduler.model.kube.times import parse_time
from volcano_py.simulator.manifests import SUFFIXES, read_paths
from volcano_py.simulator.planning import plan_manifests
from volcano_py.simulator.scenario import ScenarioError, Verdict, run_scenario

BAD_INPUT = 2
MISSED = 1


class Form(StrEnum):
    """How the plan is printed."""

    table = "table"
    wide = "wide"
    json = "json"
    yaml = "yaml"


def plan(
    file: Annotated[
        list[str] | None,
        typer.Option("-f", "--file", help="Manifest file, folder, or - for standard input; may be repeated."),
    ] = None,
    scenario: Annotated[
        list[str] | None,
        typer.Option("--scenario", help="Scenario file or folder (searched deeply); checks what it expects."),
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(metavar="[PATH]...", help="Further scenarios.")] = None,
    config: Annotated[Path | None, typer.Option("--config", help="Scheduler configuration file.")] = None,
    cycles: Annotated[int, typer.Option("--cycles", min=1, help="Cycles to run.")] = 1,
    settle: Annotated[
        bool, typer.Option("--settle", help="Between cycles bound pods run and evicted ones go.")
    ] = False,
    now: Annotated[
        str | None, typer.Option("--now", metavar="TIME", help="The clock, such as 2026-01-01T00:00:00Z.")
    ] = None,
    output: Annotated[Form, typer.Option("-o", "--output", help="Form of what is printed.")] = Form.table,
) -> None:
    """Say what the scheduler would do, without a cluster.

    Examples:

      volcano-py plan -f examples/sharing

      volcano-py plan -f cluster.yaml -f job.yaml --cycles 3 --settle -o json

      kubectl get nodes,pods,queues.scheduling.volcano.sh,podgroups -A -o json | volcano-py plan -f -

      volcano-py plan --scenario tests/scenarios

    Exit status: 0; 1 if a scenario's expectation was missed; 2 if some input is bad (the rest is planned
    all the same).
    """
    if scenario:
        raise typer.Exit(_scenarios([*scenario, *(more or [])], output))
    paths = [*(file or []), *(more or [])]
    if not paths:
        _fail("nothing to plan: name manifests with -f FILE, or scenarios with --scenario FILE")
    clock = time.time() if now is None else _clock(now)
    report = plan_manifests(read_paths(paths), _config(config), clock, cycles=cycles, settle=settle)
    if output in (Form.json, Form.yaml):
        sys.stdout.write(dump(report, output.value))
    else:
        print_plan(report, Console(), wide=output is Form.wide)
    raise typer.Exit(BAD_INPUT if report["errors"] else 0)


def _config(path: Path | None) -> SchedulerConfig:
    try:
        text = DEFAULT_CONFIG if path is None else path.read_text("utf-8")
        return load_scheduler_config(text, known_plugins(), known_actions())
    except ConfigError as error:
        _fail(*(f"{path}: {message}" for message in error.messages))
    except OSError as error:
        _fail(f"the configuration can't be read: {error}")


def _clock(text: str) -> float:
    try:
        return parse_time(text)
    except ValueError as error:
        _fail(f"--now: {error}")


def _fail(*messages: str) -> Any:
    for message in messages:
        sys.stderr.write(f"error: {message}\n")
    raise typer.Exit(BAD_INPUT)


def _scenarios(paths: list[str], output: Form) -> int:
    """Run the scenarios of *paths*; the exit status."""
    manifests, faults = read_paths(_deep(paths))
    wrong = [f"{fault.file}:{fault.line}: {fault.message}" for fault in faults]
    verdicts: list[Verdict] = []
    for manifest in manifests:
        try:
            verdicts.append(run_scenario(manifest))
        except ScenarioError as error:
            wrong.append(str(error))
    missed = [verdict for verdict in verdicts if verdict.wrong]
    if output in (Form.json, Form.yaml):
        sys.stdout.write(dump(_as_data(verdicts, wrong), output.value))
    else:
        _print(missed, wrong, len(verdicts))
    return BAD_INPUT if wrong else MISSED if missed else 0


def _print(missed: list[Verdict], wrong: list[str], total: int) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for verdict in missed:
        console.print(f"[bold red]{verdict.name}[/] ({verdict.where})", markup=True)
        if verdict.why:
            console.print(f"  why: {verdict.why}", markup=False)
        for text in verdict.wrong:
            console.print(f"  {text}", markup=False)
    for text in wrong:
        console.print(f"error: {text}", markup=False)
    console.print(f"{total - len(missed)} passed, {len(missed)} failed", markup=False)


def _as_data(verdicts: list[Verdict], wrong: list[str]) -> dict[str, Any]:
    return {
        "scenarios": [
            {"name": v.name, "where": v.where, "passed": not v.wrong, "why": v.why, "differs": list(v.wrong)}
            for v in verdicts
        ],
        "errors": wrong,
        "passed": sum(not v.wrong for v in verdicts),
        "failed": sum(bool(v.wrong) for v in verdicts),
    }


def _deep(paths: list[str]) -> list[str]:
    """Folders as all the files below them, by name."""
    files: list[str] = []
    for path in paths:
        here = Path(path)
        if here.is_dir():
            files += sorted(str(f) for f in here.rglob("*") if f.suffix in SUFFIXES)
        else:
            files.append(path)
    return files
