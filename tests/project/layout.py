"""Where the project's own files are, for the tests of the scaffold."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NOT_ROOMS = {"tests", "benchmarks", "examples", "docs"}


def rooms() -> list[str]:
    """Top-level folders that are installed as ``volcano_py.<folder>``, sorted."""
    return sorted(p.parent.name for p in ROOT.glob("*/__init__.py") if p.parent.name not in NOT_ROOMS)


def pyproject() -> dict[str, Any]:
    """The project's declaration, parsed."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())
