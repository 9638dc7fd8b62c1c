"""What lands in site-packages: ``volcano_py/...`` and nothing else."""

import subprocess
import sys
import zipfile
from importlib.metadata import entry_points
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

from tests.project.layout import ROOT, rooms


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel built from a copy, so that no older build folder can leak into it."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "setup.py", "LICENSE"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    for room in rooms():
        copytree(ROOT / room, source / room, ignore=ignore_patterns("__pycache__"))
    (source / "tests").mkdir()
    (source / "tests" / "__init__.py").touch()
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--wheel-dir", str(target), str(source)], check=True)
    return zipfile.ZipFile(next(target.glob("*.whl")))


def test_a_wheel_installs_volcano_py_only(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" not in name}
    assert tops == {"volcano_py"}
    assert not [name for name in wheel.namelist() if name.startswith("volcano_py/tests")]


def test_a_wheel_holds_every_module_and_type_marker(wheel: zipfile.ZipFile) -> None:
    wanted = {p.relative_to(ROOT) for room in rooms() for p in (ROOT / room).rglob("*.py")}
    wanted |= {Path(room, "py.typed") for room in rooms()}
    assert {f"volcano_py/{path.as_posix()}" for path in wanted} <= set(wheel.namelist())


def test_the_editable_install_reads_this_tree_from_any_folder(tmp_path: Path) -> None:
    code = "import volcano_py.scheduler.model as m; print(m.__file__)"
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert Path(shown.strip()) == ROOT / "scheduler" / "model" / "__init__.py"


def test_the_command_is_installed() -> None:
    (command,) = entry_points(group="console_scripts", name="volcano-py")
    assert command.value == "volcano_py.cli.main:main"
    assert Path(sys.executable).with_name("volcano-py").exists()
