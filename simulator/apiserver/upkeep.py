"""What a cluster does by itself: garbage, ending namespaces and definitions, budgets, old events.

One task, woken by changes. It works in short turns, so that requests are answered in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final

from volcano_py.simulator.apiserver.cluster import Cluster
from volcano_py.simulator.apiserver.collector import Collector
from volcano_py.simulator.apiserver.deleting import CLEANUP, DEFINITIONS
from volcano_py.simulator.apiserver.disruption import BudgetKeeper
from volcano_py.simulator.apiserver.expiry import Expiry
from volcano_py.simulator.apiserver.requests import BACKGROUND, Deletion
from volcano_py.simulator.apiserver.status import Document
from volcano_py.simulator.apiserver.store import DELETED, Change, Item

log = logging.getLogger(__name__)

_TURN: Final = 200
"""Objects looked at before requests have their turn."""
_GATHER_S: Final = 0.01
"""Changes of this long are dealt with together."""
_SWEEP_S: Final = 60.0
"""With nothing to do, old events are looked for this often."""
_RETRY_S: Final = 1.0


class Upkeep:
    """Keeps one cluster in order while ``run`` runs."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._store = cluster.store
        self._collector = Collector(cluster)
        self._budgets = BudgetKeeper(cluster.store)
        self._clock = cluster.objects.clock
        self._expiry = Expiry(cluster.store, self._clock())
        self._ending = {item.name for item in self._store.items("namespaces") if item.ending}
        self._retired = {item.name for item in self._store.items(DEFINITIONS) if item.ending}
        self._news = asyncio.Event()
        self._news.set()
        self._store.observe(self._heed)

    async def run(self) -> None:
        """Work until cancelled; a fault is logged and tried again later."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_SWEEP_S):
                    await self._news.wait()
            await asyncio.sleep(_GATHER_S)
            self._news.clear()
            try:
                self._turn()
            except Exception:
                log.exception("upkeep failed")
                await asyncio.sleep(_RETRY_S)
                self._news.set()

    def _turn(self) -> None:
        self._collector.collect(_TURN)
        if self._collector.has_work:
            self._news.set()
        for name in tuple(self._ending):
            self._clear_namespace(name)
        for name in tuple(self._retired):
            self._clear_definition(name)
        self._budgets.settle()
        self._expiry.sweep(self._clock(), _TURN)

    def _heed(self, change: Change) -> None:
        work = self._collector.heed(change)
        work = self._budgets.heed(change) or work
        self._expiry.heed(change, self._clock())
        if change.item.ending and change.kind != DELETED:
            self._note_end(change)
        if work or self._ending or self._retired:
            self._news.set()

    def _note_end(self, change: Change) -> None:
        if change.bucket == "namespaces":
            self._ending.add(change.item.name)
        elif change.bucket == DEFINITIONS:
            self._retired.add(change.item.name)

    # namespaces

    def _clear_namespace(self, name: str) -> None:
        namespace = self._store.get("namespaces", "", name)
        if namespace is None or not namespace.ending:
            self._ending.discard(name)
            return
        left = 0
        for kind in self._cluster.registry.kinds():
            if kind.namespaced:
                items = self._store.items(kind.bucket, name)
                fresh = [item for item in items if not item.ending]
                self._cluster.deleting.delete_all(kind, fresh[:_TURN], Deletion(policy=BACKGROUND))
                left += len(self._store.items(kind.bucket, name))
        if left == 0:
            self._finalize(namespace)

    def _finalize(self, namespace: Item) -> None:
        kind = self._cluster.kind("", "v1", "namespaces")
        document = namespace.document()
        finalizers = document["spec"].get("finalizers") or []
        document["spec"]["finalizers"] = [one for one in finalizers if one != "kubernetes"]
        self._cluster.objects.put(kind, document)

    # definitions

    def _clear_definition(self, name: str) -> None:
        definition = self._store.get(DEFINITIONS, "", name)
        if definition is None or not definition.ending:
            self._retired.discard(name)
            return
        kind = next((one for one in self._cluster.registry.kinds() if one.bucket == name), None)
        if kind is not None:
            fresh = [item for item in self._store.items(name) if not item.ending]
            self._cluster.deleting.delete_all(kind, fresh[:_TURN], Deletion(policy=BACKGROUND))
        if not self._store.items(name):
            document: Document = definition.document()
            left = [one for one in document["metadata"].get("finalizers") or [] if one != CLEANUP]
            document["metadata"]["finalizers"] = left
            self._cluster.objects.put(
                self._cluster.kind("apiextensions.k8s.io", "v1", "customresourcedefinitions"), document
            )
