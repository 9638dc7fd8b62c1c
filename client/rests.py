"""Rests of a reader: while it rests, what comes gathers in the socket and is read together."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

import aiohttp

__all__ = ["Rest"]

_GATHERED: Final = 1 << 20
"""Bytes that wake us in spite of a rest; the system bounds it by its buffer."""


class Rest:
    """How long the reader of one watch rests after each batch; may be shortened at any time."""

    def __init__(self, seconds: float = 0.0) -> None:
        """*seconds*: 0 for no rests."""
        self._seconds = seconds
        self._shortened = asyncio.Event()

    @property
    def seconds(self) -> float:
        """Of each rest from now on."""
        return self._seconds

    @seconds.setter
    def seconds(self, seconds: float) -> None:
        if seconds < self._seconds:
            self._shortened.set()
        self._seconds = seconds

    async def take(self, answer: aiohttp.ClientResponse) -> None:
        """Let what comes of *answer* gather in the socket instead of waking us for each piece.

        Ends at once where rests become shorter meanwhile.
        """
        connection = answer.connection
        transport = None if connection is None else connection.transport
        if self._seconds <= 0 or transport is None or transport.is_closing():
            return
        line = transport.get_extra_info("socket")
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _GATHERED)
        self._shortened.clear()
        try:
            async with asyncio.timeout(self._seconds):
                await self._shortened.wait()
        except TimeoutError:
            pass
        finally:
            if not transport.is_closing():
                line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
