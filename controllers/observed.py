"""What the server was last seen to hold: one record an object, found by key and by what refers to it.

Fed by watches, by lists and by the answers to our own writes, in any order. An older version never replaces a
newer one, and what was seen to go does not come back: an answer that arrives after the deletion is ignored.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from volcano_py.client.resources import RESOURCES
from volcano_py.controllers.records import (
    READERS,
    CommandRecord,
    Document,
    GroupRecord,
    Owner,
    PodRecord,
    QueueRecord,
    Record,
    WorkloadRecord,
)

__all__ = ["KINDS", "Change", "Observed"]

KINDS: Final = tuple(READERS)

_MOST_REMEMBERED: Final = 8192

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Change:
    """An object as it was and as it is; None: absent."""

    before: Record | None
    after: Record | None

    @property
    def records(self) -> tuple[Record, ...]:
        """Both, where they are there."""
        return tuple(record for record in (self.before, self.after) if record is not None)


class Observed:
    """The records, and who refers to whom."""

    def __init__(self, scheduler_names: Iterable[str]) -> None:
        """Pods, and workloads whose pods, name none of *scheduler_names* count as absent."""
        self._names = frozenset(scheduler_names)
        self._tables: dict[str, dict[str, Record]] = {kind: {} for kind in KINDS}
        self._pods_of: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._children: defaultdict[str, set[str]] = defaultdict(set)
        self._phases: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._commands_of: defaultdict[str, set[str]] = defaultdict(set)
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._annotations: OrderedDict[str, Mapping[str, str]] = OrderedDict()
        self._seeds: OrderedDict[str, Document] = OrderedDict()

    def put(self, kind: str, document: Document) -> Change | None:
        """Take *document* as the newest state of its object; None where that changes nothing."""
        record = READERS[kind](document) if self._is_ours(kind, document) else None
        if record is None or record.identity.uid in self._gone:
            return None
        before = self._tables[kind].get(record.identity.key)
        if before is not None and not _tells_more(record, before):
            return None
        self._tables[kind][record.identity.key] = record
        return self._changed(before, record)

    def drop(self, kind: str, key: str, uid: str) -> Change | None:
        """The object is gone; None where that is known, or another object has its name now."""
        _remember(self._gone, uid, None)
        before = self._tables[kind].get(key)
        if before is None or before.identity.uid != uid:
            return None
        del self._tables[kind][key]
        return self._changed(before, None)

    def drop_unlisted(self, kind: str, uids: Collection[str], version: int) -> list[Change]:
        """Drop what a complete list of *kind*, as of *version*, didn't hold."""
        absent = [
            record.identity
            for record in self._tables[kind].values()
            if record.identity.uid not in uids and record.identity.version <= version
        ]
        changes = [self.drop(kind, identity.key, identity.uid) for identity in absent]
        return [change for change in changes if change is not None]

    def everything(self) -> list[Change]:
        """All records, as if each had just come."""
        return [Change(None, record) for table in self._tables.values() for record in table.values()]

    def size(self, kind: str) -> int:
        """How many objects of *kind* are known."""
        return len(self._tables[kind])

    # -- single objects

    def pod(self, key: str) -> PodRecord | None:
        """The pod ``namespace/name``."""
        return _as(PodRecord, self._tables["Pod"].get(key))

    def group(self, key: str) -> GroupRecord | None:
        """The PodGroup ``namespace/name``."""
        return _as(GroupRecord, self._tables["PodGroup"].get(key))

    def queue(self, name: str) -> QueueRecord | None:
        """The Queue *name*."""
        return _as(QueueRecord, self._tables["Queue"].get(name))

    def queue_names(self) -> list[str]:
        """Names of all queues, sorted."""
        return sorted(self._tables["Queue"])

    def workload(self, namespace: str, owner: Owner) -> WorkloadRecord | None:
        """The ReplicaSet or StatefulSet that *owner* means."""
        table = self._tables.get(owner.kind, {})
        found = _as(WorkloadRecord, table.get(f"{namespace}/{owner.name}"))
        return found if found is not None and found.identity.uid == owner.uid else None

    # -- what refers to them

    def pods_of(self, namespace: str, group: str) -> list[PodRecord]:
        """Pods that the PodGroup *group* would be made for, or that name it, by name."""
        keys = self._pods_of.get((namespace, group), ())
        found = [self.pod(key) for key in sorted(keys)]
        return [pod for pod in found if pod is not None]

    def children(self, queue: str) -> Sequence[str]:
        """Queues right below *queue*, by name."""
        return sorted(self._children.get(queue, ()))

    def phases(self, queue: str) -> Mapping[str, int]:
        """How many PodGroups of *queue* are in each phase."""
        return self._phases.get(queue, {})

    def commands(self, queue: str) -> list[CommandRecord]:
        """Commands for *queue* in the order in which they were given."""
        table = self._tables["Command"]
        found = [_as(CommandRecord, table.get(key)) for key in self._commands_of.get(queue, ())]
        known = [command for command in found if command is not None]
        return sorted(known, key=lambda it: (it.created, it.identity.version, it.identity.key))

    # -- what was looked up

    def owner_annotations(self, namespace: str, owner: Owner) -> Mapping[str, str] | None:
        """Annotations of a pod's owner; None where nobody has looked yet."""
        workload = self.workload(namespace, owner)
        return workload.annotations if workload is not None else self._annotations.get(owner.uid)

    def put_annotations(self, uid: str, annotations: Mapping[str, str]) -> None:
        """Keep the annotations of an owner that was looked up."""
        _remember(self._annotations, uid, annotations)

    def seed(self, pod: PodRecord) -> Document | None:
        """What a PodGroup for *pod* is made from; None where it would have to be read again."""
        return pod.seed if pod.seed is not None else self._seeds.get(pod.identity.uid)

    def put_seed(self, uid: str, seed: Document) -> None:
        """Keep for a while what was read again of a pod."""
        _remember(self._seeds, uid, seed)

    # -- indexes

    def _is_ours(self, kind: str, document: Document) -> bool:
        if kind == "Pod":
            return (document.get("spec") or {}).get("schedulerName") in self._names
        if kind in ("ReplicaSet", "StatefulSet"):
            template = (document.get("spec") or {}).get("template") or {}
            return (template.get("spec") or {}).get("schedulerName") in self._names
        return True

    def _changed(self, before: Record | None, after: Record | None) -> Change:
        if before is not None:
            self._index(before, present=False)
        if after is not None:
            self._index(after, present=True)
        return Change(before, after)

    def _index(self, record: Record, *, present: bool) -> None:
        identity = record.identity
        if isinstance(record, PodRecord):
            for group in {record.own_group, record.group} - {""}:
                _mark(self._pods_of, (identity.namespace, group), identity.key, present=present)
        elif isinstance(record, QueueRecord):
            _mark(self._children, record.parent, identity.name, present=present)
        elif isinstance(record, CommandRecord):
            _mark(self._commands_of, record.queue, identity.key, present=present)
        elif isinstance(record, GroupRecord):
            phases = self._phases[record.queue]
            phases[record.phase] += 1 if present else -1
            if not any(phases.values()):
                del self._phases[record.queue]


def _tells_more(record: Record, before: Record) -> bool:
    """Whether *record* is of a newer version, or a list's, which had a field that a watch's didn't.

    Watches of a custom kind go by its old definition for a moment when that changes.
    """
    if record.identity.version == before.identity.version:
        return RESOURCES[record.identity.kind].custom and record != before
    return record.identity.version > before.identity.version


def _mark(index: defaultdict[T, set[str]], name: T, key: str, *, present: bool) -> None:
    """Note or forget that *key* refers to *name*; an empty set isn't kept."""
    if present:
        index[name].add(key)
        return
    index[name].discard(key)
    if not index[name]:
        del index[name]


def _remember(table: OrderedDict[str, Any], key: str, value: Any) -> None:
    """Keep *value*, and no more than a bounded number of them: the oldest go first."""
    table[key] = value
    table.move_to_end(key)
    if len(table) > _MOST_REMEMBERED:
        table.popitem(last=False)


def _as(kind: type[T], record: Record | None) -> T | None:
    """*record*, of which the table it comes from says the kind."""
    return record if isinstance(record, kind) else None
