"""All objects, one counter of versions over all of them, and what happened lately.

An object is kept as the bytes that clients read, with the few facts that selectors ask for beside it; a
document that has gone in is never shared with anybody. Versions grow by one with each change of any object.
The history holds the last changes, so that a watch can go on where it stopped and a list can be read as it
was; what is older is ``Compacted``. Everything is synchronous: the event loop's single thread is the lock.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from volcano_py.simulator.apiserver.selectable import selectable_fields

Document = dict[str, Any]
Key = tuple[str, str]
"""Namespace ("" for what has none) and name."""

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"

encode: Final = msgspec.json.Encoder().encode
decode: Final = msgspec.json.Decoder().decode


class Compacted(Exception):  # noqa: N818 - etcd's word
    """The version asked for is older than the history.

    Attributes:
        asked, oldest: the version asked for, and the oldest one that can be.
    """

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {asked} ({oldest})")
        self.asked = asked
        self.oldest = oldest


@dataclass(frozen=True, slots=True)
class Item:
    """One object at one version.

    Attributes:
        body: the object as JSON, with its version in it.
        labels: None where it has none.
        fields: what field selectors can ask for besides name and namespace; None where there is nothing.
        owners: UIDs of its ownerReferences.
        ending: it has a deletionTimestamp.
    """

    namespace: str
    name: str
    uid: str
    version: int
    body: bytes
    labels: Mapping[str, str] | None
    fields: Mapping[str, str] | None
    owners: tuple[str, ...]
    ending: bool

    @property
    def key(self) -> Key:
        """Where it is kept within its bucket."""
        return self.namespace, self.name

    def document(self) -> Document:
        """A copy that the caller may change."""
        document: Document = decode(self.body)
        return document


class Change(NamedTuple):
    """One step of the history.

    Attributes:
        kind: ADDED, MODIFIED or DELETED.
        item: as it is now; of a deletion the last state, with the version of the deletion.
        before: as it was; None for an addition.
    """

    version: int
    kind: str
    bucket: str
    item: Item
    before: Item | None


class Keeper(Protocol):
    """Whoever must have a change before anybody hears of it."""

    def record(self, change: Change) -> None:
        """Keep *change*; raises when it can't."""


class _Bucket:
    """The objects of one kind, by key."""

    def __init__(self) -> None:
        self.items: dict[Key, Item] = {}
        self.history: deque[Change] = deque()
        self.listeners: list[Callable[[Change], None]] = []
        self._order: list[Key] = []

    def put(self, item: Item) -> None:
        if item.key not in self.items:
            insort(self._order, item.key)
        self.items[item.key] = item

    def drop(self, key: Key) -> None:
        del self.items[key]
        del self._order[bisect_left(self._order, key)]

    def ordered(self, namespace: str) -> list[Item]:
        """All, or those of one namespace, by namespace and name."""
        if not namespace:
            return [self.items[key] for key in self._order]
        start = bisect_left(self._order, (namespace, ""))
        end = bisect_left(self._order, (namespace + "\0", ""))
        return [self.items[key] for key in self._order[start:end]]


class Store:
    """The content of the cluster.

    Args:
        history: changes that are kept for watches and old lists.
        version: the counter's start.
    """

    def __init__(self, *, history: int = 16_384, version: int = 1, keeper: Keeper | None = None) -> None:
        self.version = version
        self.compacted = version
        self._limit = history
        self._keeper = keeper
        self._buckets: dict[str, _Bucket] = {}
        self._history: deque[Change] = deque()
        self._observers: list[Callable[[Change], None]] = []

    # reading

    def get(self, bucket: str, namespace: str, name: str) -> Item | None:
        """The object, or None."""
        return self._bucket(bucket).items.get((namespace, name))

    def items(self, bucket: str, namespace: str = "") -> list[Item]:
        """The objects of a bucket (of one namespace), by namespace and name."""
        return self._bucket(bucket).ordered(namespace)

    def items_at(self, bucket: str, namespace: str, version: int) -> list[Item]:
        """The objects as they were at *version*.

        Raises:
            Compacted: that is too long ago.
        """
        undone: dict[Key, Item | None] = {
            change.item.key: change.before for change in reversed(self.changes_since(bucket, version))
        }
        if not undone:
            return self.items(bucket, namespace)
        there = {**self._bucket(bucket).items, **undone}
        items = [item for item in there.values() if item is not None]
        wanted = [item for item in items if not namespace or item.namespace == namespace]
        return sorted(wanted, key=lambda item: item.key)

    def changes_since(self, bucket: str, version: int) -> list[Change]:
        """What happened in *bucket* after *version*, oldest first.

        Raises:
            Compacted: part of it is no longer kept.
        """
        if version < self.compacted:
            raise Compacted(version, self.compacted)
        found: list[Change] = []
        for change in reversed(self._bucket(bucket).history):
            if change.version <= version:
                break
            found.append(change)
        found.reverse()
        return found

    def buckets(self) -> Iterator[tuple[str, Iterable[Item]]]:
        """Every bucket with its objects, in no order."""
        for name, bucket in list(self._buckets.items()):
            yield name, list(bucket.items.values())

    # writing

    def put(self, bucket: str, document: Document) -> Item:
        """Keep *document* as the object of its name, at the next version.

        The document gets that version written into it and must not be changed afterwards.
        """
        item = make_item(bucket, document, self.version + 1)
        before = self._bucket(bucket).items.get(item.key)
        self._commit(Change(item.version, ADDED if before is None else MODIFIED, bucket, item, before))
        return item

    def remove(self, bucket: str, namespace: str, name: str, last: Document | None = None) -> Item:
        """Take the object out; *last* is its final state where that differs from what is kept."""
        before = self._bucket(bucket).items[namespace, name]
        item = make_item(bucket, last if last is not None else before.document(), self.version + 1)
        self._commit(Change(item.version, DELETED, bucket, item, before))
        return item

    def replay(self, change: Change) -> None:
        """Take over a change that was recorded earlier: nobody is told and nothing is recorded."""
        bucket = self._bucket(change.bucket)
        self._apply(bucket, change._replace(before=bucket.items.get(change.item.key)))

    def restore(self, bucket: str, item: Item) -> None:
        """Take over an object of a snapshot, which has no history."""
        self._bucket(bucket).put(item)

    def start_at(self, version: int) -> None:
        """The counter's value after a snapshot was read; nothing before it is known."""
        self.version = self.compacted = version

    # being told

    def listen(self, bucket: str, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Call *listener* with every change of *bucket*; the answer ends that."""
        listeners = self._bucket(bucket).listeners
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    def observe(self, observer: Callable[[Change], None]) -> None:
        """Call *observer* with every change of every bucket, for good."""
        self._observers.append(observer)

    def compact(self, version: int) -> None:
        """Forget what happened up to *version*."""
        while self._history and self._history[0].version <= version:
            self._forget_oldest()
        self.compacted = max(self.compacted, min(version, self.version))

    # inside

    def _bucket(self, name: str) -> _Bucket:
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = _Bucket()
        return bucket

    def _commit(self, change: Change) -> None:
        if self._keeper is not None:
            self._keeper.record(change)
        bucket = self._bucket(change.bucket)
        self._apply(bucket, change)
        for listener in tuple(bucket.listeners):
            listener(change)
        for observer in self._observers:
            observer(change)

    def _apply(self, bucket: _Bucket, change: Change) -> None:
        self.version = change.version
        if change.kind == DELETED:
            bucket.drop(change.item.key)
        else:
            bucket.put(change.item)
        bucket.history.append(change)
        self._history.append(change)
        if len(self._history) > self._limit:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        oldest = self._history.popleft()
        self._buckets[oldest.bucket].history.popleft()
        self.compacted = oldest.version


def make_item(bucket: str, document: Document, version: int) -> Item:
    """What is kept of *document*; its resourceVersion is set to *version*."""
    metadata = document["metadata"]
    metadata["resourceVersion"] = str(version)
    return Item(
        namespace=metadata.get("namespace") or "",
        name=metadata["name"],
        uid=metadata.get("uid") or "",
        version=version,
        body=encode(document),
        labels=_once(metadata.get("labels")),
        fields=_once(selectable_fields(bucket, document)),
        owners=tuple(owner.get("uid", "") for owner in metadata.get("ownerReferences") or ()),
        ending=bool(metadata.get("deletionTimestamp")),
    )


_MOST_REMEMBERED: Final = 4096
_known: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}


def _once(texts: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """*texts* or equal ones that are kept already: the pods of a job have the same labels."""
    if not texts:
        return None
    if len(_known) >= _MOST_REMEMBERED:
        _known.clear()
    return _known.setdefault(tuple(texts.items()), texts)
