"""The one list of symbols: what is made of it, and that nothing made of it is stale."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
LIB = ROOT / "shim" / "lib"


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("shim_generate", LIB / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


generate = _generator()


def test_the_table_for_people_is_what_the_list_makes() -> None:
    page = (ROOT / "docs" / "shim.md").read_text()
    assert page == generate.with_table(page), "run: python3 shim/lib/generate.py docs docs/shim.md"


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="no <!-- symbols"):
        generate.with_table("# nothing")


def test_names_are_unique_sorted_and_of_the_drivers() -> None:
    for library, starts in (("vgpu", ("cu", "nvml")), ("vnpu", ("aclrt",))):
        names = [symbol.name for symbol in generate.load(library)]
        assert names == sorted(set(names))
        assert all(name.startswith(starts) for name in names)


def test_a_base_has_one_abi_a_version_and_stream_kind() -> None:
    keys = [(s.base, s.since, s.per_thread) for s in generate.load() if s.driver == "CUDA"]
    assert sorted(keys) == sorted(set(keys))


def test_bodies_are_shared_only_by_equal_signatures() -> None:
    symbols = list(generate.load())
    odd = generate.Symbol("cuOdd", "cuOdd", 1, False, "int other", "cuMemFree_v2", "memory", "")
    with pytest.raises(ValueError, match="share a body"):
        generate.hooks_h([*symbols, odd], [])


def test_arguments_are_the_names_of_parameters() -> None:
    parameters = {symbol.name: symbol.arguments for symbol in generate.load()}
    assert parameters["cuCtxSynchronize"] == ""
    assert parameters["cuMemAlloc_v2"] == "dptr, bytesize"
    assert (
        parameters["cuGraphAddMemAllocNode"]
        == "phGraphNode, hGraph, dependencies, numDependencies, nodeParams"
    )


def built(name: str) -> str:
    """The library *name*, up to date."""
    subprocess.run(["make", "-s", "shim"], cwd=ROOT, check=True, timeout=300)
    return str(ROOT / "build" / "shim" / f"lib{name}.so")


def told(*command: str) -> list[str]:
    """Lines that *command* prints."""
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", ["vgpu", "vnpu"])
def test_a_library_exports_the_list_and_the_lookups_and_nothing_else(name: str) -> None:
    library = built(name)
    exported = {line.split()[-1] for line in told("nm", "-D", "--defined-only", library)}
    assert exported == {symbol.name for symbol in generate.load(name)} | {"dlmopen", "dlsym", "dlvsym"}
    needed = [line for line in told("readelf", "-d", library) if "(NEEDED)" in line]
    libraries = [line.split("[")[1].rstrip("]") for line in needed]
    assert {name.split(".")[0] for name in libraries} <= {"libc", "libdl", "libpthread", "ld-linux-x86-64"}


@pytest.mark.parametrize("name", ["vgpu", "vnpu"])
def test_a_library_loads_in_old_containers(name: str) -> None:
    """Nothing newer than glibc 2.17 is asked for, whatever the machine that builds has."""
    text = "\n".join(told("objdump", "-T", built(name)))
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([\d.]+)", text)}
    assert max(versions) <= (2, 17)


@pytest.mark.parametrize("name", ["vgpu", "vnpu"])
def test_a_library_does_nothing_when_it_is_loaded(name: str) -> None:
    """The compiler's own entry is the only thing that runs before the first call that matters."""
    sizes = [line.split()[-2] for line in told("readelf", "-d", built(name)) if "_ARRAYSZ)" in line]
    assert set(sizes) <= {"8"}


def test_a_program_that_touches_no_card_opens_no_file_of_ours(tmp_path: Path) -> None:
    library = built("vgpu")
    look = "import ctypes, threading; ctypes.CDLL(None).getpid; print(open('/proc/self/maps').read())"
    environment = os.environ | {"LD_PRELOAD": library, "VOLCANO_PY_REGION": str(tmp_path / "missing")}
    done = subprocess.run(
        [sys.executable, "-c", look], env=environment, check=True, capture_output=True, text=True, timeout=60
    )
    assert library in done.stdout
    assert "libcuda" not in done.stdout
    assert done.stderr == ""
