"""The program itself: help that is light, hints for typos, errors with a next step."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.vcctl.person import LONGEST_S
from volcano_py.cli.vcctl.main import COMMANDS, app

HEAVY = ("numpy", "pydantic", "aiohttp", "kubernetes", "msgspec", "volcano_py.scheduler.engine")


def test_help_lists_every_command_with_its_line() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    for name, (_, line, _) in COMMANDS.items():
        assert name in text
        assert line in text


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom volcano_py.cli.vcctl.main import app\n"
        "CliRunner().invoke(app, ['--help'], catch_exceptions=False)\n"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0, result.output
    verbs = [
        line.split()[1] for line in result.stdout.splitlines() if line.startswith("│ ") and "--" not in line
    ]
    if f"{name} [OPTIONS] COMMAND" not in " ".join(result.stdout.split()):
        assert f"vcctl-py {name}" in result.stdout
        return
    for verb in [verb for verb in verbs if verb.islower() and verb not in ("lend",)]:
        told = CliRunner().invoke(app, [name, verb, "--help"])
        if told.exit_code == 0:
            assert f"vcctl-py {name} {verb}" in told.stdout, f"{name} {verb}"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["qeue", "list"], "queue"),
        (["queue", "lst"], "list"),
        (["queue", "lend", "paus"], "pause"),
        (["explain", "podgruop", "x"], "podgroup"),
        (["top", "crads"], "cards"),
    ],
)
def test_a_typo_is_answered_with_what_was_meant(words: list[str], meant: str) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert f'did you mean "{meant}"' in " ".join(result.output.replace("│", " ").split())


def test_short_names_work_as_in_kubectl() -> None:
    for name in ("q", "pg", "vj", "po"):
        assert CliRunner().invoke(app, [name, "list", "--help"]).exit_code == 0


def test_both_programs_are_installed() -> None:
    scripts = {entry.name: entry.value for entry in entry_points(group="console_scripts")}
    assert scripts["vcctl-py"] == scripts["kubectl-volcano_py"] == "volcano_py.cli.vcctl.main:main"


def test_completion_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_VCCTL_PY_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "vcctl-py que")
    monkeypatch.setenv("COMP_CWORD", "1")
    program = str(Path(sys.executable).with_name("vcctl-py"))
    done = subprocess.run([program], capture_output=True, text=True, timeout=LONGEST_S, check=False)
    assert done.stdout.split() == ["queue"]


# -- without a server ---------------------------------------------------------------------------


def test_no_server_is_said_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    result = CliRunner().invoke(app, ["queue", "list"])
    assert result.exit_code == 2
    assert "--kubeconfig" in result.output


def test_a_server_that_does_not_answer_is_said(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\n"
    )
    result = CliRunner().invoke(app, ["queue", "list", "--kubeconfig", str(config)])
    assert result.exit_code == 1
    assert "doesn't answer" in result.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["plan"], "filename"),
        (["queue", "create", "x", "-w", "0"], "weight"),
        (["podgroup", "move", "x"], "queue"),
        (["podgroup", "boost", "x", "--by", "99999999999"], "by"),
    ],
)
def test_wrong_usage_is_status_two(words: list[str], told: str) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert told in result.output


@pytest.mark.parametrize(
    ("words", "offered"),
    [(["que"], ["queue"]), (["queue", "op"], ["operate"]), (["queue", "lend", ""], ["pause", "resume"])],
)
def test_kubectl_completes_the_plugin(words: list[str], offered: list[str]) -> None:
    program = str(Path(sys.executable).with_name("kubectl_complete-volcano_py"))
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=LONGEST_S, check=True)
    assert done.stdout.split() == [*offered, ":4"]


SHORT = {
    "vsub": "job run",
    "vjobs": "job list",
    "vqueues": "queue list",
    "vcancel": "job delete",
    "vsuspend": "job suspend",
    "vresume": "job resume",
}


@pytest.mark.parametrize("name", SHORT)
def test_the_short_programs_are_verbs(name: str) -> None:
    program = str(Path(sys.executable).with_name(name))
    done = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=LONGEST_S, check=True)
    assert f"{SHORT[name]} [OPTIONS]" in done.stdout
