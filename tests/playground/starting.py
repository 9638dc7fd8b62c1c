"""Playgrounds as processes, for these tests."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
VOLCANO_PY: Final = str(ROOT / ".venv" / "bin" / "volcano-py")
UP_S: Final = 300.0
WAIT_S: Final = 120.0


@contextmanager
def running(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """*command* as a process in the checkout, once it says that it is up; ended at the end."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True
        )
    try:
        until(lambda: "Ctrl-C stops it" in log.read_text() or process.poll() is not None, within_s=UP_S)
        assert process.poll() is None, log.read_text()
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(WAIT_S)


def until(holds: Callable[[], object], *, within_s: float = WAIT_S) -> None:
    """Wait until *holds*, or fail."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "not so in time"
        time.sleep(0.05)


def processes_of(folder: Path) -> dict[int, str]:
    """Command lines of all processes that name *folder*, by process."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line and int(entry.name) != os.getpid():
            found[int(entry.name)] = line
    return found
