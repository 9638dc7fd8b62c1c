"""Thousands of small POSTs to the API server, each for little processor time.

Of the CPU that binding a pod took here, two thirds were the HTTP client's. This one knows what the
requests of ``binder.py`` need and no more: what takes a proxy, a redirect or new credentials goes the general
way (``client/api.py``), and outcomes are the same as there.
"""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import quote, urlsplit

from volcano_py.client.access import AccessError
from volcano_py.client.api import Api
from volcano_py.client.errors import Unreachable, api_error
from volcano_py.scheduler.cluster.line import Answer, Line

__all__ = ["Posts"]

_CONNECT_S: Final = 10.0
# Servers and load balancers keep unused connections for longer.
_KEEP_S: Final = 60.0
# Answers that the general client knows how to go on from; nothing was carried out.
_ELSEWHERE: Final = frozenset({301, 302, 303, 307, 308, 401})


class Posts:
    """Sends POSTs to the server of *api*, as its identity. Belongs to one event loop."""

    def __init__(self, api: Api) -> None:
        settings = api.access.pool.configuration
        parts = urlsplit(api.server)
        self._api, self._access = api, api.access
        self._proxied = bool(settings.proxy)
        self._host, self._prefix = parts.hostname or "", parts.path
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._ssl = api.access.pool.ssl_context if parts.scheme == "https" else None
        self._name = (settings.tls_server_name or self._host) if self._ssl is not None else None
        self._always = (
            f" HTTP/1.1\r\nHost: {parts.netloc.rpartition('@')[2]}\r\nUser-Agent: {api.agent}\r\n"
            "Accept: application/json\r\nAccept-Encoding: identity\r\n"
        )
        self._idle: list[Line] = []

    async def post(self, path: str, body: bytes, *, content_type: str, timeout_s: float) -> bytes:
        """The answer to *body* at *path*, within *timeout_s*. Raises as ``Api.call``."""
        if self._proxied:
            return await self._elsewhere(path, body, content_type, timeout_s)
        try:
            answer = await self._asked(path, body, content_type, timeout_s)
        except (OSError, ValueError, AccessError) as error:
            why = str(error) or type(error).__name__
            raise Unreachable(f"{self._api.server}: POST {path}: {why}") from error
        if answer.status in _ELSEWHERE:
            return await self._elsewhere(path, body, content_type, timeout_s)
        if answer.status >= 400:
            asked_wait = {"Retry-After": answer.headers.get("retry-after", "")}
            raise api_error(answer.status, asked_wait, answer.body, f"POST {path}")
        return answer.body

    def close(self) -> None:
        """Close the connections that are not in use; the others end with their requests."""
        for line in self._idle:
            line.hang_up()
        self._idle.clear()

    async def _elsewhere(self, path: str, body: bytes, content_type: str, timeout_s: float) -> bytes:
        return await self._api.call("POST", path, body=body, content_type=content_type, timeout_s=timeout_s)

    async def _asked(self, path: str, body: bytes, content_type: str, timeout_s: float) -> Answer:
        """The answer to one request; raises OSError, ValueError or AccessError where none came."""
        identity = "".join(f"{name}: {value}\r\n" for name, value in (await self._access.headers()).items())
        head = (
            f"POST {self._prefix}{quote(path)}{self._always}{identity}"
            f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        async with asyncio.timeout(timeout_s):
            line = await self._line()
            answer = await line.ask(head.encode() + body)
        if answer.status == 401:
            line.hang_up()  # another certificate takes another connection
        if line.is_open:
            self._idle.append(line)
        return answer

    async def _line(self) -> Line:
        """A connection nobody uses, of those that stand the one last used."""
        loop = asyncio.get_running_loop()
        while self._idle:
            line = self._idle.pop()
            if line.is_open and loop.time() - line.idle_since < _KEEP_S:
                return line
            line.hang_up()
        made = Line()
        try:
            async with asyncio.timeout(_CONNECT_S):
                await loop.create_connection(
                    lambda: made, self._host, self._port, ssl=self._ssl, server_hostname=self._name
                )
        except BaseException:  # cancelled, too: it may stand already, and nobody knows of it
            made.hang_up()
            raise
        return made
