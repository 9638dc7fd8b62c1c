"""Parts: started, started again, stopped, and never left behind."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.playground.starting import WAIT_S, processes_of, until
from volcano_py.simulator.playground.folder import PlaygroundError
from volcano_py.simulator.playground.parts import Part, PartSpec
from volcano_py.simulator.playground.tether import tethered

PYTHON = [sys.executable, "-c"]


async def always() -> bool:
    return True


async def never() -> bool:
    return False


def test_a_part_that_ends_is_started_again(tmp_path: Path) -> None:
    told: list[str] = []
    mark = tmp_path / "mark"
    code = (
        f"import os, time; p = {str(mark)!r}; old = os.path.exists(p); open(p, 'w'); old and time.sleep(600)"
    )

    async def course() -> int | None:
        part = Part(PartSpec("walker", [*PYTHON, f"{code}; raise SystemExit(3)"], always), tmp_path / "log")
        await part.start()
        keeping = asyncio.ensure_future(part.keep(told.append))
        while len(told) < 2:
            await asyncio.sleep(0.02)
        pid = part.pid
        await part.stop()
        await keeping
        return pid

    assert asyncio.run(asyncio.wait_for(course(), WAIT_S)) is not None
    assert told[0].startswith("walker ended with code 3")
    assert told[1] == "walker was started again"


def test_a_part_that_does_not_come_up_says_its_last_words(tmp_path: Path) -> None:
    async def course() -> None:
        part = Part(PartSpec("walker", [*PYTHON, "raise SystemExit('no legs')"], never), tmp_path / "log")
        await part.start()

    with pytest.raises(PlaygroundError, match=r"(?s)walker ended with code 1; its last lines:\n    no legs"):
        asyncio.run(asyncio.wait_for(course(), WAIT_S))


def test_a_part_that_is_never_ready_is_told(tmp_path: Path) -> None:
    async def course() -> None:
        spec = PartSpec("walker", [*PYTHON, "import time; time.sleep(600)"], never, ready_s=0.3)
        part = Part(spec, tmp_path / "log")
        try:
            await part.start()
        finally:
            await part.stop()

    with pytest.raises(PlaygroundError, match="walker is not ready after"):
        asyncio.run(asyncio.wait_for(course(), WAIT_S))


def test_a_part_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    ready = tmp_path / "deaf"
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN)"

    async def is_deaf() -> bool:
        return ready.exists()

    async def course() -> None:
        code = f"{deaf}; open({str(ready)!r}, 'w'); time.sleep(600)"
        part = Part(PartSpec("walker", [*PYTHON, code], is_deaf, grace_s=0.2), tmp_path / "log")
        await part.start()
        await part.stop()
        assert part.pid is None

    asyncio.run(asyncio.wait_for(course(), WAIT_S))


def test_a_tethered_program_dies_with_its_parent_even_by_sigkill(tmp_path: Path) -> None:
    """A parent that starts a child which would sleep for minutes, and is killed."""
    child = [*PYTHON, f"import time; open({str(tmp_path / 'up')!r}, 'w'); time.sleep(600)"]
    code = (
        "import subprocess, time;"
        "from volcano_py.simulator.playground.tether import tethered;"
        f"subprocess.Popen(tethered({child!r}), start_new_session=True); time.sleep(600)"
    )
    parent = subprocess.Popen([*PYTHON, code])
    until((tmp_path / "up").exists)
    children = set(processes_of(tmp_path)) - {parent.pid}
    assert children
    parent.kill()
    parent.wait()
    until(lambda: not children & set(processes_of(tmp_path)))


def test_a_tethered_program_whose_parent_is_gone_does_not_begin() -> None:
    argv = tethered([*PYTHON, "print('began')"])
    argv[argv.index(str(os.getpid()))] = "1"
    done = subprocess.run(argv, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert (done.returncode, done.stdout) == (1, "")
