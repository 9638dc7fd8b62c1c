"""A live cluster as tests see it: what they write, read and wait for, in plain calls.

The requests run on an event loop of their own thread, so pretend kubelets go on beside the test.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from volcano_py.client.api import MERGE, RESOURCES, Api, ApiError, Unreachable, retry_wait_s

T = TypeVar("T")
Document = dict[str, Any]

WAIT_S: Final = 120.0
"""Long, since CI's machines are busy; who waits goes on at once when it is so."""
TRIES: Final = 12


class Live:
    """One API server, asked from a test."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._contexts = AsyncExitStack()
        self._background: list[asyncio.Future[Any]] = []
        self.api = self.call(Api.connect(str(kubeconfig), agent="test"))

    def close(self) -> None:
        """End the background work and the connections; raises what the background work broke with."""
        try:
            self.call(self._end())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """What *work* returns, run on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(300)

    def background(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run *work* until the end of the test; it is cancelled then."""

        async def begin() -> None:
            self._background.append(asyncio.ensure_future(work))

        self.call(begin())

    def end_background(self) -> None:
        """Cancel the background work, and return when it has ended."""
        self.call(self._end_background())

    def entered(self, context: AbstractAsyncContextManager[T]) -> T:
        """Enter *context* on the loop; it is left at the end of the test."""

        async def enter() -> T:
            return await self._contexts.enter_async_context(context)

        return self.call(enter())

    def create(self, *documents: Document) -> None:
        """Create *documents*, many at a time."""
        self.call(self._create_all(documents))

    def get(self, kind: str, key: str) -> Document | None:
        """The object *key* ("namespace/name" or the name); None if it is not there."""
        try:
            found: Document = self.ask("GET", _path(kind, key))
        except ApiError as error:
            if error.is_missing:
                return None
            raise
        return found

    def ask(self, method: str, path: str, body: Document | None = None, **more: Any) -> Any:
        """The answer to what may be carried out twice; a server that is busy or away is asked again.

        A real one that was started a moment ago, or was just given its custom kinds, is busy.
        """
        return self.call(self.asked(method, path, body, **more))

    async def asked(self, method: str, path: str, body: Document | None = None, **more: Any) -> Any:
        """As :meth:`ask`, for what runs on the loop."""
        return msgspec.json.decode(await self.api.call(method, path, body=body, tries=TRIES, **more))

    def list(self, kind: str, **query: str) -> dict[str, Document]:
        """All objects of *kind* by key."""
        found = self.ask("GET", RESOURCES[kind].path(), query=query)
        return {key_of(item): item for item in found["items"] or ()}

    def patch(self, kind: str, key: str, change: Document, *, sub: str = "") -> Document:
        """Merge *change* into the object."""
        changed: Document = self.ask("PATCH", _path(kind, key, sub), change, content_type=MERGE)
        return changed

    def delete(self, kind: str, key: str, *, grace_s: int | None = None) -> None:
        """Delete the object; one that is gone is fine."""
        options = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        try:
            self.ask("DELETE", _path(kind, key), options)
        except ApiError as error:
            if not error.is_missing:
                raise

    def until(self, holds: Callable[[], T | None], *, within_s: float = WAIT_S, what: str = "") -> T:
        """Ask *holds* again and again until it is true; its value. Fails after *within_s*."""
        until = time.monotonic() + within_s
        while not (value := holds()):
            if time.monotonic() > until:
                raise AssertionError(f"not so after {within_s:.0f} s: {what or holds}; last: {value!r}")
            time.sleep(0.05)
        return value

    def until_gone(self, kind: str, key: str, *, within_s: float = WAIT_S) -> None:
        """Wait until the object is not there any more."""
        self.until(lambda: self.get(kind, key) is None, within_s=within_s, what=f"{kind} {key} gone")

    async def _create_all(self, documents: tuple[Document, ...]) -> None:
        for at in range(0, len(documents), 64):
            await asyncio.gather(*map(self._create, documents[at : at + 64]))

    async def _create(self, document: Document) -> None:
        """Create *document*; a try whose answer was lost may have done it, which the next one finds."""
        path = RESOURCES[document["kind"]].path(document["metadata"].get("namespace"))
        for attempt in range(1, TRIES):
            try:
                await self.api.call("POST", path, body=document)
                return
            except (ApiError, Unreachable) as error:
                if isinstance(error, ApiError) and not error.is_passing:
                    if error.is_exists and attempt > 1:
                        return
                    raise
                await asyncio.sleep(retry_wait_s(attempt, error))
        await self.api.call("POST", path, body=document)

    async def _end(self) -> None:
        try:
            await self._end_background()
        finally:
            await self.api.close()

    async def _end_background(self) -> None:
        for each in self._background:
            each.cancel()
        ended = await asyncio.gather(*self._background, return_exceptions=True)
        await self._contexts.aclose()
        self._background = []
        for outcome in ended:
            if isinstance(outcome, Exception):
                raise outcome  # it broke during the test, which may have gone on without it


def key_of(document: Document) -> str:
    """The key of an object: namespace and name, or the name alone."""
    meta = document["metadata"]
    space = meta.get("namespace")
    return f"{space}/{meta['name']}" if space else str(meta["name"])


def _path(kind: str, key: str, sub: str = "") -> str:
    space, _, name = key.rpartition("/")
    return RESOURCES[kind].path(space or None, name, sub or None)
