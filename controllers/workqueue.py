"""Keys that wait to be looked at: each once, however often it is added, and by one worker at a time."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["WorkQueue"]

Key = TypeVar("Key", bound=Hashable)


class WorkQueue(Generic[Key]):
    """First come, first served. A key added while it is worked on comes again afterwards."""

    def __init__(self) -> None:
        self._ready: OrderedDict[Key, None] = OrderedDict()
        self._working: set[Key] = set()
        self._again: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._filled = asyncio.Event()

    def __len__(self) -> int:
        """Keys that could be worked on now."""
        return len(self._ready)

    @property
    def is_idle(self) -> bool:
        """Whether nobody works, and no key is ready or waits for its time."""
        return not (self._ready or self._working or self._timers)

    def add(self, key: Key) -> None:
        """Look at *key* soon."""
        if key in self._working:
            self._again.add(key)
            return
        self._ready[key] = None
        self._filled.set()

    def add_later(self, key: Key, delay_s: float) -> None:
        """Look at *key* after *delay_s*; of several such times the earliest counts."""
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= loop.time() + delay_s:
                return
            timer.cancel()
        self._timers[key] = loop.call_later(delay_s, self._due, key)

    async def take(self) -> Key:
        """The next key, to be given back with :meth:`done`."""
        while not self._ready:
            self._filled.clear()
            await self._filled.wait()
        key, _ = self._ready.popitem(last=False)
        self._working.add(key)
        return key

    def done(self, key: Key) -> None:
        """Work on *key* has ended."""
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        """Forget what waits for its time."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.add(key)
