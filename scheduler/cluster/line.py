"""One HTTP/1.1 connection: a request at a time, and its answer.

For small requests of which there are thousands, at a quarter of what a client for everything costs
(``posts.py``). An answer is read whole; one that is longer than such answers are ends the connection.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["Answer", "Line", "read_answer"]

_LONGEST: Final = 1 << 20
_STATUS: Final = re.compile(r"HTTP/1\.([01]) ([1-9]\d\d)(?: |$)")
_HEX: Final = re.compile(rb"[0-9a-fA-F]{1,8}")
_BODILESS: Final = frozenset({204, 304})


class Answer(NamedTuple):
    """What the server said.

    Attributes:
        headers: by name in small letters; of several of one name the last.
        stays: the connection may be used again.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    stays: bool


class Line(asyncio.Protocol):
    """One connection. It is closed as soon as anything is not as it should be.

    Attributes:
        idle_since: loop time of the last answer.
    """

    def __init__(self) -> None:
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._data = b""

    @property
    def is_open(self) -> bool:
        """Whether another request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, request: bytes) -> Answer:
        """Send *request* and wait for its answer.

        Raises:
            OSError: the connection ended before the answer did.
            ValueError: what came is no answer.
        """
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError("the connection is closed")
        loop = asyncio.get_running_loop()
        self._answer = loop.create_future()
        try:
            self._transport.write(request)
            answer = await self._answer
        except BaseException:  # cancelled, too: the answer to this is not that to the next
            self.hang_up()
            raise
        finally:
            self._answer = None
        self.idle_since = loop.time()
        if not answer.stays:
            self.hang_up()
        return answer

    def hang_up(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    # -- what the transport tells ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """A piece of an answer came."""
        if self._answer is None or self._answer.done():
            self.hang_up()  # nobody asked for this
            return
        self._data += data
        try:
            answer = read_answer(self._data)
        except ValueError as error:
            self._answer.set_exception(error)
            return
        if answer is not None:
            self._data = b""
            self._answer.set_result(answer)

    def connection_lost(self, error: Exception | None) -> None:
        """The connection has ended, and with it perhaps an answer that says nothing of its length."""
        if self._answer is None or self._answer.done():
            return
        try:
            answer = read_answer(self._data, ended=error is None)
        except ValueError:
            answer = None
        if answer is not None:
            self._answer.set_result(answer)
        else:
            self._answer.set_exception(error or ConnectionResetError("the server closed the connection"))


def read_answer(data: bytes, *, ended: bool = False) -> Answer | None:
    """The answer that *data* is (RFC 9112); None while it is not whole.

    *ended*: nothing comes after it. Raises ``ValueError`` for what is no answer.
    """
    if len(data) > _LONGEST:
        raise ValueError("the answer is too long")
    head, blank, rest = data.partition(b"\r\n\r\n")
    if not blank:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    found = _STATUS.match(first)
    if found is None:
        raise ValueError(f"no HTTP: {first[:60]!r}")
    status = int(found[2])
    if status < 200:
        return read_answer(rest, ended=ended)  # it says that the answer comes later
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)
    }
    body = _body(status, headers, rest, ended=ended)
    if body is None:
        return None
    asked_to_close = "close" in headers.get("connection", "").lower()
    return Answer(status, headers, body[0], found[1] == "1" and not asked_to_close and body[1] == len(rest))


def _body(
    status: int, headers: Mapping[str, str], rest: bytes, *, ended: bool
) -> tuple[bytes, int | None] | None:
    """The body at the start of *rest* and its length there, None where the end of the connection ends it."""
    if status in _BODILESS:
        return b"", 0
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return _chunks(rest)
    length = headers.get("content-length")
    if length is None:
        return (rest, None) if ended else None
    if not (length.isascii() and length.isdigit()):
        raise ValueError(f"no length: {length[:20]!r}")
    return (rest[: int(length)], int(length)) if len(rest) >= int(length) else None


def _chunks(rest: bytes) -> tuple[bytes, int] | None:
    """As ``_body``, of a body in pieces that are each preceded by their size."""
    parts: list[bytes] = []
    at = 0
    while (end := rest.find(b"\r\n", at)) >= 0:
        size = _HEX.match(rest, at, end)
        if size is None:
            raise ValueError(f"no size of a piece: {rest[at : at + 20]!r}")
        count, at = int(size[0], 16), end + 2
        if count == 0:
            # What may follow are more headers, and an empty line ends them.
            last = rest.find(b"\r\n\r\n", end)
            return (b"".join(parts), last + 4) if last >= 0 else None
        if len(rest) < at + count + 2:
            return None
        parts.append(rest[at : at + count])
        at += count + 2
    return None
