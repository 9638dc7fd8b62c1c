"""``volcano-py plan`` as people and programs call it: what is printed and how it exits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from tests.project.layout import ROOT
from volcano_py.cli.main import app

NOW = ("--now", "2026-01-01T12:00:00Z")
NODE = (
    'apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: "2", pods: "10"}}\n---\n'
)
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: ml}
spec:
  schedulerName: volcano-py
  containers: [{name: main, resources: {requests: {cpu: "1"}}}]
---
"""
SCENARIO = """\
name: one-fits
why: There is room.
objects:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "2", pods: "10"}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: a, namespace: ml}
  spec: {schedulerName: volcano-py, containers: [{name: main}]}
expect: {binds: {ml/a: n1}}
---
"""


def call(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(app, ["plan", *arguments], input=given)


def data(result: Result) -> Any:
    return json.loads(result.stdout)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    file = tmp_path / "good.yaml"
    file.write_text(NODE + POD)
    return file


def test_a_plan_for_people(good: Path) -> None:
    result = call("-f", str(good), *NOW)
    assert result.exit_code == 0
    assert "ml/a" in result.stdout
    assert result.stdout.splitlines()[-1].strip() == "1 started, 0 evicted, 0 waiting after 1 cycle"
    assert "\x1b[" not in result.stdout, "colours are for terminals"


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_plan_for_programs(good: Path, form: str) -> None:
    result = call("-f", str(good), "-o", form, *NOW)
    report = yaml.safe_load(result.stdout)
    assert result.exit_code == 0
    assert {"decisions", "podGroups", "queues", "pending", "errors", "warnings"} <= set(report)
    [bind] = report["decisions"]
    assert {key: bind[key] for key in ("kind", "pod", "node", "slices", "action")} == {
        "kind": "bind",
        "pod": "ml/a",
        "node": "n1",
        "slices": [],
        "action": "allocate",
    }


def test_files_folders_and_standard_input_together(good: Path) -> None:
    (good.parent / "more").mkdir()
    (good.parent / "more" / "b.yml").write_text(POD.replace("name: a", "name: b"))
    stdin = POD.replace("name: a", "name: c")
    (good.parent / "conf").write_text(
        "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: priority}]}]\n"
    )
    paths = ("-f", str(good), str(good.parent / "more"), "-f", "-", "--config", str(good.parent / "conf"))
    report = data(call(*paths, "-o", "json", given=stdin))
    assert {decision["pod"] for decision in report["decisions"]} == {"ml/a", "ml/b"}
    assert report["pending"]["ml/c"]["reason"].startswith("0/1 nodes are available: 1 Insufficient cpu")
    assert report["pending"]["ml/c"]["missing"] == {"cpu": "1"}
    assert report["pending"]["ml/c"]["nearest"] == "n1"


def test_bad_input_exits_2_and_plans_the_rest(good: Path) -> None:
    good.write_text(good.read_text() + "apiVersion: v1\nkind: Pod\nmetadata: {name: \n")
    result = call("-f", str(good), "-f", "nowhere.yaml", "-o", "json")
    assert result.exit_code == 2
    report = data(result)
    assert [decision["pod"] for decision in report["decisions"]] == ["ml/a"]
    assert [(Path(error["file"]).name, error["line"]) for error in report["errors"]] == [
        ("nowhere.yaml", 0),
        ("good.yaml", 15),
    ]
    for_people = call("-f", str(good))
    assert for_people.exit_code == 2
    assert "good.yaml:15: Pod (no name): is not valid YAML" in " ".join(for_people.stdout.split())


def test_a_warning_is_no_error(good: Path) -> None:
    good.write_text(good.read_text() + "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n")
    result = call("-f", str(good), "-o", "json")
    assert (result.exit_code, len(data(result)["warnings"])) == (0, 1)


@pytest.mark.parametrize(
    ("config", "line", "field", "says"),
    [
        ("actions: allocate\ntiers:\n- plugins: [{name: gangg}]\n", 3, "tiers[0].plugins[0].name", "gangg"),
        ("actions: alocate\n", 1, "actions", 'did you mean "allocate"?'),
        (
            "actions: allocate\ntiers: [{plugins: [{name: overcommit, arguments: {factor: 2}}]}]\n",
            2,
            "tiers[0].plugins[0].arguments[factor]",
            'unknown argument "factor"',
        ),
        (
            "actions: preempt\ntiers: []\nconfigurations:\n- name: preempt\n  arguments:\n    factor: 2\n",
            6,
            "configurations[0].arguments[factor]",
            'unknown argument "factor"',
        ),
    ],
)
def test_a_wrong_configuration_stops_the_plan(
    good: Path, config: str, line: int, field: str, says: str
) -> None:
    file = good.parent / "conf"
    file.write_text(config)
    result = call("-f", str(good), "--config", str(file), "-o", "json")
    report = data(result)
    assert (result.exit_code, report["decisions"]) == (2, [])
    [error] = report["errors"]
    assert (error["file"], error["line"], error["field"]) == (str(file), line, field)
    assert says in error["message"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "nothing to plan"),
        (("-f", "x", "--now", "noon"), '--now: must be a time such as 2026-01-01T00:00:00Z, not "noon"'),
        (("-f", "x", "--config", "nowhere"), "--config: nowhere can't be read"),
    ],
)
def test_what_cannot_be_asked_is_told(arguments: tuple[str, ...], says: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert says in result.stderr


def test_cycles_and_the_clock(good: Path) -> None:
    report = data(call("-f", str(good), "--cycles", "3", "--settle", "-o", "json", *NOW))
    assert (report["cycles"], report["now"]) == (3, "2026-01-01T12:00:02Z")
    [group] = report["podGroups"]
    assert (group["phase"], group["pods"]) == ("Running", {"Running": 1})


def test_the_example_of_the_readme() -> None:
    report = data(call("-f", str(ROOT / "examples" / "sharing"), "-o", "json", *NOW))
    kinds = {decision["kind"] for decision in report["decisions"]}
    assert (report["errors"], report["warnings"]) == ([], [])
    assert kinds == {"bind", "evict", "pipeline"}
    for decision in report["decisions"]:
        if decision["kind"] == "evict":
            assert decision["forWhom"]
            assert decision["reason"]
            assert decision["lost"]


# -- scenarios ----------------------------------------------------------------------------------


def test_scenarios_that_pass(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SCENARIO)
    (tmp_path / "b.yaml").write_text(SCENARIO)
    result = call("--scenario", str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml"))
    assert (result.exit_code, result.stdout) == (0, "2 passed, 0 failed\n")


def test_a_missed_expectation_names_scenario_reason_and_difference(tmp_path: Path) -> None:
    wrong = SCENARIO.replace("one-fits", "none-fits").replace("binds: {ml/a: n1}", "bindCount: 0")
    (tmp_path / "s.yaml").write_text(SCENARIO + wrong)
    result = call("--scenario", str(tmp_path))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        f"none-fits ({tmp_path / 's.yaml'}:11)",
        "  why: There is room.",
        "  bindCount: expected 0, got 1: ml/a",
        "1 passed, 1 failed",
    ]


def test_a_scenario_out_of_the_format_exits_2(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO + SCENARIO.replace("expect:", "expects:") + "name: [\n")
    result = call("--scenario", str(tmp_path), "-o", "json")
    report = data(result)
    assert (result.exit_code, report["passed"], report["failed"]) == (2, 1, 2)
    assert any("unknown key 'expects'" in error for error in report["errors"])
    assert any("not valid YAML" in error for error in report["errors"])


def test_a_bad_object_in_a_scenario_is_its_data(tmp_path: Path) -> None:
    bad = "expect:\n".join(SCENARIO.split("expect:")[:1])
    bad += "- {apiVersion: v1, kind: Pod, metadata: {name: b, namespace: ml}, spec: {containers: 5}}\n"
    (tmp_path / "s.yaml").write_text(f"{bad}expect: {{binds: {{ml/a: n1}}, pending: {{ml/b: containers}}}}\n")
    assert call("--scenario", str(tmp_path)).exit_code == 0


def test_a_scenario_that_breaks_the_engine_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_self: object, _now: float) -> None:
        raise ZeroDivisionError("three by nothing")

    monkeypatch.setattr("volcano_py.scheduler.engine.Engine.cycle", broken)
    (tmp_path / "s.yaml").write_text(SCENARIO)
    result = call("--scenario", str(tmp_path))
    assert result.exit_code == 1
    assert "stopped by ZeroDivisionError: three by nothing (test_plan.py:" in result.stdout
