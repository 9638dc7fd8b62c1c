"""Garbage: what its owners have left behind, and how owners wait for it or let it go.

An object whose owners are all gone is deleted. An owner that is deleted in the foreground stays until no
dependant that blocks it is left; one whose dependants are to be orphaned is taken out of their references.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from volcano_py.simulator.apiserver.cluster import Cluster
from volcano_py.simulator.apiserver.deleting import FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from volcano_py.simulator.apiserver.requests import BACKGROUND, FOREGROUND, Deletion
from volcano_py.simulator.apiserver.schema.kinds import ServedKind
from volcano_py.simulator.apiserver.status import Document
from volcano_py.simulator.apiserver.store import DELETED, Change, Item, Key

Place = tuple[str, Key]
"""Bucket and key of an object."""

_OURS: Final = (FOREGROUND_FINALIZER, ORPHAN_FINALIZER)


class Collector:
    """Follows who owns whom, and deletes what nobody owns any more."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._store = cluster.store
        self._place_of: dict[str, Place] = {}
        self._dependants: dict[str, set[Place]] = defaultdict(set)
        self._doubtful: dict[Place, None] = {}
        for bucket, items in self._store.buckets():
            for item in items:
                self._enter(bucket, item)
                if item.owners or item.ending:
                    self._doubtful[bucket, item.key] = None

    @property
    def has_work(self) -> bool:
        """Whether there is something to look at."""
        return bool(self._doubtful)

    def heed(self, change: Change) -> bool:
        """Note what *change* may have left behind; whether there is something to look at."""
        if change.before is not None and change.before.owners != change.item.owners:
            self._leave(change.bucket, change.before)
        if change.kind == DELETED:
            self._bury(change)
        else:
            self._enter(change.bucket, change.item)
            if change.item.ending or _owners_are_news(change):
                self._doubtful[change.bucket, change.item.key] = None
        return self.has_work

    def collect(self, most: int) -> None:
        """Look at up to *most* objects and do what is due."""
        for place in list(self._doubtful)[:most]:
            del self._doubtful[place]
            self._look_at(place)

    # who owns whom

    def _enter(self, bucket: str, item: Item) -> None:
        place = (bucket, item.key)
        if item.uid:
            self._place_of[item.uid] = place
        for owner in item.owners:
            self._dependants[owner].add(place)

    def _leave(self, bucket: str, item: Item) -> None:
        for owner in item.owners:
            self._dependants[owner].discard((bucket, item.key))
            if not self._dependants[owner]:
                del self._dependants[owner]

    def _bury(self, change: Change) -> None:
        self._leave(change.bucket, change.item)
        self._place_of.pop(change.item.uid, None)
        for place in self._dependants.get(change.item.uid, ()):
            self._doubtful[place] = None
        for owner in change.item.owners:
            if owner in self._place_of:
                self._doubtful[self._place_of[owner]] = None

    # what is due

    def _look_at(self, place: Place) -> None:
        bucket, (namespace, name) = place
        item = self._store.get(bucket, namespace, name)
        kind = self._kind_of(bucket)
        if item is None or kind is None:
            return
        if item.ending:
            self._release(kind, item)
        elif item.owners:
            self._judge(kind, item)

    def _kind_of(self, bucket: str) -> ServedKind | None:
        return next((kind for kind in self._cluster.registry.kinds() if kind.bucket == bucket), None)

    def _judge(self, kind: ServedKind, item: Item) -> None:
        owners = [self._item_of(uid) for uid in item.owners]
        alive = [owner for owner in owners if owner is not None and _can_own(owner, item)]
        waiting = [owner for owner in alive if _awaits_dependants(owner)]
        if alive and len(waiting) < len(alive):
            if len(alive) < len(owners):
                self._forget_owners(kind, item, {owner.uid for owner in alive})
            return
        policy = FOREGROUND if waiting and self._blocked_by_others(item) else BACKGROUND
        self._delete(kind, item, policy)

    def _blocked_by_others(self, item: Item) -> bool:
        """Whether the object itself is waited for: its own dependants go first."""
        return bool(self._dependants.get(item.uid))

    def _delete(self, kind: ServedKind, item: Item, policy: str) -> None:
        own = item.document()["metadata"].get("finalizers") or []
        said = "" if any(one in _OURS for one in own) else policy
        self._cluster.deleting.delete_all(kind, [item], Deletion(policy=said))

    def _release(self, kind: ServedKind, item: Item) -> None:
        """Take our finalizers off an object whose dependants are dealt with."""
        document = item.document()
        finalizers = document["metadata"].get("finalizers") or []
        if ORPHAN_FINALIZER in finalizers:
            self._orphan(item)
            self._drop_finalizer(kind, document, ORPHAN_FINALIZER)
        elif FOREGROUND_FINALIZER in finalizers:
            dependants = self._dependants_of(item)
            for other_kind, dependant in dependants:
                if not dependant.ending:
                    self._judge(other_kind, dependant)
            if not any(_blocks(dependant, item.uid) for _, dependant in self._dependants_of(item)):
                self._drop_finalizer(kind, document, FOREGROUND_FINALIZER)

    def _drop_finalizer(self, kind: ServedKind, document: Document, finalizer: str) -> None:
        metadata = document["metadata"]
        left = [one for one in metadata["finalizers"] if one != finalizer]
        if left:
            metadata["finalizers"] = left
        else:
            del metadata["finalizers"]
        self._cluster.objects.put(kind, document)

    def _orphan(self, item: Item) -> None:
        for kind, dependant in self._dependants_of(item):
            self._forget_owners(kind, dependant, set(dependant.owners) - {item.uid})

    def _forget_owners(self, kind: ServedKind, item: Item, kept: set[str]) -> None:
        document = item.document()
        metadata = document["metadata"]
        owners = [owner for owner in metadata["ownerReferences"] if owner.get("uid") in kept]
        if owners:
            metadata["ownerReferences"] = owners
        else:
            del metadata["ownerReferences"]
        self._cluster.objects.put(kind, document)

    def _dependants_of(self, item: Item) -> list[tuple[ServedKind, Item]]:
        found = []
        for bucket, (namespace, name) in sorted(self._dependants.get(item.uid, ())):
            kind, dependant = self._kind_of(bucket), self._store.get(bucket, namespace, name)
            if kind is not None and dependant is not None:
                found.append((kind, dependant))
        return found

    def _item_of(self, uid: str) -> Item | None:
        place = self._place_of.get(uid)
        if place is None:
            return None
        bucket, (namespace, name) = place
        item = self._store.get(bucket, namespace, name)
        return item if item is not None and item.uid == uid else None


def _owners_are_news(change: Change) -> bool:
    before = change.before.owners if change.before is not None else ()
    return bool(change.item.owners) and change.item.owners != before


def _can_own(owner: Item, item: Item) -> bool:
    """An owner stands in the same namespace, or in none."""
    return owner.namespace in ("", item.namespace)


def _awaits_dependants(owner: Item) -> bool:
    finalizers = owner.document()["metadata"].get("finalizers") or () if owner.ending else ()
    return FOREGROUND_FINALIZER in finalizers


def _blocks(dependant: Item, uid: str) -> bool:
    owners = dependant.document()["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == uid and owner.get("blockOwnerDeletion") for owner in owners)
