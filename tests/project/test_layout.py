"""The map holds: rooms, dependencies, contracts and commands agree with what is on disk."""

import ast
import os
import re
import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.project.layout import ROOT, pyproject, rooms

FOLDERS = sorted({p.parent for room in rooms() for p in (ROOT / room).rglob("*.py")})


def declared() -> dict[str, Requirement]:
    """Every dependency of the project, extras included, by canonical name."""
    project = pyproject()["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    return {canonicalize_name(r.name): r for group in groups for r in map(Requirement, group)}


def locked() -> dict[str, str]:
    """Version by canonical name, as requirements.lock pins it; what exists for Linux alone says so."""
    lines = (ROOT / "requirements.lock").read_text().split()
    pins = [re.fullmatch(r"([\w.-]+)==([\w.]+)(;sys_platform=='linux')?", line) for line in lines]
    assert all(pins), f"only NAME==VERSION belongs in the lock: {lines}"
    return {canonicalize_name(pin[1]): pin[2] for pin in pins if pin}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_folder_with_python_is_a_package_that_says_what_it_decides(folder: Path) -> None:
    """Without an ``__init__.py`` setup.py would leave the folder out of the wheel."""
    init = folder / "__init__.py"
    assert init.exists(), f"{folder} would not be installed"
    assert ast.get_docstring(ast.parse(init.read_text())), f"{init} says nothing"


def test_every_room_is_typed_and_under_contract() -> None:
    contract = pyproject()["tool"]["importlinter"]["root_packages"]
    assert sorted(contract) == [f"volcano_py.{room}" for room in rooms()]
    assert [room for room in rooms() if not (ROOT / room / "py.typed").exists()] == []


def test_static_tools_see_the_installed_names() -> None:
    assert os.readlink(ROOT / "typings" / "volcano_py") == ".."


def test_the_lock_satisfies_what_is_declared() -> None:
    """The extras for a live cluster and for cards wait for the rooms that use them."""
    pins = locked()
    project = pyproject()["project"]
    needed = [Requirement(r) for r in project["dependencies"] + project["optional-dependencies"]["dev"]]
    unmet = [str(r) for r in needed if not r.specifier.contains(pins.get(canonicalize_name(r.name), "0"))]
    assert unmet == []


def test_every_dependency_is_explained_and_nothing_else_is() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text()
    explained = re.findall(r"^\| `([\w-]+)` \|", page, flags=re.MULTILINE)
    assert sorted(map(canonicalize_name, explained)) == sorted(declared())


def test_make_alone_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.+)$", makefile, flags=re.MULTILINE)
    assert phony
    shown = subprocess.run(["make", "-C", str(ROOT)], capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^  make ([\w-]+) +\S", shown, flags=re.MULTILINE)) == set(phony[1].split())


def test_ci_runs_what_a_developer_runs() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "set -euo pipefail" in script.read_text()
    assert script.read_text().rstrip().endswith("make test")
