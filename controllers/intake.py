"""Brings the server's state into :class:`Observed`: whole lists, and single events of watches.

Before the first decision every kind is listed, so that nothing is taken for missing that was merely not seen
yet. A list also says what is gone. That is needed later too: a watch that begins, or begins anew, lists and
tells nothing of deletions before that (kopf does so). So whenever it has asked for a list (``listed``), the
kind is listed here once more, soon after; and from time to time for ever.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

import structlog

from volcano_py.client.api import RESOURCES, Api, ApiError, Unreachable
from volcano_py.controllers.observed import KINDS, Change, Observed

__all__ = ["Intake", "pod_selector"]

_log = structlog.get_logger("controllers")

_PAGE: Final = 500
_QUIET_S: Final = 2.0
_WAIT_S: Final = 2.0


def pod_selector(scheduler_names: tuple[str, ...]) -> str:
    """A field selector that keeps most foreign pods away; which of the rest are ours is asked of each pod."""
    if len(scheduler_names) == 1:
        return f"spec.schedulerName={scheduler_names[0]}"
    return "" if "default-scheduler" in scheduler_names else "spec.schedulerName!=default-scheduler"


class Intake:
    """Lists and events in, changes out.

    Attributes:
        lists: complete lists taken, by kind.
        events: watch events taken, by kind.
        complete: whether every kind was listed once.
    """

    def __init__(
        self,
        api: Api,
        seen: Observed,
        *,
        changed: Callable[[Change], None],
        scheduler_names: tuple[str, ...],
        every_s: float,
    ) -> None:
        """*every_s*: seconds between two lists of a kind although nothing suggests one."""
        self._api, self._seen, self._changed = api, seen, changed
        self._selectors = {"Pod": pod_selector(scheduler_names)}
        self._every_s = every_s
        self._due: dict[str, float] = {}
        self.lists = dict.fromkeys(KINDS, 0)
        self.events = dict.fromkeys(KINDS, 0)
        self.complete = False

    def event(self, kind: str, what: str | None, document: Mapping[str, Any]) -> None:
        """Take one event of a watch. *what*: ADDED, MODIFIED, DELETED, or None for an entry of its list."""
        self.events[kind] += 1
        if what == "DELETED":
            meta = document["metadata"]
            key = "/".join(part for part in (meta.get("namespace"), meta["name"]) if part)
            self._tell(self._seen.drop(kind, key, meta["uid"]))
            return
        self._tell(self._seen.put(kind, document))

    def listed(self, kind: str) -> None:
        """A watch of *kind* begins with a list, which tells nothing of what it does not hold."""
        soon = asyncio.get_running_loop().time() + _QUIET_S
        self._due[kind] = min(self._due.get(kind, soon), soon)

    async def fill(self) -> None:
        """List every kind, waiting for those that the server doesn't serve yet."""
        for kind in KINDS:
            while not await self._try_list(kind):
                await asyncio.sleep(_WAIT_S)
        self.complete = True

    async def refresh(self) -> None:
        """List a kind again when it is due; until cancelled."""
        loop = asyncio.get_running_loop()
        for kind in KINDS:
            self._due.setdefault(kind, loop.time() + self._every_s)
        while True:
            await asyncio.sleep(min(_QUIET_S, self._every_s) / 2)
            for kind in KINDS:
                if loop.time() >= self._due[kind]:
                    self._due[kind] = loop.time() + self._every_s * random.uniform(0.9, 1.1)
                    if not await self._try_list(kind):
                        self._due[kind] = loop.time() + _WAIT_S

    async def _try_list(self, kind: str) -> bool:
        """Whether *kind* could be listed; if not, the log says why."""
        try:
            await self._list(kind)
        except (ApiError, Unreachable) as error:
            _log.warning("cannot_list", kind=kind, error=str(error))
            return False
        self.lists[kind] += 1
        return True

    async def _list(self, kind: str) -> None:
        uids: set[str] = set()
        version = 0
        async for page in self._pages(kind):
            version = int(page["metadata"]["resourceVersion"])
            for document in page["items"]:
                uids.add(document["metadata"]["uid"])
                self._tell(self._seen.put(kind, document))
        for change in self._seen.drop_unlisted(kind, uids, version):
            self._tell(change)

    async def _pages(self, kind: str) -> AsyncIterator[Mapping[str, Any]]:
        """The pages of one consistent list."""
        query = {"limit": str(_PAGE)}
        if self._selectors.get(kind):
            query["fieldSelector"] = self._selectors[kind]
        while True:
            page = await self._api.get(RESOURCES[kind].path(), **query)
            yield page
            query["continue"] = page["metadata"].get("continue") or ""
            if not query["continue"]:
                return

    def _tell(self, change: Change | None) -> None:
        if change is not None:
            self._changed(change)
