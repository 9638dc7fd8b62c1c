"""``volcano-py plan``: what the scheduler would do with manifests and why; scenarios with right answers."""

from __future__ import annotations

import sys
import time
import traceback
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

import typer
from rich.console import Console

from volcano_py.cli.option_groups import grouped
from volcano_py.cli.output import dump, print_plan
from volcano_py.cli.replay import show_replay
from volcano_py.crds.arguments import ConfigError
from volcano_py.crds.schedulerconfig import DEFAULT_CONFIG, load_scheduler_config
from volcano_py.scheduler.framework.registry import known_actions, known_plugins
from volcano_py.scheduler.model.kube.times import parse_time
from volcano_py.simulator.manifests import Manifest, Read, Text, Unreadable, read_paths
from volcano_py.simulator.planning import Report, not_planned, plan_manifests
from volcano_py.simulator.scenario import ScenarioError, Verdict, run_scenario

BAD_INPUT: Final = 2
MISSED: Final = 1
WIDTH: Final = 110
"""Columns where the output is no terminal, so that tables stay readable in a file."""


class Form(StrEnum):
    """How the plan is printed."""

    table = "table"
    wide = "wide"
    json = "json"
    yaml = "yaml"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the scheduler.

    Attributes:
        now: None for the clock of this machine.
    """

    config: Annotated[Path | None, typer.Option("--config", help="Scheduler configuration file.")] = None
    cycles: Annotated[int, typer.Option("--cycles", min=1, help="Cycles to run.")] = 1
    settle: Annotated[
        bool, typer.Option("--settle", help="Between cycles bound pods run and evicted ones go.")
    ] = False
    now: Annotated[
        str | None, typer.Option("--now", metavar="TIME", help="The clock, such as 2026-01-01T00:00:00Z.")
    ] = None

    def answer(self, read: Read) -> Report:
        """The plan for what was *read*, or what is wrong with the configuration."""
        clock = time.time() if self.now is None else _clock(self.now)
        text = DEFAULT_CONFIG if self.config is None else _text(self.config)
        try:
            parsed = load_scheduler_config(text, known_plugins(), known_actions())
            return plan_manifests(read, parsed, clock, cycles=self.cycles, settle=self.settle)
        except ConfigError as error:
            return not_planned(read, error.messages, Text(str(self.config), text), clock)


@grouped
def plan(
    question: Question,
    file: Annotated[
        list[str] | None,
        typer.Option("-f", "--file", help="Manifest file, folder, or - for standard input; may be repeated."),
    ] = None,
    scenario: Annotated[
        list[str] | None,
        typer.Option("--scenario", help="Scenario file or folder; checks what it expects. May be repeated."),
    ] = None,
    more: Annotated[
        list[str] | None, typer.Argument(metavar="PATH...", help="Further files or folders of that option.")
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option("--replay", metavar="JOURNAL", help="Go through a scheduler's journal again."),
    ] = None,
    cycle: Annotated[
        int | None, typer.Option("--cycle", min=1, help="With --replay: show this cycle in full.")
    ] = None,
    output: Annotated[Form, typer.Option("-o", "--output", help="Form of what is printed.")] = Form.table,
) -> None:
    """Say what the scheduler would do with Kubernetes objects, without a cluster.

    Reads nodes, queues, jobs, pods and storage as kubectl applies or prints them.
    A Job becomes its PodGroup and pods, as its controller would make them.
    With --scenario, cases with right answers are run and checked instead.
    With --replay, a journal of volcano-py scheduler is decided again and compared.

    volcano-py plan -f examples/sharing
    volcano-py plan -f cluster.yaml -f job.yaml --cycles 3 --settle -o json
    kubectl get nodes,pods,podgroups -A -o json | volcano-py plan -f -
    volcano-py plan --scenario tests/scenarios
    volcano-py plan --replay /var/lib/volcano-py/journal --cycle 1234

    Exit status is 1 if an expectation was missed or a decision differs, 2 if some input is bad.
    The rest is planned all the same.
    """
    if replay is not None:
        raise typer.Exit(show_replay(replay, cycle, output.value, _console()))
    if cycle is not None:
        _fail("--cycle: names a cycle of a journal; give that with --replay")
    if scenario:
        raise typer.Exit(_scenarios([*scenario, *(more or [])], output))
    paths = [*(file or []), *(more or [])]
    if not paths:
        _fail("nothing to plan: name manifests with -f FILE, or scenarios with --scenario FILE")
    report = question.answer(read_paths(paths))
    if output in (Form.json, Form.yaml):
        sys.stdout.write(dump(report, output.value))
    else:
        print_plan(report, _console(), wide=output is Form.wide)
    raise typer.Exit(BAD_INPUT if report["errors"] else 0)


def _console() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, WIDTH)
    return console


def _text(config: Path) -> str:
    try:
        return config.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        _fail(f"--config: {config} can't be read: {error}")


def _clock(text: str) -> float:
    try:
        return parse_time(text)
    except ValueError as error:
        _fail(f"--now: {error}")


def _fail(message: str) -> NoReturn:
    sys.stderr.write(f"error: {message}\n")
    raise typer.Exit(BAD_INPUT)


# -- scenarios ----------------------------------------------------------------------------------


def _scenarios(paths: list[str], output: Form) -> int:
    """Run the scenarios of *paths*; the exit status."""
    manifests, faults = read_paths(paths)
    wrong = [_said(fault) for fault in faults]
    verdicts: list[Verdict] = []
    for manifest in manifests:
        try:
            verdicts.append(_verdict(manifest))
        except ScenarioError as error:
            wrong.append(str(error))
    missed = [verdict for verdict in verdicts if verdict.wrong]
    if output in (Form.json, Form.yaml):
        sys.stdout.write(dump(_as_data(verdicts, wrong), output.value))
    else:
        _print(missed, wrong, len(verdicts))
    return BAD_INPUT if wrong else MISSED if missed else 0


def _said(fault: Unreadable) -> str:
    where = f"{fault.file}:{fault.line}" if fault.line else fault.file
    return f"{where}: {fault.name}: {fault.message}" if fault.name else f"{where}: {fault.message}"


def _verdict(manifest: Manifest) -> Verdict:
    """How the scenario came out; one that breaks the engine has failed, and the others go on."""
    try:
        return run_scenario(manifest)
    except ScenarioError:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        what = f"stopped by {type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
        document = manifest.document
        where = f"{manifest.file}:{manifest.line}"
        return Verdict(str(document.get("name")), str(document.get("why", "")), where, (what,))


def _print(missed: list[Verdict], wrong: list[str], total: int) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for verdict in missed:
        console.print(verdict.name, style="bold red", markup=False, end="")
        console.print(f" ({verdict.where})", markup=False)
        if verdict.why:
            console.print(f"  why: {verdict.why}", markup=False)
        for text in verdict.wrong:
            console.print(f"  {text}", markup=False)
    for text in wrong:
        console.print(f"error: {text}", markup=False, style="red")
    console.print(f"{total - len(missed)} passed, {len(missed) + len(wrong)} failed", markup=False)


def _as_data(verdicts: list[Verdict], wrong: list[str]) -> dict[str, Any]:
    return {
        "scenarios": [
            {"name": v.name, "where": v.where, "passed": not v.wrong, "why": v.why, "differs": list(v.wrong)}
            for v in verdicts
        ],
        "errors": wrong,
        "passed": sum(not v.wrong for v in verdicts),
        "failed": sum(bool(v.wrong) for v in verdicts) + len(wrong),
    }
