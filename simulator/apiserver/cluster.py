"""The cluster behind the server: its objects, the kinds it serves, and what follows from a change at once.

A definition takes effect within the write that brought it; a namespace has its service account before anybody
can put a pod there. What may take its time is ``upkeep``'s.
"""

from __future__ import annotations

from typing import Final

from volcano_py.simulator.apiserver.deleting import DEFINITIONS, Deleting
from volcano_py.simulator.apiserver.objects import Clock, Objects
from volcano_py.simulator.apiserver.requests import Target, Write
from volcano_py.simulator.apiserver.schema.kinds import ServedKind
from volcano_py.simulator.apiserver.schema.registry import Registry
from volcano_py.simulator.apiserver.status import Document
from volcano_py.simulator.apiserver.store import ADDED, DELETED, Change, Item, Store

_OWN: Final = Write(manager="kube-apiserver")


class Cluster:
    """One store with everything that keeps it in order."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.registry = Registry()
        self.objects = Objects(store, clock)
        self.deleting = Deleting(self.objects)
        for item in store.items(DEFINITIONS):
            self.registry.set_crd(item.document())
        store.observe(self._follow)

    def kind(self, group: str, version: str, plural: str) -> ServedKind:
        """A built-in kind."""
        kind = self.registry.resolve(group, version, plural)
        if kind is None:
            raise LookupError(f"{group}/{version} {plural} is not served")
        return kind

    def ensure(self, group: str, version: str, plural: str, document: Document) -> None:
        """Make an object of the server's own, if its name is free."""
        kind = self.kind(group, version, plural)
        metadata = document["metadata"]
        space = metadata.get("namespace") or ""
        if self.store.get(kind.bucket, space, metadata["name"]) is None:
            self.objects.create(Target(kind, space), document, _OWN)

    def _follow(self, change: Change) -> None:
        if change.bucket == DEFINITIONS:
            self._follow_definition(change)
        elif change.bucket == "namespaces" and change.kind == ADDED:
            self._furnish(change.item)

    def _follow_definition(self, change: Change) -> None:
        if change.kind == DELETED:
            self.registry.drop_crd(change.item.name)
            return
        document = change.item.document()
        self.registry.set_crd(document)
        status = self.registry.crd_status(document)
        if document.get("status") != status:
            document["status"] = status
            self.store.put(DEFINITIONS, document)

    def _furnish(self, namespace: Item) -> None:
        account = {"metadata": {"name": "default", "namespace": namespace.name}}
        self.ensure("", "v1", "serviceaccounts", account)
