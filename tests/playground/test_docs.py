"""Every command of the page "The first ten minutes", one after the other, as its reader types them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.programs import need
from tests.playground.starting import ROOT, running

PAGE = ROOT / "docs" / "first-ten-minutes.md"
BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIRST_TERMINAL = "make playground"


EXPORT = "export KUBECONFIG=$PWD/build/playground/kubeconfig"


def commands() -> list[str]:
    return [line for block in BLOCK.findall(PAGE.read_text("utf-8")) for line in block.splitlines()]


def of_the_readme() -> list[str]:
    """What the README has its reader type in a playground."""
    blocks = BLOCK.findall((ROOT / "README.md").read_text("utf-8"))
    found: list[list[str]] = [block.splitlines() for block in blocks if block.startswith(EXPORT)]
    assert len(found) == 1
    return found[0][1:]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of the second terminal, while the first one runs the playground."""
    kubectl = need("kubectl")
    place = tmp_path_factory.mktemp("page")
    first = ["make", *FIRST_TERMINAL.split()[1:], "--old-file=setup", f"PLAYGROUND={place}/playground"]
    with running(first, place / "log"):
        config = f"{place}/playground/kubeconfig"
        yield {**os.environ, "KUBECONFIG": config, "PATH": f"{kubectl.parent}:{os.environ['PATH']}"}


def test_the_page_begins_with_both_terminals() -> None:
    first, second = commands()[:2]
    assert first == FIRST_TERMINAL
    assert second == EXPORT


def test_each_command_of_the_page_runs(shell: dict[str, str]) -> None:
    assert_the_page_is_true(run_all(commands()[2:], shell))


def test_each_command_of_the_readme_runs(shell: dict[str, str]) -> None:
    said = run_all(of_the_readme(), shell)
    assert "PodGroup research/sweep" in said[".venv/bin/vcctl-py explain podgroup sweep -n research"]


def run_all(lines: list[str], shell: dict[str, str]) -> dict[str, str]:
    """What each of *lines* prints; all of them have to succeed."""
    said: dict[str, str] = {}
    for command in lines:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=ROOT,
            env=shell,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        said[command] = done.stdout
    return said


def assert_the_page_is_true(said: dict[str, str]) -> None:
    """What the page promises of some of them."""
    assert said["kubectl logs -n research -l job-name=train"].count("training") == 3
    assert said["kubectl logs hello"] == "hello\n"
    trials = said["kubectl get pods -n research -l job-name=sweep"]
    assert (trials.count("Running"), trials.count("Pending")) == (4, 2)
    evicted = said["kubectl get events -n research --field-selector reason=Evict,involvedObject.kind=Pod"]
    assert evicted.count("for product/rank") == 3
    assert (
        "the gang needs 9 pods at once, the empty cluster holds 8 of them"
        in said[".venv/bin/vcctl-py explain podgroup too-large -n research"]
    )
    assert "PodGroup research/too-large" in said[".venv/bin/vcctl-py doctor || true"]
    cards = said[".venv/bin/vcctl-py top cards"]
    assert "64000/81920" in cards


def test_manifests_are_where_the_page_says() -> None:
    named = {word for command in commands() for word in command.split() if word.startswith("examples/")}
    there = {str(path.relative_to(ROOT)) for path in Path(ROOT, "examples/playground").glob("*.yaml")}
    assert named == there
