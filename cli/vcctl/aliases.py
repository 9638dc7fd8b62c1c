"""Short programs for people who come from Slurm: each is one verb of ``vcctl-py``."""

from __future__ import annotations

import sys
from typing import NoReturn

from volcano_py.cli.vcctl.main import app


def _run(*verb: str) -> NoReturn:
    app([*verb, *sys.argv[1:]])
    raise SystemExit(0)


def vsub() -> None:
    """Submit a job."""
    _run("job", "run")


def vjobs() -> None:
    """List jobs."""
    _run("job", "list")


def vqueues() -> None:
    """List queues."""
    _run("queue", "list")


def vcancel() -> None:
    """Delete a job."""
    _run("job", "delete")


def vsuspend() -> None:
    """Suspend a job."""
    _run("job", "suspend")


def vresume() -> None:
    """Resume a job."""
    _run("job", "resume")
