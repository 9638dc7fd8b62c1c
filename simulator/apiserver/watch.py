"""Watches: what a client has yet to be told, and the lines that tell it.

A change is encoded when it is kept; a line is that body in its envelope, the same for every watcher. A client
that reads too slowly is cut off, and comes back with the version it saw last.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from volcano_py.simulator.apiserver.deleting import DEFINITIONS
from volcano_py.simulator.apiserver.schema.kinds import ServedKind
from volcano_py.simulator.apiserver.selectors import Selector
from volcano_py.simulator.apiserver.status import Document, Refused
from volcano_py.simulator.apiserver.store import (
    ADDED,
    DELETED,
    MODIFIED,
    Change,
    Compacted,
    Item,
    Store,
    encode,
    make_item,
)

Line = bytes
Render = Callable[[Item], bytes]
"""The object of an event as the client asked for it."""

INITIAL_END: Final = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What a watch asks for.

    Attributes:
        version: "" and "0" begin with all that is there, others after that version.
        initial: ``sendInitialEvents``; None where it was not said.
        seconds: how long the watch lasts.
        backlog: events that may wait for a slow client.
        bookmark_s: seconds between bookmarks.
    """

    version: str
    initial: bool | None
    bookmarks: bool
    seconds: float
    backlog: int
    bookmark_s: float = 60.0


class Watch:
    """One client's view of a bucket's changes.

    *cut* drops the connection: a client that is too slow may not be reading at all.
    """

    def __init__(
        self,
        store: Store,
        kind: ServedKind,
        namespace: str,
        selector: Selector,
        options: WatchOptions,
        render: Render,
        cut: Callable[[], None],
    ) -> None:
        self._store = store
        self._kind = kind
        self._namespace = namespace
        self._selector = selector
        self._options = options
        self._render = render
        self._cut = cut
        self._waiting: deque[tuple[str, Item]] = deque()
        self._news = asyncio.Event()
        self._overrun = False
        self._outdated = False

    def end(self) -> None:
        """Let the stream end after what it is about to say."""
        self._overrun = True
        self._news.set()

    async def lines(self) -> AsyncIterator[bytes]:
        """Chunks of whole lines until the time is up or the client is too slow."""
        try:
            start = self._start()
        except Compacted as error:
            yield self._error(Refused(410, "Expired", str(error)))
            return
        with ExitStack() as listening:
            listening.callback(self._store.listen(self._kind.bucket, self._take))
            if self._kind.custom:
                listening.callback(self._store.listen(DEFINITIONS, self._take_definition))
            if start:
                yield b"".join(start)
            async for chunk in self._live():
                yield chunk

    def _take(self, change: Change) -> None:
        """Called by the store with each change."""
        event = self._event(change)
        if event is None or self._overrun:
            return
        if len(self._waiting) >= self._options.backlog:
            self._overrun = True
            self._waiting.clear()
            self._cut()
        else:
            self._waiting.append(event)
        self._news.set()

    def _take_definition(self, change: Change) -> None:
        """What is watched is another kind from now on, or none: the client is to list again."""
        if change.item.name == self._kind.bucket and (
            change.kind == DELETED or change.before is None or _spec(change.before) != _spec(change.item)
        ):
            self._outdated = True
            self._news.set()

    async def _live(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._options.seconds
        bookmark_at = loop.time() + self._options.bookmark_s
        while (now := loop.time()) < end and not self._overrun:
            if self._waiting:
                yield self._drained()
                continue
            if self._outdated:
                return
            if now >= bookmark_at:
                bookmark_at = now + self._options.bookmark_s
                if self._options.bookmarks:
                    yield self._bookmark()
                    continue
            await self._wait(min(end, bookmark_at) - now)

    async def _wait(self, seconds: float) -> None:
        self._news.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return

    def _drained(self) -> bytes:
        events, self._waiting = self._waiting, deque()
        return b"".join(self._line(kind, item) for kind, item in events)

    # where it begins

    def _start(self) -> list[Line]:
        """What is told first; the listener is added right after, with nothing in between."""
        version, initial = self._options.version, self._options.initial
        from_state = version in ("", "0") if initial is None else initial
        if from_state:
            lines = [self._line(ADDED, item) for item in self._matching()]
            return [*lines, self._bookmark(initial=True)] if initial and self._options.bookmarks else lines
        if version in ("", "0"):
            return []
        changes = self._store.changes_since(self._kind.bucket, int(version))
        events = [event for change in changes if (event := self._event(change)) is not None]
        return [self._line(kind, item) for kind, item in events]

    def _matching(self) -> Sequence[Item]:
        items = self._store.items(self._kind.bucket, self._namespace)
        return items if self._selector.everything else [one for one in items if self._selector.matches(one)]

    # what is told

    def _event(self, change: Change) -> tuple[str, Item] | None:
        """A change as this client sees it: into its selection is an addition, out of it a deletion."""
        item = change.item
        if self._namespace and item.namespace != self._namespace:
            return None
        if self._selector.everything:
            return change.kind, item
        before = change.before is not None and self._selector.matches(change.before)
        if change.kind == DELETED:
            return (DELETED, item) if before else None
        if self._selector.matches(item):
            return (MODIFIED if before else ADDED), item
        if before and change.before is not None:
            return DELETED, _last_seen(self._kind, change.before, change.version)
        return None

    def _line(self, kind: str, item: Item) -> Line:
        return b'{"type":"%b","object":%b}\n' % (kind.encode(), self._render(item))

    def _bookmark(self, *, initial: bool = False) -> Line:
        metadata: Document = {"resourceVersion": str(self._store.version), "creationTimestamp": None}
        if initial:
            metadata["annotations"] = {INITIAL_END: "true"}
        mark = {"kind": self._kind.kind, "apiVersion": self._kind.api_version, "metadata": metadata}
        return encode({"type": "BOOKMARK", "object": mark}) + b"\n"

    def _error(self, refused: Refused) -> Line:
        return encode({"type": "ERROR", "object": refused.status()}) + b"\n"


def _spec(item: Item) -> Document:
    spec: Document = item.document()["spec"]
    return spec


def _last_seen(kind: ServedKind, before: Item, version: int) -> Item:
    """What a client is told of an object that left its selection: the last state it may see."""
    return make_item(kind.bucket, before.document(), version)
