"""A bad network in front of a server: connections that are cut in the middle, and answers that come late."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import yaml

_Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class FlakyProxy:
    """Passes bytes on; TLS stays between the ends, so a cut comes at any byte of a watch or an answer.

    Attributes:
        cut_after: bytes from the server after which a connection is reset, drawn up to this; 0: never.
        late_s: each answer may wait up to so long.
        cuts: connections that were reset.
        is_down: resets all connections and takes on none.
    """

    def __init__(self, port: int, dice: random.Random, *, cut_after: int = 0, late_s: float = 0.0) -> None:
        self._port, self._dice = port, dice
        self.cut_after, self.late_s = cut_after, late_s
        self.cuts = 0
        self.is_down = False
        self._open: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    def go_down(self) -> None:
        """Reset all connections, and take on none until ``is_down`` is taken back."""
        self.is_down = True
        for writer in self._open:
            writer.transport.abort()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """The port it listens on; at the end no connection is left."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        async with server:
            try:
                yield server.sockets[0].getsockname()[1]
            finally:
                for task in self._serving:
                    task.cancel()
                await asyncio.gather(*self._serving, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._port)
            try:
                if not self.is_down:
                    await self._pass_on((reader, writer), (up_reader, up_writer))
            finally:
                up_writer.transport.abort()
        except OSError:  # the server is down
            return
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _pass_on(self, near: _Ends, far: _Ends) -> None:
        """Pass on what comes at both ends, until one of them ends or there is a cut."""
        left = self._dice.randint(1, self.cut_after) if self.cut_after else 2**62
        pumps = [
            asyncio.create_task(self._pump(near[0], far[1], 2**62, 0.0)),
            asyncio.create_task(self._pump(far[0], near[1], left, self.late_s)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: int, late_s: float
    ) -> None:
        """Pass on *left* bytes at most."""
        with contextlib.suppress(ConnectionError):
            while chunk := await reader.read(65536):
                if late_s:
                    await asyncio.sleep(self._dice.uniform(0, late_s))
                writer.write(chunk[:left])
                await writer.drain()
                left -= len(chunk)
                if left <= 0:
                    self.cuts += 1
                    return


def kubeconfig_for(original: Path, port: int, target: Path) -> Path:
    """*original* as *target*, for the same server behind *port*."""
    config = yaml.safe_load(original.read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    target.write_text(json.dumps(config))
    return target


def port_of(kubeconfig: Path) -> int:
    """The port of the server in *kubeconfig*."""
    config = yaml.safe_load(kubeconfig.read_text())
    return urlsplit(str(config["clusters"][0]["cluster"]["server"])).port or 443
