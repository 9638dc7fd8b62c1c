"""The command itself: its help lists what there is without importing it."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from inspect import cleandoc
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.text import Text
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from volcano_py.cli.main import COMMANDS, app
from volcano_py.cli.vcctl.main import app as vcctl

ROOT = Path(__file__).parents[2]
HEAVY = ("numpy", "matplotlib", "pydantic", "volcano_py.scheduler.engine", "volcano_py.simulator.planning")


def test_help_lists_every_command_with_its_line() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    for name, (_, line) in COMMANDS.items():
        assert name in text
        assert line in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_of_its_own(name: str) -> None:
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert f" {name} " in result.stdout
    assert str(ROOT) not in result.stdout.translate(dict.fromkeys(map(ord, " │\n")))


@pytest.mark.parametrize("name", COMMANDS)
def test_names_of_options_are_whole_on_a_narrow_terminal(name: str) -> None:
    """A table of 80 characters made ``--lock-object-na…`` of two options."""
    result = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "80"}, terminal_width=80)
    assert "…" not in result.stdout
    assert "[bold]" not in result.stdout


def commands(command: Any) -> Iterator[Any]:
    """*command* and all below it."""
    yield command
    if isinstance(command, TyperGroup):
        context = typer.Context(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name))


@pytest.mark.parametrize("program", [app, vcctl], ids=["volcano-py", "vcctl-py"])
def test_sentences_of_help_are_not_broken_twice_on_a_narrow_terminal(program: typer.Typer) -> None:
    """Lines below the first paragraph are kept as they are: of a long one a word or two stood alone."""
    for command in commands(get_command(program)):
        told = Text.from_markup(cleandoc(command.help or "")).plain
        for paragraph in told.split("\n\n")[1:]:
            lines = [line for line in paragraph.splitlines()[:-1] if not line.startswith("volcano-py ")]
            assert [line for line in lines if len(line) > 78 and line[-1] not in ".:"] == [], command.name


def test_it_says_its_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"volcano-py {version('volcano-py')}\n")


def test_an_unknown_command_is_told() -> None:
    result = CliRunner().invoke(app, ["plann"])
    assert result.exit_code == 2
    assert "plann" in result.output


def test_help_imports_nothing_heavy() -> None:
    """Half a second of imports for a line of help would be felt by everybody."""
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom volcano_py.cli.main import app\n"
        "CliRunner().invoke(app, ['--help'], catch_exceptions=False)\n"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("component", ["scheduler", "controller"])
def test_an_address_that_is_taken_is_told_with_the_option(component: str, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        options = ["--kubeconfig", str(config), "--listen-address", f"127.0.0.1:{taken.getsockname()[1]}"]
        command = [sys.executable, "-m", "volcano_py.cli.main", component, *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 2
    assert "address already in use; name another by --listen-address" in done.stderr
