"""Scripts on the stub driver. A process loads a driver once, so each has a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.shim.stub import build
from tests.shim.stub.state import Driver

DEADLINE_S = 60


def says(state: Driver, script: str) -> list[str]:
    """Lines that *script* prints with *state*'s cards."""
    environment = {**os.environ, **state.environment(build.build())}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
