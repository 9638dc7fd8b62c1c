"""Every command of the page "The first ten minutes", one after the other, as its reader types them."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.programs import need
from tests.playground.starting import ROOT, WAIT_S, running

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


def running_and_pending(said: str) -> tuple[int, int]:
    return said.count("Running"), said.count("Pending")


PROMISED: dict[str, Callable[[str], bool]] = {
    "kubectl describe node node-0": lambda said: "HolderIdentity:  node-0" in said,
    "kubectl logs -n research -l job-name=train": lambda said: said.count("training") == 3,
    "kubectl logs hello": lambda said: said == "hello\n",
    "kubectl get pods -n research -l job-name=sweep": lambda said: running_and_pending(said) == (4, 2),
    "kubectl get events -n research --field-selector reason=Evict,involvedObject.kind=Pod": (
        lambda said: said.count("for product/rank") == 3
    ),
    ".venv/bin/vcctl-py explain podgroup too-large -n research": (
        lambda said: "the gang needs 9 pods at once, the empty cluster holds 8 of them" in said
    ),
    ".venv/bin/vcctl-py doctor || true": lambda said: "PodGroup research/too-large" in said,
    ".venv/bin/vcctl-py top cards": lambda said: "64000/81920" in said,
    "kubectl get persistentvolumeclaims,persistentvolumes -n research": (
        lambda said: [said.count(f" {word} ") for word in ("Bound", "playground", "fast-ssd")] == [4, 2, 2]
    ),
    "kubectl describe persistentvolumes": (lambda said: said.count("kubernetes.io/hostname in [node-") == 2),
}
"""What the page says that some of its commands show."""


def test_each_command_of_the_page_runs(shell: dict[str, str]) -> None:
    lines = commands()[2:]
    assert set(lines) >= PROMISED.keys()
    for command in lines:
        if command in PROMISED:
            shows(command, shell, PROMISED[command])
        else:
            run(command, shell)


def test_each_command_of_the_readme_runs(shell: dict[str, str]) -> None:
    said = {command: run(command, shell) for command in of_the_readme()}
    assert "PodGroup research/sweep" in said[".venv/bin/vcctl-py explain podgroup sweep -n research"]


def shows(command: str, shell: dict[str, str], promised: Callable[[str], bool]) -> None:
    """*command* prints what is promised; what others do behind an earlier command comes by and by."""
    deadline = time.monotonic() + WAIT_S
    while not promised(said := run(command, shell)):
        assert time.monotonic() < deadline, f"{command}\n{said}"


def run(command: str, shell: dict[str, str]) -> str:
    """What *command* prints. A loaded machine has longer than the minute for which the page waits."""
    words = ["bash", "-c", command.replace("--timeout=60s", f"--timeout={WAIT_S:.0f}s")]
    done = subprocess.run(
        words, cwd=ROOT, env=shell, capture_output=True, text=True, timeout=2 * WAIT_S, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def test_manifests_are_where_the_page_says() -> None:
    named = {word for command in commands() for word in command.split() if word.startswith("examples/")}
    there = {str(path.relative_to(ROOT)) for path in Path(ROOT, "examples/playground").glob("*.yaml")}
    assert named == there
