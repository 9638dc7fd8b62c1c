"""The table of charges, beside a slow and obvious one."""

import subprocess
from pathlib import Path

import pytest

LIB = Path(__file__).parents[3] / "shim" / "lib"
FLAGS = ("-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model test, built with sanitizers."""
    target = tmp_path_factory.mktemp("table") / "table_model"
    sources = [str(Path(__file__).with_name("table_model.c")), str(LIB / "table.c")]
    subprocess.run(["gcc", *FLAGS, f"-I{LIB}", *sources, "-o", str(target)], check=True, timeout=300)
    return target


@pytest.mark.parametrize("seed", range(3))
def test_it_does_what_a_plain_array_does(program: Path, seed: int) -> None:
    done = subprocess.run(
        [str(program), str(seed), "60000"], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "same and drained\n", "")
