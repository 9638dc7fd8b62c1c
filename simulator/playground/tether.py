"""Run a program that ends with its parent: ``python -m ...tether PARENT PROGRAM ARGUMENT...``.

The kernel kills the program when process PARENT ends, however that happens. Linux only; elsewhere the program
runs as it is and relies on being stopped.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def tethered(argv: list[str]) -> list[str]:
    """The command line that runs *argv* as a child that cannot outlive this process."""
    return [sys.executable, "-m", "volcano_py.simulator.playground.tether", str(os.getpid()), *argv]


def main() -> None:
    """Tie this process to its parent, then become the program."""
    parent, program = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the tie was made
        sys.exit(1)
    os.execvp(program[0], program)


if __name__ == "__main__":
    main()
