"""The server as a whole, as a context manager; ``__main__`` makes a process of it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import tempfile
import time
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler

from volcano_py.simulator.apiserver.bootstrap import furnish
from volcano_py.simulator.apiserver.cluster import Cluster
from volcano_py.simulator.apiserver.journal import Journal, Sync
from volcano_py.simulator.apiserver.kubelet_logs import KubeletLogs
from volcano_py.simulator.apiserver.security import Identity, Keyring, write_private
from volcano_py.simulator.apiserver.server import Server
from volcano_py.simulator.apiserver.store import Store
from volcano_py.simulator.apiserver.subresources.requests import Logs
from volcano_py.simulator.apiserver.upkeep import Upkeep

log = logging.getLogger(__name__)

_LOOPBACK: Final = "127.0.0.1"
_MOST_BODY_BYTES: Final = 3 << 20
_LONGEST_LINE: Final = 64 << 10
_CONDENSE_EVERY_S: Final = 5.0
_EPOCH_2026: Final = 1_767_225_600


class EmbeddedServer:
    """An API server on the loopback address, with a token and a certificate of its own.

    Args:
        data_dir: where objects, certificate and token are kept; None keeps nothing.
        port: 0 takes a free one.
        crds: install this project's CustomResourceDefinitions.
        logs: where the logs of pods come from; None asks the kubelets of their nodes.
        sync: when changes reach the disk (``journal.Sync``).
        history: changes kept for watches.
        backlog: events that may wait for a slow watcher before it is cut off.
    """

    def __init__(
        self,
        *,
        data_dir: Path | None = None,
        port: int = 0,
        crds: bool = True,
        logs: Logs | None = None,
        sync: Sync = "os",
        history: int = 16_384,
        backlog: int = 20_000,
    ) -> None:
        self._data_dir = data_dir
        self._port = port
        self._crds = crds
        self._logs = logs
        self._sync: Sync = sync
        self._history = history
        self._backlog = backlog
        self._identity = Identity.new() if data_dir is None else Identity.kept_in(data_dir)
        self._stack = contextlib.AsyncExitStack()
        self.url = ""

    @property
    def token(self) -> str:
        """The administrator's bearer token."""
        return self._identity.token

    @property
    def kubeconfig(self) -> str:
        """A kubeconfig for this server, once it has started."""
        return self._identity.kubeconfig(self.url)

    def write_kubeconfig(self, path: Path) -> None:
        """Write the kubeconfig to a file that only its owner reads."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, self.kubeconfig)

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _start(self) -> None:
        journal = self._open_journal()
        store = self._open_store(journal)
        cluster = Cluster(store, time.time)
        furnish(cluster, crds=self._crds)
        server = Server(
            cluster, Keyring(self.token, time.time), self._logs or KubeletLogs(cluster), self._backlog
        )
        await self._listen(server)
        self._background(Upkeep(cluster).run())
        if journal is not None:
            self._background(_condense(journal, store))
        self._stack.callback(server.end_watches)

    def _open_journal(self) -> Journal | None:
        if self._data_dir is None:
            return None
        journal = Journal(self._data_dir / "objects", sync=self._sync)
        self._stack.callback(journal.close)
        return journal

    def _open_store(self, journal: Journal | None) -> Store:
        if journal is not None:
            return journal.open(history=self._history)
        # A server without memory must not repeat versions: whoever watched the last one has to list again.
        # Nobody writes once a microsecond, so the clock is always ahead of the last server's counter.
        started = int((time.time() - _EPOCH_2026) * 1_000_000)
        return Store(history=self._history, version=max(started, 1))

    async def _listen(self, server: Server) -> None:
        web_server = web.Server(
            server.handle,
            request_factory=_request,
            handler_cancellation=True,
            access_log=None,
            max_line_size=_LONGEST_LINE,
            max_field_size=_LONGEST_LINE,
        )
        runner = web.ServerRunner(web_server, shutdown_timeout=1.0)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        with tempfile.TemporaryDirectory() as scratch:
            context = self._identity.context(Path(scratch))
        site = web.TCPSite(runner, _LOOPBACK, self._port, ssl_context=context)
        await site.start()
        self.url = f"https://{_LOOPBACK}:{runner.addresses[0][1]}"

    def _background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._stack.push_async_callback(_cancel, task)


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=_MOST_BODY_BYTES)


async def _condense(journal: Journal, store: Store) -> None:
    while True:
        await asyncio.sleep(_CONDENSE_EVERY_S)
        try:
            snapshot = journal.begin(store) if journal.is_large else None
            if snapshot is not None:
                await asyncio.to_thread(snapshot.write)
                journal.finish(snapshot)
        except OSError:
            log.exception("no snapshot could be written; the log grows on")


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
