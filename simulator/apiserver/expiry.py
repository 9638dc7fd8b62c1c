"""Events are kept for an hour after they were last written, so that a long run does not drown in them."""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import Final

from volcano_py.simulator.apiserver.store import DELETED, Change, Key, Store

EVENTS: Final = "events"
KEPT_S: Final = 3600.0


class Expiry:
    """When each event of one store is to go."""

    def __init__(self, store: Store, now: float, kept_s: float = KEPT_S) -> None:
        self._store = store
        self._kept_s = kept_s
        self._written: OrderedDict[Key, float] = OrderedDict((item.key, now) for item in store.items(EVENTS))

    def heed(self, change: Change, now: float) -> None:
        """Note that an event was written at *now*."""
        if change.bucket != EVENTS:
            return
        self._written.pop(change.item.key, None)
        if change.kind != DELETED:
            self._written[change.item.key] = now

    def sweep(self, now: float, most: int) -> None:
        """Remove up to *most* events whose time is up."""
        for key, written in list(islice(self._written.items(), most)):
            if now - written < self._kept_s:
                return
            self._store.remove(EVENTS, *key)
