"""The scheduler and the controllers as processes of their own, as a cluster runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.controlplane.controlplane import end_process

WAIT_S: Final = 120.0


class Component:
    """One process of ours.

    Attributes:
        log: what it wrote.
        environment: variables that it has besides ours.
    """

    def __init__(self, name: str, kubeconfig: Path, place: Path, *arguments: str) -> None:
        self.name, self.log = name, place / f"{name}.log"
        self.environment: Mapping[str, str] = {}
        self._command = [sys.executable, "-m", "volcano_py.cli.main", name, "--kubeconfig", str(kubeconfig)]
        self._command += arguments
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; does not wait."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **self.environment},
            )

    def kill(self) -> None:
        """End it as a crash would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self.process is not None
        os.kill(self.process.pid, number)

    def stop(self) -> int:
        """Ask it to end; its exit status."""
        assert self.process is not None
        end_process(self.process.pid, WAIT_S)
        return self.process.wait()

    def ended(self) -> int:
        """Wait until it has ended by itself; its exit status."""
        assert self.process is not None
        return self.process.wait(WAIT_S)

    def alive(self) -> bool:
        """Whether it runs."""
        return self.process is not None and self.process.poll() is None

    def has_logged(self, text: str) -> bool:
        """Whether *text* stands anywhere in its log."""
        return self.log.exists() and text in self.log.read_text(errors="replace")

    def samples(self) -> list[Sample]:
        """What it counts."""
        lines = (json.loads(line) for line in self.log.read_text().splitlines() if '"started"' in line)
        started = next(line for line in lines if line["event"] == "started")
        with urllib.request.urlopen(f"http://{started['addresses'][0]}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        return [sample for family in text_string_to_metric_families(text) for sample in family.samples]

    def figures(self) -> dict[str, float]:
        """What it counts: name and labels -> value."""
        return {" ".join((sample.name, *sample.labels.values())): sample.value for sample in self.samples()}

    def said(self) -> str:
        """The end of its log, for a failing test."""
        return self.log.read_text(errors="replace")[-4000:] if self.log.exists() else ""
