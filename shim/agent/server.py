"""The API server, as far as the agent needs it: JSON in and out, and the lines of a watch.

Configuration, certificates and connections are the official client's; its models are not used. What the
server refused is a :class:`Refused`, no answer is :class:`Unreachable`.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlencode

import aiohttp
import kubernetes.aio.config
import msgspec
import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config import ConfigException

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
_CONNECT_S: Final = 10.0
_REQUEST_S: Final = 30.0
# Tokens of pods are renewed in their file; they live for an hour.
_REREAD_S: Final = 60.0
# These carry no annotations.
_load_account: Final[Callable[..., None]] = kubernetes.aio.config.load_incluster_config
_load_file: Final[Callable[..., Awaitable[Any]]] = kubernetes.aio.config.load_kube_config
_FAULTS: Final = (ConfigException, OSError, ValueError, yaml.YAMLError, TypeError, KeyError, AttributeError)


class ServerError(Exception):
    """A request that was not carried out, as far as we know."""


class Refused(ServerError):  # noqa: N818 - says what happened, as Unreachable does
    """The server's answer to a request was no.

    Attributes:
        status: of HTTP.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Unreachable(ServerError):  # noqa: N818 - nobody knows whether it was an error
    """No whole answer came."""


class NoServer(Exception):  # noqa: N818 - a setting, not a request
    """No usable configuration of a server; the message says what was looked for."""


class Server:
    """One API server, as one identity. Use it in ``async with``."""

    def __init__(self, configuration: Configuration, loader: Any) -> None:
        # The environment is not asked by each request, which costs more than the request.
        configuration.client_session_kwargs = {"trust_env": False, "cookie_jar": aiohttp.DummyCookieJar()}
        self._configuration, self._loader = configuration, loader
        self._pool = RESTClientObject(configuration)
        self._session: aiohttp.ClientSession | None = None
        self._read_at = time.monotonic()
        self.address: str = configuration.host.rstrip("/")

    @classmethod
    async def connect(cls, kubeconfig: str | None) -> Self:
        """The server of *kubeconfig*, ``$KUBECONFIG``, the pod's service account or ``~/.kube/config``.

        Nothing is sent yet. Raises ``NoServer``.
        """
        configuration = Configuration()
        path = kubeconfig or os.environ.get("KUBECONFIG") or ""
        try:
            if not path and (SERVICE_ACCOUNT / "token").exists():
                _read_account(configuration)
                return cls(configuration, None)
            loader = await _read_file(configuration, path or "~/.kube/config")
            return cls(configuration, loader)
        except _FAULTS as error:
            named = f"kubeconfig {path}" if path else f"{SERVICE_ACCOUNT} or ~/.kube/config"
            raise NoServer(f"no API server by {named}: {error}") from error

    async def __aenter__(self) -> Self:
        self._session = self._pool._create_pool_manager()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
        await self._pool.close()

    async def get(self, path: str, **query: str) -> Any:
        """The object or list at *path*. Raises ``ServerError``."""
        return msgspec.json.decode(await self.read(path, query))

    async def read(self, path: str, query: Mapping[str, str]) -> bytes:
        """As :meth:`get`, undecoded."""
        async with self._answer("GET", path, query, None, "", _REQUEST_S) as answer:
            return await answer.read()

    async def post(self, path: str, body: Any) -> Any:
        """Create *body*. Raises ``ServerError``."""
        return await self._write("POST", path, body, "application/json")

    async def patch(self, path: str, body: Any, kind: str = MERGE) -> Any:
        """Change the object at *path*; what became of it. Raises ``ServerError``."""
        return await self._write("PATCH", path, body, kind)

    async def lines(
        self, path: str, query: Mapping[str, str], silence_s: float
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a watch, until the server ends it; iterate it within ``aclosing``.

        Raises ``ServerError``, also where it says nothing for *silence_s*.
        """
        rest = b""
        async with self._answer("GET", path, query, None, "", None, silence_s) as answer:
            async for chunk in answer.content.iter_any():
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    yield line

    async def _write(self, method: str, path: str, body: Any, kind: str) -> Any:
        data = msgspec.json.encode(body)
        async with self._answer(method, path, {}, data, kind, _REQUEST_S) as answer:
            return msgspec.json.decode(await answer.read())

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        data: bytes | None,
        kind: str,
        total_s: float | None,
        silence_s: float | None = None,
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        if self._session is None:
            raise RuntimeError("a server is used within its context")
        url = f"{self.address}{path}?{urlencode(query)}" if query else f"{self.address}{path}"
        limits = aiohttp.ClientTimeout(total=total_s, sock_connect=_CONNECT_S, sock_read=silence_s)
        try:
            headers = {"Accept": "application/json", **await self._identity()}
            if data is not None:
                headers["Content-Type"] = kind
            asked = self._session.request(method, url, data=data, headers=headers, timeout=limits)
            async with asked as answer:
                if answer.status >= 400:
                    raise Refused(answer.status, f"{method} {path}: {await _said(answer)}")
                yield answer
        except (aiohttp.ClientError, TimeoutError, OSError, msgspec.DecodeError) as error:
            raise Unreachable(f"{self.address}: {method} {path}: {_why(error)}") from error

    async def _identity(self) -> dict[str, str]:
        if time.monotonic() - self._read_at > _REREAD_S:
            await self._reread()
        token = self._configuration.api_key.get("BearerToken")
        return {"Authorization": str(token).strip()} if token else {}

    async def _reread(self) -> None:
        self._read_at = time.monotonic()
        try:
            if self._loader is None:
                _read_account(self._configuration)
            else:
                await self._loader.load_and_set(self._configuration)
        except _FAULTS as error:
            raise Unreachable(f"the credentials can't be read again: {error}") from error


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__


async def _said(answer: aiohttp.ClientResponse) -> str:
    text = await answer.text(errors="replace")
    try:
        return str(msgspec.json.decode(text)["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return f"status {answer.status}: {text[:200]}"


def _read_account(configuration: Configuration) -> None:
    _load_account(client_configuration=configuration, try_refresh_token=False)


async def _read_file(configuration: Configuration, path: str) -> Any:
    return await _load_file(config_file=path, client_configuration=configuration, persist_config=False)
