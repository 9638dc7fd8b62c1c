"""Somebody who types commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from typer.testing import CliRunner

from tests.e2e.cluster import Cluster
from volcano_py.cli.vcctl.main import app

PROGRAM: Final = str(Path(sys.executable).with_name("vcctl-py"))
LONGEST_S: Final = 240.0


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it printed."""

    code: int
    stdout: str
    stderr: str


class Person:
    """Runs ``vcctl-py`` on *cluster*, by its kubeconfig.

    Attributes:
        space: the namespace of the test.
        as_process: each command is a process; else it runs in ours, which saves a second of imports.
    """

    def __init__(self, cluster: Cluster, *, as_process: bool = False) -> None:
        self.cluster, self.space, self.as_process = cluster, cluster.space, as_process

    def environment(self) -> dict[str, str]:
        """Where the cluster is; a width that no table depends on."""
        return {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig), "COLUMNS": "100"}

    def runs(self, *words: str, code: int = 0, text: str | None = None) -> Done:
        """One command, which ends with status *code*; *text* is its standard input."""
        done = self.run(*words, text=text)
        assert done.code == code, f"{words}: {done.code}\n{done.stdout}\n{done.stderr}"
        return done

    def run(self, *words: str, text: str | None = None) -> Done:
        """One command, however it ends."""
        return self._process(words, text) if self.as_process else self._call(words, text)

    def _process(self, words: tuple[str, ...], text: str | None) -> Done:
        done = subprocess.run(
            [PROGRAM, *words],
            env=self.environment(),
            input=text,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def _call(self, words: tuple[str, ...], text: str | None) -> Done:
        done = CliRunner().invoke(app, list(words), input=text, env=self.environment())
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Done(done.exit_code, done.stdout, done.stderr)

    def says(self, *words: str) -> str:
        """What a command prints."""
        return self.runs(*words).stdout

    def refused(self, *words: str, code: int = 1) -> str:
        """What a command that fails says."""
        return self.runs(*words, code=code).stderr

    def data(self, *words: str, code: int = 0) -> Any:
        """What a command prints with ``-o json``."""
        return json.loads(self.runs(*words, "-o", "json", code=code).stdout)

    def rows(self, *words: str) -> list[list[str]]:
        """The rows of the table that a command prints, without the heading."""
        return [line.split() for line in self.says(*words).splitlines()[1:]]
