"""Rings when a pod comes that has no node: then those who read the server may rest for long meanwhile.

Reading the watch of all pods costs most for being woken, so while nothing that comes matters it is read
seldom. What may not wait then is a new pod. A second watch, of pods without a node alone, tells of it; what
it says is not read, only that it says something. It is there only while it is needed: each pod that is bound
would go through it too, which costs the server as much as the bind's event on the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from volcano_py.client.api import RESOURCES, Api, ApiError, Unreachable

__all__ = ["Bell"]

_WATCH_S: Final = 600
_SILENCE_S: Final = 150.0
_QUIET: Final = (b'{"type":"BOOKMARK"', b'{"type":"DELETED"')
"""Events of pods that went, or have a node by now."""


class Bell:
    """Listens on demand, until it has rung once.

    Attributes:
        is_up: whoever comes now is heard.
    """

    def __init__(self, api: Api, ring: Callable[[], None]) -> None:
        """*ring* is called when somebody came, or when listening ended and so somebody may have."""
        self.is_up = False
        self._api, self._ring = api, ring
        self._version = ""
        self._wanted = asyncio.Event()
        self._scope: asyncio.Timeout | None = None

    def listen(self, version: str) -> None:
        """Ring for who comes after *version*; nothing new where it listens already."""
        if not self._wanted.is_set():
            self._version = version
            self._wanted.set()

    def hush(self) -> None:
        """Listen no more, and do not ring."""
        if self._wanted.is_set():
            self._wanted.clear()
            self.is_up = False
            if self._scope is not None and not self._scope.expired():
                self._scope.reschedule(0.0)

    async def run(self) -> None:
        """Do what is asked until cancelled."""
        while True:
            await self._wanted.wait()
            ended = await self._listened()
            self.is_up = False
            if ended and self._wanted.is_set():
                self._wanted.clear()
                self._ring()

    async def _listened(self) -> bool:
        """Listen until there is something to ring for; False where nobody wants it any more before."""
        if not self._wanted.is_set():
            return False
        try:
            async with asyncio.timeout(None) as self._scope:
                await self._hear()
        except TimeoutError:
            return False
        except (ApiError, Unreachable):
            return True  # who came is not heard of: say so
        finally:
            self._scope = None
        return True

    async def _hear(self) -> None:
        """Return when somebody has come, or the server ends the watch."""
        query = {
            "watch": "1",
            "fieldSelector": "spec.nodeName=",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_S),
        }
        lines = self._api.line_batches(RESOURCES["Pod"].path(), query, idle_timeout_s=_SILENCE_S)
        async with aclosing(lines) as batches:
            async for batch in batches:
                self.is_up = self._wanted.is_set()
                if any(line and not line.startswith(_QUIET) for line in batch):
                    return
