"""Requests that somebody gives up: nothing of them stays open, though the server says no farewell."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from tests.cluster.waiting import until
from volcano_py.client.access import Access, AccessError
from volcano_py.client.api import Api, Unreachable

REFUSAL = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 9\r\n\r\n"
"""Its body never comes."""


@dataclass
class Deaf:
    """A server with a certificate that hears one request on a connection, and nothing after it.

    Attributes:
        says: its answer, or a part of it.
        heard: connections on which a request came.
    """

    says: bytes = b""
    heard: list[asyncio.StreamWriter] = field(default_factory=list)
    _serving: dict[asyncio.Task[None], asyncio.StreamWriter] = field(default_factory=dict)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, which stays as it is until the end."""
        self._serving[asyncio.ensure_future(self._hear(reader, writer))] = writer

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(self.says)
        self.heard.append(writer)

    @asynccontextmanager
    async def api(self, folder: Path) -> AsyncIterator[Api]:
        """The running server, as a client sees it."""
        authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        authority.cert_pem.write_to_path(str(folder / "ca.crt"))
        server = await asyncio.start_server(self.accept, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        (folder / "config").write_text(yaml.safe_dump(kubeconfig(port)))
        try:
            async with await Api.connect(str(folder / "config")) as api:
                yield api
        finally:
            server.close()
            for task, writer in self._serving.items():
                task.cancel()
                writer.transport.abort()
            await asyncio.gather(*self._serving, return_exceptions=True)


def kubeconfig(port: int) -> dict[str, Any]:
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": "ca.crt"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


async def get(api: Api) -> None:
    await api.get("/x")


async def post(api: Api) -> None:
    await api.post("/x", {"a": "b"})


async def watch(api: Api) -> None:
    async with aclosing(api.lines("/x", {"watch": "1"}, idle_timeout_s=3600.0)) as lines:
        async for _ in lines:
            raise AssertionError("it says nothing")


def socket_of(api: Api) -> socket.socket:
    """Of the only connection that is in use."""
    pool = api.access.pool.open().connector
    assert pool is not None
    (connection,) = pool._acquired
    assert connection.transport is not None
    line: socket.socket = connection.transport.get_extra_info("socket")
    return line


@pytest.mark.parametrize("asks", [get, post, watch])
def test_who_gives_up_a_request_before_its_answer_leaves_no_socket(
    tmp_path: Path, asks: Callable[[Api], Awaitable[None]]
) -> None:
    async def live() -> None:
        server = Deaf()
        async with server.api(tmp_path) as api:
            asking = asyncio.ensure_future(asks(api))
            await until(lambda: server.heard, "the request")
            line = socket_of(api)
            asking.cancel()
            assert await asyncio.gather(asking, return_exceptions=True)
            assert line.fileno() < 0, "at once: whoever ends the loop waits for nothing"

    asyncio.run(live())


def test_a_refusal_whose_new_credentials_can_not_be_read_leaves_no_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[socket.socket] = []

    async def live() -> None:
        async with Deaf(REFUSAL).api(tmp_path) as api:

            async def unreadable(access: Access, edition: int) -> bool:
                lines.append(socket_of(api))
                raise AccessError("the file is gone")

            monkeypatch.setattr(Access, "refused", unreadable)
            with pytest.raises(Unreachable, match="the file is gone"):
                await api.get("/x")
            await asyncio.sleep(0)  # what was aborted ends in the next turn
            assert [line.fileno() for line in lines] == [-1]

    asyncio.run(live())
