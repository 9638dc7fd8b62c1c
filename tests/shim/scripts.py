"""Programs that are run to their end for what they print."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.shim.harness import DEADLINE_S
from tests.shim.stub import build
from tests.shim.stub.state import Driver


def lines_of(command: Sequence[str | Path], environment: Mapping[str, str]) -> list[str]:
    """Lines that *command* prints; its errors are told where it fails."""
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def says(driver: Driver, script: str, container: str = "") -> list[str]:
    """Lines that *script* prints with *driver*'s cards, in a process of its own: one loads a driver once."""
    environment = {**os.environ, **driver.environment(build.build(), container)}
    return lines_of([sys.executable, "-c", script], environment)
