"""What a journal holds: one record after another, each framed with its length and checksum.

A record is MessagePack of one of the structs below. Objects stand in it as they were decoded, by kind;
those of ``crds`` as the manifest that the API server would store. A frame is (length, CRC-32 of the body)
as two big-endian 32-bit numbers, then the body. What comes after a frame that is cut short or does not match
its checksum is not read: the process was killed while it wrote, or the disk lost something.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from volcano_py.crds.base import CrdObject
from volcano_py.crds.objects import KINDS
from volcano_py.scheduler.cluster.feed import Change
from volcano_py.scheduler.cluster.orders import BindDone, BindFailed, EvictDone, EvictFailed, Outcome
from volcano_py.scheduler.framework.close import GroupStatus
from volcano_py.scheduler.framework.decision import Decision
from volcano_py.scheduler.model.kube.errors import Problem
from volcano_py.scheduler.model.kube.meta import KubeObject
from volcano_py.scheduler.model.queues import DEFAULT_QUEUE
from volcano_py.scheduler.run.memory import Memory

FORMAT: Final = 1
MAGIC: Final = b"volcano-py journal\n"
_FRAME: Final = struct.Struct(">II")
LARGEST_RECORD: Final = 1 << 30


class Record(msgspec.Struct, array_like=True, frozen=True, tag=True):
    """Base of all records."""


class Opened(Record, frozen=True, tag="opened"):
    """Begins a segment.

    Attributes:
        format: ``FORMAT`` of who wrote it.
        version: of the scheduler that wrote it.
        config: the configuration file in force.
        scheduler_names: whose pods are decided about.
        cycles: how many cycles ran before.
        wrote_at: epoch seconds.
        default_queue: of groups that name none.
    """

    format: int
    version: str
    config: str
    scheduler_names: tuple[str, ...]
    cycles: int
    wrote_at: float
    default_queue: str = DEFAULT_QUEUE


class Item(msgspec.Struct, array_like=True, frozen=True):
    """One change from the server; ``item`` is nil where the object is gone or unreadable."""

    kind: str
    key: str
    version: str
    uid: str
    item: Any = None
    problems: tuple[tuple[str, str], ...] = ()


class Knew(Record, frozen=True, tag="knew"):
    """A part of what was known when the segment began."""

    items: list[Any]


class Remembered(Record, frozen=True, tag="remembered"):
    """Ends what was known with what the engine remembered."""

    memory: Memory


class Took(Record, frozen=True, tag="took"):
    """Changes were taken in."""

    items: list[Any]


class Settled(Record, frozen=True, tag="settled"):
    """Outcomes were taken in: rows of (type, outcome)."""

    outcomes: list[Any]


class Resumed(Record, frozen=True, tag="resumed"):
    """Evictions of an earlier leader were gone on with: (pod key, UID)."""

    evictions: list[tuple[str, str]]


class Configured(Record, frozen=True, tag="configured"):
    """Another configuration came into force."""

    config: str


class Cycled(Record, frozen=True, tag="cycled"):
    """A cycle ran.

    Attributes:
        number: counted from 1 since the scheduler started.
        now: its clock, epoch seconds.
        decisions: in order.
        groups: PodGroups whose status changed.
        refused: reason -> pods refused for it.
        fault: what broke it off; "" if nothing did.
        took_s: how long it took.
    """

    number: int
    now: float
    decisions: list[Decision]
    groups: dict[str, GroupStatus]
    refused: dict[str, int]
    fault: str = ""
    took_s: float = 0.0


AnyRecord = Opened | Knew | Remembered | Took | Settled | Resumed | Configured | Cycled


def _plain(value: Any) -> Any:
    """Objects that the encoder does not know by itself."""
    if isinstance(value, CrdObject):
        return value.to_manifest()
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(f"a journal can't hold {type(value).__name__}")


_encode: Final = msgspec.msgpack.Encoder(enc_hook=_plain).encode
_decode: Final = msgspec.msgpack.Decoder(AnyRecord).decode
_KUBE: Final[Mapping[str, type[KubeObject]]] = {kind.__name__: kind for kind in KubeObject.__subclasses__()}
_OUTCOMES: Final[Mapping[str, Any]] = {
    kind.__name__: kind for kind in (BindDone, BindFailed, EvictDone, EvictFailed)
}
_CRDS: Final[Mapping[str, type[CrdObject]]] = {kind.info.kind: kind for kind in KINDS}


class JournalError(Exception):
    """A file that is no journal, or one of another format."""


@dataclass(frozen=True, slots=True)
class Read:
    """One record and where the file ends after it. ``damage`` says why nothing follows; "" at the end."""

    record: AnyRecord | None
    end: int
    damage: str = ""


def framed(record: Record) -> bytes:
    """*record* as it stands in the file."""
    body = _encode(record)
    return _FRAME.pack(len(body), zlib.crc32(body)) + body


def read_records(data: bytes) -> Iterator[Read]:
    """The records of a file's *data*; the last one may say that what follows can't be read.

    Raises ``JournalError`` if it is no journal.
    """
    if data[: len(MAGIC)] != MAGIC:
        raise JournalError("is no journal of volcano-py")
    at = len(MAGIC)
    while at < len(data):
        body, damage = _body(data, at)
        if damage:
            yield Read(None, at, damage)
            return
        at += _FRAME.size + len(body)
        try:
            yield Read(_decode(body), at)
        except msgspec.DecodeError as error:
            yield Read(None, at, f"record at byte {at} can't be read: {error}")
            return


def _body(data: bytes, at: int) -> tuple[bytes, str]:
    if len(data) - at < _FRAME.size:
        return b"", f"cut off at byte {at}"
    length, checksum = _FRAME.unpack_from(data, at)
    body = data[at + _FRAME.size : at + _FRAME.size + length]
    if len(body) < length:
        return b"", f"cut off at byte {at}"
    if zlib.crc32(body) != checksum:
        return b"", f"damaged at byte {at}"
    return body, ""


# -- objects ------------------------------------------------------------------------------------


def item_of(change: Change) -> Item:
    """*change* as it is written."""
    return Item(
        change.kind,
        change.key,
        change.version,
        change.uid,
        change.item,
        tuple((p.field, p.message) for p in change.problems),
    )


def change_of(row: Any) -> Change:
    """What ``item_of`` wrote, with its object decoded. Raises ``JournalError`` on a kind nobody knows."""
    kind, key, version, uid, item, problems = row
    found = None if item is None else _object(kind, item)
    return Change(
        kind=kind,
        key=key,
        item=found,
        problems=tuple(Problem(*one) for one in problems),
        version=version,
        uid=uid,
    )


def _object(kind: str, document: Any) -> object:
    if kind in _KUBE:
        return msgspec.convert(document, _KUBE[kind])
    if kind in _CRDS:
        return _CRDS[kind].model_validate(document)
    raise JournalError(f"holds an object of unknown kind {kind}")


def settled_of(outcomes: list[Outcome]) -> Settled:
    """*outcomes* as they are written."""
    return Settled([(type(outcome).__name__, outcome) for outcome in outcomes])


def outcomes_of(record: Settled) -> list[Outcome]:
    """What ``settled_of`` wrote."""
    return [msgspec.convert(outcome, _OUTCOMES[name]) for name, outcome in record.outcomes]
