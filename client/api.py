"""One API server: JSON in, bytes or decoded JSON out, and whole lines of a watch.

What the server refused is an :class:`ApiError`; no answer is :class:`Unreachable`, and then nobody knows
whether the request was carried out. Configuration, certificates and the connection pool are the official
client's (``access.py``); its models are not used, since their decoding costs many times the request.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from types import TracebackType
from typing import Any, Final, Literal, Self
from urllib.parse import urlencode

import aiohttp
import msgspec

from volcano_py.client.access import Access, AccessError, hang_up
from volcano_py.client.errors import ApiError, Unreachable, api_error
from volcano_py.client.resources import RESOURCES, Resource
from volcano_py.client.rests import Rest

__all__ = [
    "MERGE",
    "RESOURCES",
    "STRATEGIC",
    "AccessError",
    "Api",
    "ApiError",
    "Resource",
    "Unreachable",
    "asked_wait_s",
    "retry_wait_s",
]

PatchKind = Literal["merge", "json", "strategic", "apply"]

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
"""Of built-in kinds: lists are merged by their keys."""
_PATCH_TYPES: Final[Mapping[str, str]] = {
    "merge": MERGE,
    "json": "application/json-patch+json",
    "strategic": STRATEGIC,
    "apply": "application/apply-patch+yaml",
}
_CONNECT_S: Final = 10.0
_RETRIED: Final = frozenset({429, 500, 502, 503, 504})
# Waits between tries: up to the first at first, doubling up to the second; what a server asks for is honoured
# up to the third.
_FIRST_WAIT_S: Final = 0.1
_LONGEST_WAIT_S: Final = 5.0
_LONGEST_ASKED_WAIT_S: Final = 30.0

_encode: Final = msgspec.json.encode
_decode: Final = msgspec.json.decode


class Api:
    """One API server, as one identity.

    Attributes:
        server: its address.
        namespace: where objects go that name none.
        access: the server's settings and our credentials.
        agent: what we call ourselves.
        server_date: what the server's clock said with its latest answer (RFC 9110); "" before one.
        dated_between: our clock, epoch seconds, when that was asked for and when it was there.
    """

    def __init__(self, access: Access, *, agent: str = "volcano-py") -> None:
        self.server: str = access.pool.configuration.host.rstrip("/")
        self.namespace = access.namespace
        self.server_date = ""
        self.dated_between = (0.0, 0.0)
        self.agent = agent
        self.access = access
        self._session = access.pool.open()
        # Within a cluster bandwidth is cheaper than the processor time of both ends.
        self._headers = {"User-Agent": agent, "Accept-Encoding": "identity"}
        settings = access.pool.configuration
        self._options: dict[str, Any] = {}
        if settings.proxy:
            self._options = {"proxy": settings.proxy, "proxy_headers": settings.proxy_headers}
        if settings.tls_server_name:
            self._options["server_hostname"] = settings.tls_server_name

    @classmethod
    async def connect(
        cls,
        kubeconfig: str | None = None,
        context: str | None = None,
        *,
        server: str | None = None,
        agent: str = "volcano-py",
    ) -> Api:
        """The server of *kubeconfig*, ``$KUBECONFIG``, the pod's service account or ``~/.kube/config``.

        Nothing is sent yet. An address given as *server* is used in place of theirs.

        Raises:
            AccessError: none of them is there, or the first one is broken.
        """
        return cls(await Access.find(kubeconfig, context, server), agent=agent)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self.access.pool.close()

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout_s: float = 30.0,
        tries: int = 1,
    ) -> bytes:
        """One request and its whole answer.

        Args:
            method: such as ``GET``.
            path: from :meth:`Resource.path`, or any other path below the server.
            query: parameters, unescaped.
            body: bytes are sent as they are, everything else as JSON; None sends nothing.
            content_type: of the body.
            accept: media types that the answer may have.
            timeout_s: bounds each try, from connecting to the last byte.
            tries: more than one repeats what a later try can mend: 429, 500, 502, 503, 504 and no answer.
                Only for requests that may be carried out twice.

        Raises:
            ApiError: the server answered with a status of 400 or more.
            Unreachable: no whole answer came.
        """
        headers = {"Accept": accept}
        data = body
        if body is not None:
            headers["Content-Type"] = content_type
            data = body if isinstance(body, bytes) else _encode(body)
        limits = aiohttp.ClientTimeout(total=timeout_s, sock_connect=_CONNECT_S)
        for attempt in range(1, tries):
            try:
                return await self._once(method, path, query, data, headers, limits)
            except (ApiError, Unreachable) as error:
                if isinstance(error, ApiError) and error.status not in _RETRIED:
                    raise
                await asyncio.sleep(retry_wait_s(attempt, error))
        return await self._once(method, path, query, data, headers, limits)

    async def get(self, path: str, **query: str) -> Any:
        """The object or list at *path*. Raises as :meth:`call`."""
        return self._decoded(await self.call("GET", path, query=query), f"GET {path}")

    async def post(self, path: str, body: Any, **query: str) -> Any:
        """Create *body* at *path*; what the server made of it. Raises as :meth:`call`."""
        return self._decoded(await self.call("POST", path, query=query, body=body), f"POST {path}")

    async def put(self, path: str, body: Any, **query: str) -> Any:
        """Replace the object at *path*. Raises as :meth:`call`."""
        return self._decoded(await self.call("PUT", path, query=query, body=body), f"PUT {path}")

    async def delete(self, path: str, body: Any = None, **query: str) -> Any:
        """Delete what is at *path*; *body* may hold ``DeleteOptions``. Raises as :meth:`call`."""
        return self._decoded(await self.call("DELETE", path, query=query, body=body), f"DELETE {path}")

    async def patch(self, path: str, body: Any, *, kind: PatchKind = "merge", **query: str) -> Any:
        """Change the object at *path*; ``apply`` needs ``fieldManager``. Raises as :meth:`call`."""
        answer = await self.call("PATCH", path, query=query, body=body, content_type=_PATCH_TYPES[kind])
        return self._decoded(answer, f"PATCH {path}")

    def _decoded(self, answer: bytes, request: str) -> Any:
        """*answer* as JSON. What is none came from something in between, and nobody knows what was done."""
        try:
            return _decode(answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unreachable(f"{self.server}: {request}: the answer is no JSON: {error}") from error

    async def lines(
        self, path: str, query: Mapping[str, str], *, idle_timeout_s: float | None
    ) -> AsyncGenerator[bytes, None]:
        """The lines of one watch, each without its line end. Iterate it within ``contextlib.aclosing``.

        Ends when the server ends the answer after a whole line.

        Raises:
            ApiError: the server refused.
            Unreachable: cut within a line, reset, or silent for longer than *idle_timeout_s*.
        """
        async with aclosing(self.line_batches(path, query, idle_timeout_s=idle_timeout_s)) as batches:
            async for batch in batches:
                for line in batch:
                    yield line

    async def line_batches(
        self,
        path: str,
        query: Mapping[str, str],
        *,
        idle_timeout_s: float | None,
        rest: Rest | None = None,
    ) -> AsyncGenerator[list[bytes], None]:
        """As :meth:`lines`, but all lines that came together at once, which is cheaper.

        The first of them holds no line: the server has taken on the watch. For a *rest* after each batch
        nothing is read: what comes meanwhile is decrypted and handed over together.
        """
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
        part = b""
        async with AsyncExitStack() as stack:
            answer = await self._begun(stack, path, query, limits, idle_timeout_s)
            silence = stack.enter_context(_Silence(answer, path, idle_timeout_s))
            yield []
            async for chunk in answer.content.iter_any():
                silence.heard()
                *whole, part = (part + chunk).split(b"\n") if part else chunk.split(b"\n")
                if whole:
                    yield whole
                    if rest is not None:
                        await rest.take(answer)
        if part:
            raise Unreachable(f"{self.server}: the watch of {path} was cut within a line")

    async def _begun(
        self,
        stack: AsyncExitStack,
        path: str,
        query: Mapping[str, str],
        limits: aiohttp.ClientTimeout,
        patience_s: float | None,
    ) -> aiohttp.ClientResponse:
        """The answer to a watch, which *stack* ends; Unreachable where it does not begin in time."""
        request = self._answer("GET", path, query, None, {"Accept": "application/json"}, limits)
        try:
            async with asyncio.timeout(patience_s):
                return await stack.enter_async_context(request)
        except TimeoutError as error:
            raise Unreachable(f"{self.server}: GET {path}: no answer for {patience_s:.0f} s") from error

    async def _once(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        data: bytes | None,
        headers: Mapping[str, str],
        limits: aiohttp.ClientTimeout,
    ) -> bytes:
        async with self._answer(method, path, query, data, headers, limits) as answer:
            return await answer.read()

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        data: bytes | None,
        headers: Mapping[str, str],
        limits: aiohttp.ClientTimeout,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer below 400 whose body has not been read. Raises ApiError and Unreachable."""
        url = f"{self.server}{path}?{urlencode(query)}" if query else f"{self.server}{path}"
        options = {"data": data, "timeout": limits, **self._options}
        try:
            edition = self.access.edition
            asked = time.time()
            answer = await self._request(method, url, headers, options)
            if answer.status == 401 and await self._has_newer(answer, edition):
                answer = await self._request(method, url, headers, options)
            self.server_date, self.dated_between = answer.headers.get("Date", ""), (asked, time.time())
            async with answer:
                if answer.status >= 400:
                    raise api_error(answer.status, answer.headers, await answer.read(), f"{method} {path}")
                try:
                    yield answer
                finally:
                    hang_up(answer)
        except (aiohttp.ClientError, TimeoutError, OSError, AccessError) as error:
            raise Unreachable(f"{self.server}: {method} {path}: {_said(error)}") from error

    async def _has_newer(self, refusal: aiohttp.ClientResponse, edition: int) -> bool:
        """Whether there are newer credentials than those that *refusal* is about, which is done with then."""
        newer = True
        try:
            newer = await self.access.refused(edition)
        finally:
            if newer:
                refusal.close()
        return newer

    async def _request(
        self, method: str, url: str, headers: Mapping[str, str], options: Mapping[str, Any]
    ) -> aiohttp.ClientResponse:
        identity = await self.access.headers()
        return await self._session.request(
            method, url, headers={**self._headers, **identity, **headers}, **options
        )


class _Silence:
    """Ends an answer that says nothing for too long, with one timer instead of one for each piece."""

    def __init__(self, answer: aiohttp.ClientResponse, path: str, seconds: float | None) -> None:
        self._answer, self._path, self._seconds = answer, path, seconds or math.inf
        self._loop = asyncio.get_running_loop()
        self._heard = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._over = False

    def heard(self) -> None:
        """Something came."""
        self._heard = self._loop.time()

    def __enter__(self) -> Self:
        self._look()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._over:
            raise Unreachable(f"GET {self._path}: silent for {self._seconds:.0f} s") from error

    def _look(self) -> None:
        left = self._heard + self._seconds - self._loop.time()
        self._over = left <= 0
        if self._over:
            hang_up(self._answer)
        elif math.isfinite(left):
            self._timer = self._loop.call_later(left, self._look)


def retry_wait_s(attempt: int, error: Exception | None = None) -> float:
    """Seconds to wait after try number *attempt*: exponential, full jitter, beyond what the server asks."""
    span = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(attempt - 1, 16))
    return asked_wait_s(error) + random.uniform(0.0, span)


def asked_wait_s(error: Exception | None) -> float:
    """Seconds that the server asks to wait before the next try, as far as that is honoured."""
    return min(_LONGEST_ASKED_WAIT_S, getattr(error, "retry_after_s", None) or 0.0)


def _said(error: Exception) -> str:
    """What *error* says, or its name where it says nothing, as timeouts do."""
    return str(error) or type(error).__name__
