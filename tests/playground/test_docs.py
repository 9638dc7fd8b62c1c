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


def commands() -> list[str]:
    return [line for block in BLOCK.findall(PAGE.read_text("utf-8")) for line in block.splitlines()]


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
    assert second == "export KUBECONFIG=$PWD/build/playground/kubeconfig"


def test_each_command_of_the_page_runs(shell: dict[str, str]) -> None:
    said: dict[str, str] = {}
    for command in commands()[2:]:
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
    assert_the_page_is_true(said)


def assert_the_page_is_true(said: dict[str, str]) -> None:
    """What the page promises of some of them."""
    assert said["kubectl logs -n research -l job-name=train"].count("training") == 3
    assert said["kubectl logs hello"] == "hello\n"
    trials = said["kubectl get pods -n research -l job-name=sweep"]
    assert (trials.count("Running"), trials.count("Pending")) == (4, 2)
    evicted = said["kubectl get events -n research --field-selector reason=Evict"]
    assert evicted.count("for product/rank") == 3
    cards = said[".venv/bin/vcctl-py top cards"]
    assert "64000/81920" in cards


def test_manifests_are_where_the_page_says() -> None:
    named = {word for command in commands() for word in command.split() if word.startswith("examples/")}
    there = {str(path.relative_to(ROOT)) for path in Path(ROOT, "examples/playground").glob("*.yaml")}
    assert named == there
