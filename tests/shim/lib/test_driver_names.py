"""Whatever the driver offers that may take memory or time of a card is in the one list, hooked or left alone.

``driver_names.txt`` has the names that the headers of CUDA 12.9 and 13.5 declare (cuda.h and those for GL,
EGL, VDPAU). Where a newer header is installed, it must declare no name that the file hasn't.
"""

import os
import re
import sysconfig
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.shim.stub.build import SYMBOLS

NAMES = Path(__file__).with_name("driver_names.txt")
TAKES = re.compile(
    "Alloc|Attach|Bind|Checkpoint|Connect|Create|Decompress|Discard|Endpoint|Graphics|Import|Instantiate"
    "|Launch|Link|Load|Map|Memcpy|Memset|Open|Prefetch|Recapture|Regist|Restore|SetLimit|Set(Mem)?Pool|Update"
    "|Upload|Add.*Node|(Ctx|Handle)Retain|CtxFrom"
)
ASKS_OR_GIVES = re.compile("Get|Set.*Flags|SetParams|Is[A-Z]|Destroy|Free(Host|Async)?|Unload|Unregister")


def listed() -> tuple[set[str], list[str]]:
    """Names that are hooked or called, and the patterns of what is left alone."""
    symbols = tomllib.loads(SYMBOLS.read_text())
    hooked = {entry["name"] for entry in symbols["symbol"]}
    hooked |= {f"{entry['name']}_ptsz" for entry in symbols["symbol"] if "ptsz" in entry}
    needed = {entry["name"] for entry in symbols["needed"]}
    return hooked | needed, [name for entry in symbols["uncounted"] for name in entry["names"]]


def declared(header: str) -> set[str]:
    """The functions of a driver's header, under all names that its macros give them."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    found = set(re.findall(r"\bCUDAAPI\s+(cu[A-Z]\w+)\s*\(", text))
    for name, other in re.findall(r"#\s*define\s+(cu[A-Z]\w+)\s+(cu[A-Z]\w+)\b", text):
        found |= {name, other}
    per_thread = r"#\s*define\s+(cu[A-Z]\w+)\s+__CUDA_API_(PTSZ|PTDS)\((cu[A-Z]\w+)\)"
    for name, kind, other in re.findall(per_thread, text):
        found |= {name, other, f"{other}_{kind.lower()}"}
    return found


def headers() -> list[Path]:
    """Every cuda.h that is installed: of a toolkit, or of NVIDIA's packages for Python."""
    homes = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include" / "cuda.h"]
    packages = Path(sysconfig.get_path("purelib")).glob("nvidia/*/include/cuda.h")
    return [path for path in (*homes, *packages) if path.is_file()]


def test_all_that_may_take_memory_or_time_is_in_the_list() -> None:
    known, patterns = listed()
    names = NAMES.read_text().split()
    takers = [name for name in names if TAKES.search(name) and not ASKS_OR_GIVES.search(name)]
    assert len(takers) > 200
    missing = {name for name in takers if name not in known}
    assert {name for name in missing if not any(fnmatchcase(name, p) for p in patterns)} == set()


def test_the_list_has_no_name_that_the_driver_has_not() -> None:
    """A name with a slip of the pen would never be looked up by anybody."""
    known, _ = listed()
    driver = {name for name in known if name.startswith("cu")}
    assert driver - set(NAMES.read_text().split()) == set()


def test_a_header_is_read_with_all_its_names() -> None:
    text = (
        "#define cuMemAlloc cuMemAlloc_v2\n"
        "    #define cuMemFreeAsync   __CUDA_API_PTSZ(cuMemFreeAsync)\n"
        "/* CUresult CUDAAPI cuNothing(void); */\n"
        "CUresult CUDAAPI cuMemCreate(void);\n"
    )
    expected = {"cuMemAlloc", "cuMemAlloc_v2", "cuMemFreeAsync", "cuMemFreeAsync_ptsz", "cuMemCreate"}
    assert declared(text) == expected


@pytest.mark.skipif(not headers(), reason="no cuda.h is installed")
def test_an_installed_header_declares_nothing_new() -> None:
    names = set(NAMES.read_text().split())
    for header in headers():
        assert declared(header.read_text()) - names == set(), header
