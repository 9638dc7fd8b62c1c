"""Every command that the documents show runs, and every file they point to is there."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
COMMAND = re.compile(r"^(?: {4}|\.venv/bin/)(volcano-py [^#\n`]*?)(?:  +#.*)?$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
SLOW = ("--all", "--profile", "--growth", "--idle", "--seeds 42-51")
"""Commands that take minutes; what they print is committed, and their parts are tested elsewhere."""


def commands() -> list[str]:
    found = {match[1].strip() for path in DOCUMENTS for match in COMMAND.finditer(path.read_text("utf-8"))}
    return sorted(command for command in found if not any(word in command for word in SLOW))


@pytest.mark.parametrize("command", commands())
def test_command_runs(command: str, tmp_path: Path) -> None:
    """Beside the folders of the checkout that it reads: results it writes are its own."""
    for name in ("examples", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    words = shlex.split(command)
    words[0] = str(ROOT / ".venv/bin" / words[0])
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_documents_show_the_main_commands() -> None:
    shown = " ".join(commands())
    for word in ("plan -f", "plan --scenario", "simulate openb", "bench"):
        assert word in shown


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target in LINK.findall(path.read_text("utf-8")):
        assert (path.parent / target).exists(), f"{path.name} points to {target}"
