"""A wall clock that jumps, for processes that a test starts: ``clock/shift.c``, built when it is needed."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from typing import Final

from tests.e2e.programs import lacks

SOURCE: Final = Path(__file__).parent / "clock" / "shift.c"
_SHIFT: Final = struct.Struct("<q")


class WallClock:
    """The clock of some processes.

    Attributes:
        environment: what they have to be started with.
    """

    def __init__(self, place: Path) -> None:
        self._file = place / "shift"
        self._file.write_bytes(_SHIFT.pack(0))
        self.environment = {"LD_PRELOAD": str(_built(place)), "CLOCK_SHIFT_FILE": str(self._file)}

    def shift(self, seconds: int) -> None:
        """Let it be so far ahead of ours from now on."""
        with open(self._file, "r+b", buffering=0) as file:
            file.write(_SHIFT.pack(seconds))


def _built(place: Path) -> Path:
    """The library; without a C compiler the test fails in CI, and is skipped elsewhere."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        lacks("no C compiler (cc) to build tests/e2e/clock/shift.c with")
    library = place / "shift.so"
    command = [
        compiler,
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-shared",
        "-fPIC",
        "-o",
        str(library),
        str(SOURCE),
        "-ldl",
    ]
    subprocess.run(command, check=True, timeout=120)
    return library
