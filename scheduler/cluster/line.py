"""One HTTP/1.1 connection: a request at a time, and its answer.

For small requests of which there are thousands, at a quarter of what a client for everything costs
(``posts.py``). An answer is read whole, by httptools; one that is longer than such answers are ends the
connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

import httptools

__all__ = ["Answer", "AnswerReader", "Line"]

_LONGEST: Final = 1 << 20
_LENGTHS: Final = frozenset({"content-length", "transfer-encoding"})
_NO_HTTP: Final = (httptools.HttpParserError, httptools.HttpParserUpgrade)


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


class AnswerReader:
    """Reads one answer (RFC 9112) from its pieces."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._length = 0
        self._has_head = self._whole = self._stays = False

    def feed(self, data: bytes) -> Answer | None:
        """The answer, once *data* makes it whole. Raises ``ValueError`` for what is no answer."""
        self._length += len(data)
        if self._length > _LONGEST:
            raise ValueError("the answer is too long")
        try:
            self._parser.feed_data(data)
        except _NO_HTTP as error:
            if not self._whole:
                raise ValueError(f"no HTTP: {error}") from error
            self._stays = False
        return self._answer() if self._whole else None

    def ended(self) -> Answer | None:
        """The answer that the end of the connection makes whole: one that says nothing of its length."""
        if not self._has_head or self._whole or _LENGTHS & self._headers.keys():
            return None
        return self._answer()

    def _answer(self) -> Answer:
        return Answer(self._parser.get_status_code(), self._headers, bytes(self._body), self._stays)

    # -- what httptools tells -------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """The answer begins, or, behind it, something that nobody asked for."""
        self._stays = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header, or one behind a body in pieces."""
        if not self._has_head:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The body follows, if there is one."""
        self._has_head = True

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._body += body

    def on_message_complete(self) -> None:
        """All of it came, if it isn't one that says that the answer comes later."""
        if self._parser.get_status_code() < 200:
            self._headers, self._has_head = {}, False
        elif not self._whole:
            self._whole, self._stays = True, self._parser.should_keep_alive()


class Line(asyncio.Protocol):
    """One connection. It is closed as soon as anything is not as it should be.

    Attributes:
        idle_since: loop time of the last answer.
    """

    def __init__(self) -> None:
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._reader = AnswerReader()

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
        self._answer, self._reader = loop.create_future(), AnswerReader()
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
        try:
            answer = self._reader.feed(data)
        except ValueError as error:
            self._answer.set_exception(error)
            return
        if answer is not None:
            self._answer.set_result(answer)

    def connection_lost(self, error: Exception | None) -> None:
        """The connection has ended, and with it perhaps an answer that says nothing of its length."""
        if self._answer is None or self._answer.done():
            return
        answer = self._reader.ended() if error is None else None
        if answer is not None:
            self._answer.set_result(answer)
        else:
            self._answer.set_exception(error or ConnectionResetError("the server closed the connection"))
