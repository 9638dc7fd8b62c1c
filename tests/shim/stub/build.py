"""Builds the stub driver's libraries, and the programs that use them, into ``build/shim/stub``."""

import fcntl
import os
import re
import subprocess
import tomllib
from pathlib import Path

SOURCES = Path(__file__).parent
PROGRAMS = SOURCES.parent / "programs"
ROOT = SOURCES.parents[2]
SYMBOLS = ROOT / "shim" / "lib" / "symbols.toml"
OUTPUT = ROOT / "build" / "shim" / "stub"

WARNINGS = ("-Wall", "-Wextra", "-Werror")
CFLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-g", "-fvisibility=hidden", "-fPIC", *WARNINGS)
LIBS = ("-lpthread", "-ldl")

BOOKS = ("state.c", "books.c")
CUDA = (
    *("device", "context", "memory", "array", "pool", "pool_sharing", "virtual", "multicast", "tiles"),
    *("stream", "launch", "graph", "graph_memory", "nodes", "capture", "lookup"),
)
NVML = ("nvml.c", "nvml_memory.c", "nvml_topology.c", "nvml_mig.c", "nvml_events.c")
LIBRARIES = {
    "libcuda.so.1": (*BOOKS, "objects.c", *(f"cuda_{part}.c" for part in CUDA)),
    "libnvidia-ml.so.1": (*BOOKS, *NVML),
    "libascendcl.so": (*BOOKS, "objects.c", "ascend.c"),
    "libclock.so": ("clock.c",),
    "runtime/libcudart.so.12": ("runtime.c", "runtime_streams.c"),
}
"""Each library's sources; headers are every library's. The runtime stands aside, for those who ask for it."""

COMMANDS = {
    "probe": ("probe.c", "probe_memory.c", "families.c", "entry.c"),
    "spin": ("spin.c", "entry.c"),
    "launches": ("launches.c", "entry.c"),
    "storm": ("storm.c", "families.c", "entry.c"),
    "fuzz": ("fuzz.c", "entry.c"),
    "bypass": ("bypass.c",),
    "stepkill": ("stepkill.c", "families.c", "entry.c"),
    "leaper": ("leaper.c", "families.c", "entry.c"),
    "taker": ("taker.c",),
}
"""Each program's sources. Built twice: ``NAME`` looks the driver up, ``NAME-linked`` is linked to it."""


def compile_to(output: Path, sources: list[Path], *flags: str) -> None:
    """Compiles *sources* to *output*, which is replaced in one step.

    Raises:
        subprocess.CalledProcessError: The compiler refused; its words are on stderr.
    """
    partial = output.with_name(f".{output.name}.{os.getpid()}")
    command = ["gcc", *CFLAGS, *flags, "-o", str(partial), *map(str, sources), *LIBS]
    subprocess.run(command, check=True)
    partial.replace(output)


def is_stale(output: Path, sources: list[Path]) -> bool:
    """Whether *output* is missing or older than one of *sources*."""
    return not output.exists() or output.stat().st_mtime < max(source.stat().st_mtime for source in sources)


def driver_names() -> list[str]:
    """Every function of the driver that our programs or the library name, as far as the stub has it."""
    entries = tomllib.loads(SYMBOLS.read_text())["symbol"]
    names = {entry["name"] for entry in entries} | {f"{entry['name']}_ptsz" for entry in entries}
    for source in PROGRAMS.glob("*.c"):
        names |= set(re.findall(r'"(cu[A-Z]\w+)"', source.read_text()))
    stub = "".join(source.read_text() for source in SOURCES.glob("cuda_*.c"))
    return sorted(names & set(re.findall(r"CU_API (cu\w+)\(", stub)))


def write_linked(header: Path) -> None:
    """The header by which a linked program knows the address of each name."""
    names = driver_names()
    lines = [f"extern int {name}(void);" for name in names]
    lines += ["", "static void *linked(const char *symbol) {"]
    lines += ["\tstatic const struct {", "\t\tconst char *symbol;", "\t\tvoid *at;", "\t} all[] = {"]
    lines += [f'\t\t{{"{name}", (void *){name}}},' for name in names]
    lines += ["\t};", "\tfor (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {"]
    lines += ["\t\tif (strcmp(all[i].symbol, symbol) == 0) {", "\t\t\treturn all[i].at;", "\t\t}", "\t}"]
    lines += ["\treturn NULL;", "}", ""]
    text = "\n".join(lines)
    if not header.exists() or header.read_text() != text:
        header.write_text(text)


def build(output: Path = OUTPUT) -> Path:
    """Builds what is stale and returns the folder; several callers at once wait for each other."""
    output.mkdir(parents=True, exist_ok=True)
    with (output / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _build_libraries(output)
        _build_programs(output)
    return output


def _build_libraries(output: Path) -> None:
    shared = [*sorted(SOURCES.glob("*.h")), Path(__file__)]
    for library, names in LIBRARIES.items():
        sources = [SOURCES / name for name in names]
        if is_stale(output / library, sources + shared):
            # Versioned by its own name: dlvsym has something to find, and programs their runtime's versions.
            versioned = ("-Wl,--default-symver",) if ".so." in library else ()
            (output / library).parent.mkdir(exist_ok=True)
            name = (output / library).name
            compile_to(output / library, sources, "-shared", f"-Wl,-soname,{name}", *versioned)


def _build_programs(output: Path) -> None:
    linked = output / "linked.h"
    write_linked(linked)
    shared = [*sorted(PROGRAMS.glob("*.h")), *sorted(SOURCES.glob("*.h")), Path(__file__)]
    for program, names in COMMANDS.items():
        sources = [PROGRAMS / name for name in names]
        if is_stale(output / program, sources + shared):
            compile_to(output / program, sources, "-pie")
        if is_stale(output / f"{program}-linked", [*sources, *shared, linked]):
            objects = [*sources, *sorted(output.glob("libcuda.so.1"))]
            compile_to(output / f"{program}-linked", objects, "-pie", "-DLINKED", f"-I{output}")


def build_sanitized(name: str, sanitize: str, sources: list[Path], *flags: str) -> Path:
    """Builds the program *name* anew with gcc's sanitizers, for example ``address,undefined``."""
    output = OUTPUT / f"{name}-{sanitize.replace(',', '-')}"
    OUTPUT.mkdir(parents=True, exist_ok=True)
    compile_to(output, sources, "-pie", f"-fsanitize={sanitize}", "-fno-omit-frame-pointer", *flags)
    return output


if __name__ == "__main__":
    build()
