"""Builds the stub driver's libraries into ``build/shim/stub``."""

import fcntl
import os
import subprocess
from pathlib import Path

SOURCES = Path(__file__).parent
ROOT = SOURCES.parents[2]
OUTPUT = ROOT / "build" / "shim" / "stub"

CFLAGS = (
    "-std=c11",
    "-D_GNU_SOURCE",
    "-O2",
    "-g",
    "-fvisibility=hidden",
    "-fPIC",
    "-Wall",
    "-Wextra",
    "-Werror",
)

LIBRARIES = {
    "libnvidia-ml.so.1": (
        "state.c",
        "books.c",
        "nvml.c",
        "nvml_memory.c",
        "nvml_topology.c",
        "nvml_events.c",
    ),
}
"""Each library's sources; headers are every library's."""


def compile_shared(output: Path, sources: list[Path], *flags: str) -> None:
    """Links *sources* to the shared library *output*, which is replaced in one step.

    Raises:
        subprocess.CalledProcessError: The compiler refused; its words are on stderr.
    """
    partial = output.with_name(f".{output.name}.{os.getpid()}")
    name = f"-Wl,-soname,{output.name}"
    command = ["gcc", *CFLAGS, *flags, "-shared", name, "-o", str(partial), *map(str, sources)]
    subprocess.run([*command, "-lpthread", "-ldl"], check=True)
    partial.replace(output)


def is_stale(output: Path, sources: list[Path]) -> bool:
    """Whether *output* is missing or older than one of *sources*."""
    return not output.exists() or output.stat().st_mtime < max(source.stat().st_mtime for source in sources)


def build(output: Path = OUTPUT) -> Path:
    """Builds what is stale and returns the folder; several callers at once wait for each other."""
    output.mkdir(parents=True, exist_ok=True)
    with (output / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        headers = [*sorted(SOURCES.glob("*.h")), Path(__file__)]
        for library, names in LIBRARIES.items():
            sources = [SOURCES / name for name in names]
            if is_stale(output / library, sources + headers):
                compile_shared(output / library, sources)
    return output


if __name__ == "__main__":
    build()
