"""Where the programs of a real control plane are, and what to do without them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest


def folder() -> Path:
    """``$KUBEBUILDER_ASSETS``, else where ``make controlplane`` puts them."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        return Path(assets)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "volcano-py", "controlplane", "bin")


def need(name: str) -> Path:
    """The program *name*; the test fails in CI, and is skipped elsewhere, where there is none."""
    program = folder() / name
    if not program.is_file():
        lacks(f"no {name} in {folder()}: run 'make controlplane' (needs go) or set KUBEBUILDER_ASSETS")
    return program


def lacks(message: str) -> NoReturn:
    """The machine lacks what the test needs: it fails in CI, and is skipped elsewhere."""
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)
