"""Every hooked symbol, in every way that a program may come by it, is the library's, of the ABI asked for."""

import pytest

from tests.shim.harness import LIBRARY, OUT_OF_MEMORY, WAYS, Slice, entries
from tests.shim.stub import build

VERSIONS = (10020, 11040, 12000, 12090, 13000)


@pytest.mark.parametrize("way", WAYS)
def test_every_symbol_is_ours(pod: Slice, way: str) -> None:
    linkable = set(build.driver_names())
    with pod.probe(way) as probe:
        strangers = {
            entry.symbol: owner
            for entry in entries()
            if not (way == "direct" and entry.symbol not in linkable)
            if [LIBRARY.name] != (owner := probe.ask(f"whose {entry.symbol}"))
        }
    assert strangers == {}


@pytest.mark.parametrize("way", ["proc", "proc2"])
def test_every_symbol_is_ours_where_the_driver_answers_what_it_does_not_export(pod: Slice, way: str) -> None:
    with pod.probe(way, {"STUB_HIDDEN_ENTRIES": "1"}) as probe:
        strangers = [e.symbol for e in entries() if probe.ask(f"whose {e.symbol}") != [LIBRARY.name]]
        assert strangers == []
        probe.start()
        assert probe.take("a", 900) == 0
        assert probe.take("b", 200) == OUT_OF_MEMORY


def test_the_linked_program_knows_every_symbol_that_the_stub_has() -> None:
    cuda = {entry.symbol for entry in entries() if entry.symbol.startswith("cu")}
    assert cuda - set(build.driver_names()) == set()


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize(
    "base", ["cuMemAlloc", "cuMemFree", "cuCtxCreate", "cuGraphInstantiate", "cuLaunchKernel"]
)
def test_a_version_asked_for_gets_the_abi_of_that_version(pod: Slice, base: str, hidden: bool) -> None:
    """The hook is of the same ABI as what the bare driver answers, and flags for per-thread streams count."""
    script = (
        "import ctypes, os\n"
        "lib = ctypes.CDLL('libcuda.so.1')\n"
        "class Place(ctypes.Structure):\n"
        "    _fields_ = [(n, ctypes.c_void_p) for n in ('file', 'base', 'name', 'at')]\n"
        "def name(at):\n"
        "    place = Place()\n"
        "    ctypes.CDLL(None).dladdr(ctypes.c_void_p(at), ctypes.byref(place))\n"
        "    owner = os.path.basename(ctypes.string_at(place.file).decode())\n"
        "    return f'{owner}:{ctypes.string_at(place.name).decode()}'\n"
        f"for version in {VERSIONS}:\n"
        "    for flags in (0, 1, 2):\n"
        "        at, status = ctypes.c_void_p(), ctypes.c_int(9)\n"
        "        mode = ctypes.c_uint64(flags)\n"
        f"        one = lib.cuGetProcAddress(b'{base}', ctypes.byref(at), version, mode)\n"
        "        first = name(at.value) if at.value else '-'\n"
        f"        ask = (b'{base}', ctypes.byref(at), version, mode, ctypes.byref(status))\n"
        "        two = lib.cuGetProcAddress_v2(*ask)\n"
        "        print(version, flags, one, first, two, status.value, name(at.value) if at.value else '-')\n"
    )
    ours = pod.python(script, {"STUB_HIDDEN_ENTRIES": "1"} if hidden else None)
    bare = pod.python(script, {"LD_PRELOAD": ""})
    assert "libcuda.so.1" not in ours
    assert ours.replace(LIBRARY.name, "libcuda.so.1") == bare
    assert "ptsz" in ours or base != "cuLaunchKernel"


def test_many_threads_look_up_at_once(pod: Slice) -> None:
    script = (
        "import ctypes, threading\n"
        "lib = ctypes.CDLL('libcuda.so.1')\n"
        "dlsym = ctypes.CDLL(None).dlsym\n"
        "dlsym.restype = ctypes.c_void_p\n"
        "dlsym.argtypes = (ctypes.c_void_p, ctypes.c_char_p)\n"
        "missing = []\n"
        "def look():\n"
        "    for _ in range(1000):\n"
        "        for handle in (lib._handle, 0):\n"
        "            if not dlsym(handle, b'cuMemAlloc_v2'):\n"
        "                missing.append(handle)\n"
        "threads = [threading.Thread(target=look) for _ in range(8)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print(len(missing))\n"
    )
    assert pod.python(script) == "0"


def test_names_that_nobody_has_are_refused_as_the_driver_does(pod: Slice) -> None:
    script = (
        "import ctypes\n"
        "lib = ctypes.CDLL('libcuda.so.1')\n"
        "at, status, mode = ctypes.c_void_p(), ctypes.c_int(9), ctypes.c_uint64(0)\n"
        "for name, version in ((b'cuNoSuchThing', 12000), (b'cuMemAllocAsync', 10000)):\n"
        "    code = lib.cuGetProcAddress_v2(name, ctypes.byref(at), version, mode, ctypes.byref(status))\n"
        "    print(code, status.value, at.value)\n"
        "print(lib.cuGetProcAddress_v2(None, ctypes.byref(at), 12000, ctypes.c_uint64(0), None))\n"
        "print(hasattr(lib, 'cuNoSuchThing'), hasattr(ctypes.CDLL(None), 'nvmlNoSuchThing'))\n"
    )
    assert pod.python(script) == pod.python(script, {"LD_PRELOAD": ""})
