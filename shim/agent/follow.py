"""What the API server holds of one kind, kept by a list and a watch, whatever breaks in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, Final, Generic, TypeVar

import msgspec
import structlog

from volcano_py.client.api import Api, ApiError, Unreachable, asked_wait_s
from volcano_py.client.errors import status_error
from volcano_py.shim.agent.pods import Node, Pod

T = TypeVar("T", Pod, Node)

# The server ends a watch after the first, and sends a bookmark each minute: longer silence is a dead line.
_WATCH_S: Final = 300
_SILENCE_S: Final = 150.0
_SHORTEST_S: Final = 1.0
_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 15.0


class _Listed(msgspec.Struct):
    """Versions of a list."""

    metadata: dict[str, Any]
    items: list[msgspec.Raw]


class _Line(msgspec.Struct):
    """One event of a watch."""

    type: str
    object: msgspec.Raw


class Follower(Generic[T]):
    """Objects of one kind that a field selector picks.

    Args:
        server: whom to ask.
        path: of the list.
        selector: which of them.
        kind: what they are read as; one that can't be is told and left out.
        changed: called after each change, and each list.

    Attributes:
        objects: by UID.
        synced: whether a list was ever read.
    """

    def __init__(
        self, server: Api, path: str, selector: str, kind: type[T], changed: Callable[[], None]
    ) -> None:
        self._server, self._path, self._selector, self._changed = server, path, selector, changed
        self._kind: type[T] = kind
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(kind)
        self._log = structlog.get_logger(path=path)
        self.objects: dict[str, T] = {}
        self._written: dict[str, T] = {}
        self.synced = asyncio.Event()

    async def run(self) -> None:
        """Follow for ever."""
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                found, version = await self._list()
                self._written = {uid: item for uid, item in self._written.items() if uid in found}
                self.objects = {uid: self._newest(item) for uid, item in found.items()}
                self.synced.set()
                self._changed()
                wait_s = _FIRST_WAIT_S
                await self._watch(version)
            except (ApiError, Unreachable, msgspec.DecodeError) as error:
                if not (isinstance(error, ApiError) and error.is_gone):
                    self._log.warning("not followed for now", error=str(error))
                await asyncio.sleep(max(wait_s, asked_wait_s(error)))
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    def upsert(self, document: Any) -> None:
        """What a write of ours made of an object; the watch tells it later, after older news of it."""
        try:
            item = msgspec.convert(document, self._kind)
        except msgspec.ValidationError as error:
            self._log.warning("an object can't be read", error=str(error))
            return
        uid = item.metadata.uid
        self._written[uid] = item
        if uid in self.objects:  # else it is not followed yet, or gone
            self.objects[uid] = self._newest(self.objects[uid])

    async def fetch(self) -> dict[str, T]:
        """What the server holds now, which may be ahead of what was followed.

        Raises ``ApiError`` and ``Unreachable``.
        """
        objects, _ = await self._list()
        return objects

    async def _list(self) -> tuple[dict[str, T], str]:
        answer = await self._server.call("GET", self._path, query={"fieldSelector": self._selector})
        listed = msgspec.json.decode(answer, type=_Listed)
        found = [item for raw in listed.items if (item := self.read(raw)) is not None]
        return {item.metadata.uid: item for item in found}, str(listed.metadata.get("resourceVersion", ""))

    async def _watch(self, version: str) -> None:
        """Take changes since *version* until the watch ends, and watch on.

        Raises ``ApiError`` and ``Unreachable``.
        """
        while True:
            query = {
                "watch": "1",
                "fieldSelector": self._selector,
                "resourceVersion": version,
                "allowWatchBookmarks": "true",
                "timeoutSeconds": str(_WATCH_S),
            }
            begun = time.monotonic()
            watch = self._server.lines(self._path, query, idle_timeout_s=_SILENCE_S)
            async with aclosing(watch) as lines:
                async for line in lines:
                    version = self._take(line) or version
            # A server that ends each watch at once is not asked in a circle.
            await asyncio.sleep(max(0.0, begun + _SHORTEST_S - time.monotonic()))

    def _take(self, line: bytes) -> str:
        event = msgspec.json.decode(line, type=_Line)
        if event.type == "ERROR":
            raise status_error(msgspec.json.decode(event.object, type=dict), 500, line, f"watch {self._path}")
        if event.type == "BOOKMARK":
            return str(msgspec.json.decode(event.object)["metadata"]["resourceVersion"])
        item = self.read(event.object)
        if item is None:
            return ""
        if event.type == "DELETED":
            self.objects.pop(item.metadata.uid, None)
            self._written.pop(item.metadata.uid, None)
        else:
            self.objects[item.metadata.uid] = self._newest(item)
        self._changed()
        return item.metadata.resource_version

    def _newest(self, item: T) -> T:
        """*item*, or what a write of ours has made of it since."""
        written = self._written.get(item.metadata.uid)
        return item if written is None or _version(written) <= _version(item) else written

    def read(self, raw: bytes | msgspec.Raw) -> T | None:
        """*raw* as an object; None, and a line in the log, where it is none."""
        try:
            return self._decoder.decode(raw)
        except (msgspec.DecodeError, ValueError) as error:
            self._log.warning("an object can't be read", error=str(error))
            return None


def _version(item: Pod | Node) -> int:
    """Larger is newer."""
    version = item.metadata.resource_version
    return int(version) if version.isdecimal() else 0
