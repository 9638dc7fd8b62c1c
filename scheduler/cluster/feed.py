"""What changed on the server since it was last asked for, over several kinds.

One reflector a kind follows the server; here wait the changes nobody has read yet, at most the latest of each
object, so that a reader that is busy for a while finds a bounded amount of work. Lives in one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from volcano_py.client.api import Api
from volcano_py.client.resources import RESOURCES
from volcano_py.scheduler.cluster.bell import Bell
from volcano_py.scheduler.cluster.reflector import Change, KindStats, Pace, Reflector
from volcano_py.scheduler.cluster.wire import Reader

__all__ = ["ENGINE_KINDS", "Change", "Feed", "FeedStats", "KindStats", "Pace"]

# What the engine reads, in the order in which it is cheapest taken in: what pods refer to before the pods.
ENGINE_KINDS: Final = (
    "PriorityClass",
    "Queue",
    "Namespace",
    "Node",
    "StorageClass",
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PodGroup",
    "Pod",
)

NO_READERS: Final[Mapping[str, Reader]] = MappingProxyType({})
NO_SELECTORS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({})


class FeedStats:
    """How reading the server goes.

    Attributes:
        kinds: by kind.
        taken: changes that were read.
        merged: changes that were replaced by later ones before anybody read them.
    """

    def __init__(self, kinds: dict[str, KindStats]) -> None:
        self.kinds = kinds
        self.taken = 0
        self.merged = 0

    @property
    def problems(self) -> dict[str, str]:
        """Kinds that can't be followed now, and why."""
        return {kind: stats.problem for kind, stats in self.kinds.items() if stats.problem}


class Feed:
    """Lists and watches kinds; keeps the latest unread change of each object.

    Attributes:
        changed: set while there is something to take.
        rang: since the last ``rest`` a pod without a node came, or nobody listens for them any more.
        stats: for metrics and health.
    """

    def __init__(
        self,
        api: Api,
        kinds: Iterable[str] = ENGINE_KINDS,
        *,
        page: int = 500,
        pace: Pace | None = None,
        readers: Mapping[str, Reader] = NO_READERS,
        select: Mapping[str, Mapping[str, str]] = NO_SELECTORS,
    ) -> None:
        """*kinds* in the order in which :meth:`take` gives them.

        Args:
            api: the server.
            kinds: what to follow.
            page: objects a page; counts where no *pace* is given.
            pace: how to follow.
            readers: by kind, where something else than the model's objects is wanted.
            select: by kind, ``labelSelector`` and ``fieldSelector`` where not all objects are wanted.
        """
        self._api, self._pace, self._readers = api, pace or Pace(page=page), readers
        self.changed = asyncio.Event()
        self.rang = False
        self._bell = Bell(api, self._ring)
        self._unread = {kind: _Unread() for kind in kinds}
        self._reflectors = [self._reflector(kind, select.get(kind)) for kind in self._unread]
        self.stats = FeedStats({one.resource.kind: one.stats for one in self._reflectors})
        self._group: asyncio.TaskGroup | None = None
        self._tasks: dict[Reflector, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Follow the server until cancelled. Whatever the server does is survived."""
        async with asyncio.TaskGroup() as self._group:
            for one in self._reflectors:
                self._start(one)
            self._group.create_task(self._bell.run(), name="listen for new pods")

    def follow(self, kind: str, select: Mapping[str, str]) -> Reflector:
        """Follow further objects of *kind*, which ``stats`` is about from now on; ``leave`` ends it."""
        self._unread.setdefault(kind, _Unread())
        more = self._reflector(kind, select)
        self._reflectors.append(more)
        self.stats.kinds[kind] = more.stats
        self._start(more)
        return more

    def leave(self, one: Reflector) -> None:
        """Follow what *one* follows no more: its objects count as gone."""
        self._reflectors.remove(one)
        if one in self._tasks:
            self._tasks.pop(one).cancel()
        one.forget()
        kind = one.resource.kind
        left = [other.stats for other in self._reflectors if other.resource.kind == kind]
        if left:
            self.stats.kinds[kind] = left[-1]
        else:
            del self.stats.kinds[kind]

    def of(self, kind: str) -> list[Reflector]:
        """Who follows objects of *kind*."""
        return [one for one in self._reflectors if one.resource.kind == kind]

    def _reflector(self, kind: str, select: Mapping[str, str] | None) -> Reflector:
        return Reflector(
            self._api,
            RESOURCES[kind],
            self._unread[kind].put,
            self._told,
            self._pace,
            reader=self._readers.get(kind),
            select=select,
        )

    def _start(self, one: Reflector) -> None:
        if self._group is not None:
            name = f"follow {one.resource.plural}"
            self._tasks[one] = self._group.create_task(one.run(), name=name)

    async def synced(self) -> None:
        """Return once all that is followed was listed; kinds the server does not serve are so, and empty."""
        while waiting := [one for one in self._reflectors if not one.listed.is_set()]:
            await waiting[0].listed.wait()

    @property
    def listens(self) -> bool:
        """Whether a new pod ends a rest."""
        return self._bell.is_up

    def rest(self, seconds: float, *, listen: bool = False) -> None:
        """From now on, let events of each kind gather for so long; 0 for not at all.

        Each event that comes alone costs several times its decoding. *listen*: rests are to end when a pod
        without a node comes; they do from the moment on at which it ``listens``.
        """
        self.rang = False
        for one in self._reflectors:
            one.rest.seconds = seconds
        pods = next((one for one in self._reflectors if one.resource.kind == "Pod"), None)
        if listen and pods is not None and pods.version:
            self._bell.listen(pods.version)
        else:
            self._bell.hush()

    def take(self) -> list[Change]:
        """Everything unread, kind by kind in the order of the kinds, within a kind by first arrival.

        Of each object there is its latest change only; but where one was deleted and another of the same name
        made, the deletion comes before the new one.
        """
        changes = [change for unread in self._unread.values() for change in unread.take()]
        self.stats.taken += len(changes)
        self.stats.merged = sum(unread.merged for unread in self._unread.values())
        self.changed.clear()
        return changes

    def _ring(self) -> None:
        self.rest(0.0)
        self.rang = True

    def _told(self) -> None:
        if any(self._unread.values()):
            self.changed.set()


class _Unread:
    """Changes of one kind that nobody has read."""

    def __init__(self) -> None:
        self.merged = 0
        self._changes: dict[str, tuple[Change, ...]] = {}

    def __len__(self) -> int:
        return len(self._changes)

    def put(self, change: Change) -> None:
        """Keep *change* in place of what was there of the object, save a deletion before a new object."""
        before = self._changes.get(change.key)
        if before is None:
            self._changes[change.key] = (change,)
            return
        self.merged += 1
        is_new_one = before[0].is_deletion and not change.is_deletion
        self._changes[change.key] = (before[0], change) if is_new_one else (change,)

    def take(self) -> list[Change]:
        """All of them, and forget them."""
        changes = [change for several in self._changes.values() for change in several]
        self._changes = {}
        return changes
