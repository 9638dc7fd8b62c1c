"""A part of the playground: a child process that is started, watched, started again and stopped.

Children are tied to this process (``tether``) and in sessions of their own, so that Ctrl-C reaches them in
our order. What they write goes to their log file.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from volcano_py.simulator.playground.folder import PlaygroundError
from volcano_py.simulator.playground.tether import tethered

_POLL_S: Final = 0.05
_LONGEST_WAIT_S: Final = 30.0
_LAST_LINES: Final = 5


@dataclass(frozen=True, slots=True)
class PartSpec:
    """What a part is.

    Attributes:
        name: for people, and of its log file.
        argv: its command line.
        is_ready: asked again and again after the start, until it says yes.
        ready_s: how long that may take.
        grace_s: how long it may take to stop.
    """

    name: str
    argv: list[str]
    is_ready: Callable[[], Awaitable[bool]]
    ready_s: float = 120.0
    grace_s: float = 10.0


class Part:
    """One child process and its successors."""

    def __init__(self, spec: PartSpec, log: Path) -> None:
        self.spec = spec
        self.log = log
        self.restarts = 0
        self._process: asyncio.subprocess.Process | None = None
        self._is_stopping = False

    @property
    def pid(self) -> int | None:
        """Its process, while there is one."""
        running = self._process is not None and self._process.returncode is None
        return self._process.pid if running and self._process is not None else None

    async def start(self) -> None:
        """Start it and wait until it is ready.

        Raises:
            PlaygroundError: it ended, or took too long.
        """
        process = await self._spawn()
        deadline = asyncio.get_running_loop().time() + self.spec.ready_s
        while not await self.spec.is_ready():
            if process.returncode is not None:
                raise PlaygroundError(self._ended(process.returncode))
            if asyncio.get_running_loop().time() > deadline:
                raise PlaygroundError(
                    f"{self.spec.name} is not ready after {self.spec.ready_s:.0f} s{self._said()}"
                )
            await asyncio.sleep(_POLL_S)

    async def keep(self, tell: Callable[[str], None]) -> None:
        """Start it again whenever it ends, until it is stopped or this is cancelled."""
        while self._process is not None:
            code = await self._process.wait()
            if self._is_stopping:
                return
            tell(self._ended(code))
            self.restarts += 1
            await asyncio.sleep(min(_LONGEST_WAIT_S, 0.5 * 2.0 ** min(self.restarts, 10)))
            await self._spawn()
            tell(f"{self.spec.name} was started again")

    def expect_end(self) -> None:
        """From now on its end is no fault."""
        self._is_stopping = True

    async def stop(self) -> None:
        """Ask it to stop; kill it when its grace is over."""
        self.expect_end()
        process = self._process
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), self.spec.grace_s)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _spawn(self) -> asyncio.subprocess.Process:
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *tethered(self.spec.argv),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        return self._process

    def _ended(self, code: int) -> str:
        how = f"with code {code}" if code >= 0 else f"by signal {signal.Signals(-code).name}"
        return f"{self.spec.name} ended {how}{self._said()}"

    def _said(self) -> str:
        """Its last words and where the others stand."""
        with contextlib.suppress(OSError):
            lines = self.log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
            if lines:
                return (
                    "; its last lines:\n" + "\n".join(f"    {line}" for line in lines) + f"\n  ({self.log})"
                )
        return f" ({self.log})"
