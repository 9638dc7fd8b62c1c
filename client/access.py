"""Which API server we talk to, and as whom: finds the configuration and keeps its credentials fresh.

Looked for, in this order: a file that was named, ``$KUBECONFIG``, the service account of the pod we run in,
and ``~/.kube/config``. Reading them is the official client's business; what went wrong is said here.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import kubernetes.aio.config
import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config import ConfigException

from volcano_py.crds.messages import did_you_mean

__all__ = ["Access", "AccessError", "hang_up"]

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_KUBECONFIG: Final = "~/.kube/config"

# These carry no annotations.
_load_service_account: Final[Callable[..., None]] = kubernetes.aio.config.load_incluster_config
_list_contexts: Final[Callable[..., tuple[list[Any], Any]]] = kubernetes.aio.config.list_kube_config_contexts
_load_files: Final[Callable[..., Awaitable[Any]]] = kubernetes.aio.config.load_kube_config

# Seconds between two looks at credentials that may rotate; tokens of pods live for an hour.
_CHECK_S: Final = 60.0
# After a refusal (401) credentials are read anew, but not more often than this.
_RETRY_S: Final = 2.0
# An exec plugin is asked again this long before its credentials end.
_MARGIN_S: Final = 60.0

# Seconds an unused connection is kept; servers and load balancers keep theirs longer.
_KEEP_S: Final = 60.0

# What the official client raises of a kubeconfig that is not laid out as one.
_SHAPELESS: Final = (TypeError, KeyError, AttributeError)
_FAULTS: Final = (ConfigException, OSError, ValueError, yaml.YAMLError, *_SHAPELESS)


class AccessError(Exception):
    """No usable way to an API server; the message says what was looked for and what to do."""


@dataclass(slots=True)
class Access:
    """A server and an identity on it.

    Attributes:
        pool: the official client's connections and settings; host, certificates, proxy.
        namespace: where objects go that name none.
        loader: reads a kubeconfig again; ``None`` for the service account of a pod.
        edition: counts how often the credentials changed.
    """

    pool: Pool
    namespace: str
    loader: Any
    edition: int = 0
    _due: float = 0.0
    _not_before: float = 0.0
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    async def find(cls, kubeconfig: str | None, context: str | None, server: str | None = None) -> Access:
        """The first configuration there is, with *server* as its address. Raises :class:`AccessError`."""
        configuration = Configuration()
        namespace, loader = await _load(configuration, kubeconfig, context)
        if server:
            configuration.host = _address(server)
        return _ready(configuration, namespace, loader)

    async def headers(self) -> Mapping[str, str]:
        """What proves who we are, for the next request. Raises :class:`AccessError` if it can't be read."""
        if time.monotonic() >= self._due:
            async with self._lock:
                if time.monotonic() >= self._due:
                    await self._refresh()
        token = self._token()
        return {"Authorization": token.strip()} if token else {}

    async def refused(self, edition: int) -> bool:
        """After a 401 on what *edition* of the credentials proved: whether there is a newer one to try."""
        async with self._lock:
            if self.edition == edition and time.monotonic() >= self._not_before:
                self._not_before = time.monotonic() + _RETRY_S
                if self.loader is not None:
                    # The plugin is asked again although what it gave has not run out.
                    self.loader.__dict__.pop("exec_plugin_expiry", None)
                await self._refresh()
            return self.edition != edition

    async def _refresh(self) -> None:
        """Read the credentials anew; the caller holds the lock."""
        token, certificate = self._token(), self._certificate()
        try:
            await self._read()
            if self._certificate() != certificate:
                self.pool.trust_certificate()
        except _FAULTS as error:
            raise AccessError(f"the credentials can't be read again: {_why(error)}") from error
        if (self._token(), self._certificate()) != (token, certificate):
            self.edition += 1
        self._due = self._next_look()

    async def _read(self) -> None:
        if self.loader is None:
            _load_service_account(client_configuration=self.pool.configuration, try_refresh_token=False)
            return
        await self.loader.load_and_set(self.pool.configuration)
        _check_identity(self.loader)

    def _next_look(self) -> float:
        """When, on the monotonic clock, the credentials are looked at next."""
        now = time.monotonic()
        if self.loader is None or not _runs_plugin(self.loader):
            return now + _CHECK_S
        expiry = getattr(self.loader, "exec_plugin_expiry", None)
        return now + max(_CHECK_S, expiry.timestamp() - time.time() - _MARGIN_S) if expiry else float("inf")

    def _token(self) -> str | None:
        token: str | None = self.pool.configuration.api_key.get("BearerToken")
        return token

    def _certificate(self) -> tuple[object, ...]:
        """The files of the client certificate and when they were written."""
        settings = self.pool.configuration
        files = [path for path in (settings.cert_file, settings.key_file) if path]
        return (*files, *(os.stat(path).st_mtime_ns for path in files))


class Pool(RESTClientObject):
    """The official client's connections, kept open between requests."""

    def _create_connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(limit=self.maxsize, ssl=self.ssl_context, keepalive_timeout=_KEEP_S)

    def trust_certificate(self) -> None:
        """New connections use the client certificate as it is on disk now."""
        if self.configuration.cert_file:
            self.ssl_context.load_cert_chain(
                self.configuration.cert_file, keyfile=self.configuration.key_file
            )

    def open(self) -> aiohttp.ClientSession:
        """The session all requests go through; belongs to the running event loop."""
        if self.pool_manager is None:
            self.pool_manager = self._create_pool_manager()
        return self.pool_manager


class _Answer(aiohttp.ClientResponse):
    """An answer that takes its connection with it where it is given up, be it before it began."""

    def close(self) -> None:
        """Give it up; without this TLS would say farewell, and keep the socket until the server does."""
        hang_up(self)
        super().close()


def hang_up(answer: aiohttp.ClientResponse) -> None:
    """End the connection of an *answer* that was not read to its end, without waiting for a farewell."""
    connection = answer.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


_NOTHING_FOUND: Final = (
    "found no API server to talk to: no --kubeconfig and no KUBECONFIG were given, this is no pod with a "
    f"service account ({SERVICE_ACCOUNT}), and there is no {DEFAULT_KUBECONFIG}. "
    "Name a kubeconfig with --kubeconfig PATH."
)


def _in_cluster() -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (SERVICE_ACCOUNT / "token").exists()


async def _load(configuration: Configuration, kubeconfig: str | None, context: str | None) -> tuple[str, Any]:
    """Fill *configuration* from the first source there is; its namespace, and the loader if it has one."""
    paths = kubeconfig or os.environ.get("KUBECONFIG")
    if not paths and _in_cluster():
        return _load_account(configuration, context), None
    if paths:
        named = f"--kubeconfig {paths}" if kubeconfig else f"KUBECONFIG={paths}"
        return await _from_files(configuration, paths, context, named)
    if not Path(DEFAULT_KUBECONFIG).expanduser().exists():
        raise AccessError(_NOTHING_FOUND)
    return await _from_files(configuration, DEFAULT_KUBECONFIG, context, DEFAULT_KUBECONFIG)


def _address(server: str) -> str:
    if urlsplit(server).scheme not in ("http", "https") or not urlsplit(server).hostname:
        raise AccessError(f'"{server}" is no address of a server; write it like https://10.0.0.1:6443')
    return server


def _load_account(configuration: Configuration, context: str | None) -> str:
    if context:
        raise AccessError(f"--context {context} needs a kubeconfig; a pod's service account has no contexts")
    try:
        _load_service_account(client_configuration=configuration, try_refresh_token=False)
        return (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    except (ConfigException, OSError) as error:
        raise AccessError(f"the service account in {SERVICE_ACCOUNT} can't be used: {error}") from error


async def _from_files(
    configuration: Configuration, paths: str, context: str | None, named: str
) -> tuple[str, Any]:
    """The configuration in kubeconfig files, joined by the path separator; *named* is how they were given."""
    if not any(Path(path).expanduser().is_file() for path in paths.split(os.pathsep) if path):
        raise AccessError(
            f"there is no kubeconfig at {named}. Check the path, or leave it out to look elsewhere."
        )
    try:
        loader = await _load_files(
            config_file=paths, context=context, client_configuration=configuration, persist_config=False
        )
        _check_identity(loader)
        namespace = loader.current_context["context"].get("namespace") or "default"
    except _FAULTS as error:
        wanted = f" with --context {context}" if context else ""
        why = _no_context(paths, context) or _why(error)
        raise AccessError(f"the kubeconfig {named}{wanted} can't be used: {why}") from error
    return namespace, loader


def _no_context(paths: str, context: str | None) -> str:
    """That no file of *paths* has *context*, with those that they have; "" where that is not the fault."""
    if not context:
        return ""
    try:
        contexts, _ = _list_contexts(paths)
        known = sorted(str(one["name"]) for one in contexts)
    except _FAULTS:
        return ""
    if context in known:
        return ""
    return f"it has no such context{did_you_mean(context, known)}; there are {', '.join(known)}"


def _why(error: Exception) -> str:
    """What *error* means to whoever wrote the file."""
    if isinstance(error, _SHAPELESS):
        return "it is no whole kubeconfig; it needs clusters, users, and a context that names one of each"
    return str(error)


def _ready(configuration: Configuration, namespace: str, loader: Any) -> Access:
    if not configuration.proxy:
        configuration.proxy = _proxy_of(configuration.host)
    # The environment is asked once, above: asked by each request it costs more than the request itself.
    configuration.client_session_kwargs = {
        "trust_env": False,
        "cookie_jar": aiohttp.DummyCookieJar(),
        "response_class": _Answer,
    }
    access = Access(_pool(configuration), namespace, loader)
    access._due = access._next_look()
    return access


def _pool(configuration: Configuration) -> Pool:
    try:
        return Pool(configuration)
    except OSError as error:
        files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
        named = ", ".join(str(path) for path in files if path)
        raise AccessError(
            f"the certificates for {configuration.host} can't be used ({named}): {error}"
        ) from error


def _proxy_of(server: str) -> str | None:
    """The proxy that the environment names for *server*, if any."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1" or proxy_bypass(host):
        return None
    return getproxies().get(parts.scheme)


def _runs_plugin(loader: Any) -> bool:
    return loader._user is not None and "exec" in loader._user


def _check_identity(loader: Any) -> None:
    """The official client only logs a plugin that fails and would go on as nobody."""
    if _runs_plugin(loader) and not (hasattr(loader, "token") or getattr(loader, "cert_file", None)):
        command = loader._user["exec"]["command"]
        raise ConfigException(f"its exec plugin {command!r} gave no credentials (what it said is in the log)")
