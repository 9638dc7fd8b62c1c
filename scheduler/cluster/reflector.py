"""Follows all objects of one kind: lists them, then watches, and says what changed.

Whatever happens to the connection, what is said adds up to what the server holds: a watch that drops goes on
at the last version heard of, a version the server no longer has leads to a new list, and what a new list
lacks is said to be deleted. An object of the same name with another uid is another one: first the old one is
deleted.

A custom kind's definition may change meanwhile. The server then ends its watches, but a second or more too
late, and what they sent by the old definition lacks the new fields. So after a watch that ended before its
time all objects of a custom kind are listed, and said again, whether their versions are known or not.

Knows nothing of other kinds or of who listens (``feed.py``).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from volcano_py.client.api import Api, retry_wait_s
from volcano_py.client.errors import ApiError, Unreachable
from volcano_py.client.resources import Resource
from volcano_py.client.rests import Rest
from volcano_py.scheduler.cluster.wire import Event, Garbage, Reader, Seen
from volcano_py.scheduler.model.kube.errors import Problem

__all__ = ["Change", "KindStats", "Pace", "Reflector"]

# Lists in pages that expire this often in a row are asked for whole: it is slow here, not the server's fault.
_EXPIRED_PAGES: Final = 2
# Bound one page, and a list without pages: that of a large cluster takes its time.
_PAGE_S: Final = 60.0
_WHOLE_S: Final = 600.0
# A watch that ends sooner without a line was no watch.
_SHORT_S: Final = 1.0
# A watch that ends so long before it was to has been ended for a reason.
_EARLY_S: Final = 2.0
# Then the list is asked for so much later, so that a server which ends every watch isn't kept busy by lists.
_DOUBT_S: Final = (0.1, 0.5)


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one object.

    Attributes:
        kind: such as ``Pod``.
        key: ``namespace/name``, or the name alone outside namespaces.
        item: the object as it is now (structs of the model, models of ``crds``; a mapping for kinds that have
            neither). None: deleted; or unreadable, then ``problems`` say why and it counts as absent.
        version: ``resourceVersion``.
        uid: of the object, also where it is unreadable; "" where it is gone.
    """

    kind: str
    key: str
    item: Any | None
    problems: tuple[Problem, ...]
    version: str
    uid: str = ""

    @property
    def is_deletion(self) -> bool:
        """Whether the object is gone, rather than there or unreadable."""
        return self.item is None and not self.problems


@dataclass(frozen=True, slots=True)
class Pace:
    """How one follows a kind.

    Attributes:
        page: objects a page of a list.
        watch_s: seconds after which the server is asked to end a watch; up to twice that, at random, so that
            the watches of many kinds don't end together.
        silence_s: a watch without a line for so long is dropped. Servers send a bookmark each minute.
        absent_s: how long a kind may be unknown to the server before it counts as listed, and empty: after a
            restart a server does not know custom kinds for a moment.
        wait_scale: factor on the waits after failures, which begin at up to 0.1 s and end at up to 5 s.
    """

    page: int = 500
    watch_s: float = 300.0
    silence_s: float = 150.0
    absent_s: float = 5.0
    wait_scale: float = 1.0


@dataclass(slots=True)
class KindStats:
    """How following one kind goes. Counts are since the start.

    Attributes:
        state: ``listing``, ``watching``, ``absent`` (the server doesn't serve the kind) or ``failing``.
        problem: why it is absent or failing.
        lists: complete lists; relists: those after the first.
        watches: watches begun.
        drops: watches and lists that ended in a failure.
        events: objects seen in watches; unreadable: objects that came with problems.
        objects: how many there are now.
        heard: monotonic seconds of the last sign of life from the server; 0 before the first.
    """

    state: str = "listing"
    problem: str = ""
    lists: int = 0
    watches: int = 0
    drops: int = 0
    events: int = 0
    unreadable: int = 0
    objects: int = 0
    heard: float = 0.0

    @property
    def relists(self) -> int:
        """Lists after the first."""
        return max(0, self.lists - 1)

    def silent_s(self) -> float:
        """Seconds since the last sign of life; infinite before the first."""
        return time.monotonic() - self.heard if self.heard else float("inf")


class _Held(NamedTuple):
    """What is known of an object that was passed on."""

    uid: str
    version: str


class Reflector:
    """One kind on one server. ``tell`` gets every change, ``told`` is called after each lot of them."""

    def __init__(
        self,
        api: Api,
        resource: Resource,
        tell: Callable[[Change], None],
        told: Callable[[], None],
        pace: Pace,
        *,
        reader: Reader | None = None,
        select: Mapping[str, str] | None = None,
    ) -> None:
        """*reader*: reads something else than the model's objects; *select*: label or field selectors."""
        self.resource = resource
        self.stats = KindStats()
        self.rest = Rest()
        self.listed = asyncio.Event()
        self._api = api
        self._reader = reader or Reader(resource)
        self._select = dict(select or {})
        self._tell = tell
        self._told = told
        self._pace = pace
        self._held: dict[str, _Held] = {}
        self._version = ""
        self._is_doubted = False
        self._failures = 0
        self._absent_since: float | None = None

    @property
    def version(self) -> str:
        """What was told is as it was at this version; "" while that is not known."""
        return self._version

    async def run(self) -> None:
        """Follow the kind until cancelled."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except (ApiError, Unreachable, Garbage) as error:
                await self._recover(error)

    def forget(self) -> None:
        """Say of all objects that they are gone: nobody follows them, or waits for them, from now on."""
        for key in list(self._held):
            self._delete(key, self._version)
        self.listed.set()
        self._told()

    async def _recover(self, error: ApiError | Unreachable | Garbage) -> None:
        """Decide where to go on after *error*, and wait for that."""
        self._failures += 1
        if isinstance(error, Garbage) or (isinstance(error, ApiError) and not error.is_busy):
            # The same watch would meet the same again; one whose connection dropped can go on where it was.
            self._version = ""
        if isinstance(error, ApiError) and error.is_gone and self._failures == 1:
            return  # the usual end of a version, no failure
        self.stats.drops += 1
        self.stats.state, self.stats.problem = "failing", str(error)
        if isinstance(error, ApiError) and error.is_missing:
            self._count_as_absent()
        await asyncio.sleep(self._pace.wait_scale * retry_wait_s(self._failures, error))

    def _count_as_absent(self) -> None:
        now = time.monotonic()
        if self._absent_since is None:
            self._absent_since = now
        if now - self._absent_since >= self._pace.absent_s:
            self.stats.state = "absent"
            self.listed.set()

    # -- lists ----------------------------------------------------------------------------------

    async def _list(self) -> None:
        """List all objects and say what is new, other or gone against what was said before."""
        version, seen = await self._all_pages()
        for key in [key for key in self._held if key not in seen]:
            self._delete(key, version)
        self._told()
        self._version = version
        self._is_doubted = False
        self.stats.lists += 1
        self._answered()
        self.listed.set()

    async def _all_pages(self) -> tuple[str, set[str]]:
        """As ``_pages``; pages that expire before they are read are begun anew, and at last done without."""
        for _ in range(_EXPIRED_PAGES):
            try:
                return await self._pages(self._pace.page)
            except ApiError as error:
                if not error.is_gone:
                    raise
        return await self._pages(0)

    async def _pages(self, size: int) -> tuple[str, set[str]]:
        """Read a list in pages of *size* (0: whole), say what is new. Returns its version and all keys."""
        seen: set[str] = set()
        query = {**self._select, "limit": str(size)} if size else self._select
        while True:
            body = await self._api.call(
                "GET", self.resource.path(), query=query, timeout_s=_PAGE_S if size else _WHOLE_S
            )
            page = self._reader.page(body)
            for one in page.items:
                seen.add(one.key)
                self._put(one)
            self.stats.heard = time.monotonic()
            self._told()
            if not page.more:
                return page.version, seen
            query = {**self._select, "limit": str(size), "continue": page.more}

    # -- watches --------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Watch from the last version on, until the server ends it. Raises where it ends badly."""
        begun = time.monotonic()
        heard = False
        seconds = max(1, round(self._pace.watch_s * random.uniform(1.0, 2.0)))
        self.stats.watches += 1
        lines = self._api.line_batches(
            self.resource.path(),
            self._watch_query(seconds),
            idle_timeout_s=self._pace.silence_s,
            rest=self.rest,
        )
        try:
            async with aclosing(lines) as batches:
                async for batch in batches:
                    heard = heard or bool(batch)
                    self._take(batch)
        finally:
            self._told()
            if not heard and time.monotonic() - begun >= self._pace.silence_s:
                # It may be that this server never had our version, and waits for it: look again.
                self._version = ""
        if not heard and time.monotonic() - begun < _SHORT_S:
            raise Unreachable(f"the watch of {self.resource.plural} ended as soon as it began")
        self._failures = 0
        if self.resource.custom and time.monotonic() - begun < seconds - _EARLY_S:
            self._version, self._is_doubted = "", True
            await asyncio.sleep(self._pace.wait_scale * random.uniform(*_DOUBT_S))

    def _watch_query(self, seconds: int) -> dict[str, str]:
        return {
            **self._select,
            "watch": "1",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }

    def _take(self, lines: list[bytes]) -> None:
        """Apply whole lines of a watch."""
        self._answered()
        for line in lines:
            if line:
                self._apply(self._reader.event(line))
                # Only now: a list that succeeds does not yet mean that watching does.
                self._failures = 0
        self._told()

    def _apply(self, event: Event) -> None:
        if event.error is not None:
            raise event.error
        seen = event.seen
        if seen is not None:
            self.stats.events += 1
            if event.type == "DELETED":
                self._delete(seen.key, seen.version)
            else:
                self._put(seen)
        self._version = event.version or self._version

    # -- what was said --------------------------------------------------------------------------

    def _answered(self) -> None:
        """The server does its part: what was wrong is no more."""
        self.stats.heard = time.monotonic()
        self.stats.state, self.stats.problem = "watching", ""
        self._absent_since = None

    def _put(self, seen: Seen) -> None:
        known = self._held.get(seen.key)
        if known is not None:
            if known == (seen.uid, seen.version) and not self._is_doubted:
                return
            if known.uid != seen.uid:
                self._delete(seen.key, seen.version)
        self._held[seen.key] = _Held(seen.uid, seen.version)
        self.stats.objects = len(self._held)
        self.stats.unreadable += bool(seen.problems)
        self._tell(Change(self.resource.kind, seen.key, seen.item, seen.problems, seen.version, seen.uid))

    def _delete(self, key: str, version: str) -> None:
        if self._held.pop(key, None) is not None:
            self.stats.objects = len(self._held)
            self._tell(Change(self.resource.kind, key, None, (), version))
