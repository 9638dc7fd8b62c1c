"""What is on disk: a snapshot of all objects and the log of every change since.

A change is in the log before anybody hears of it. A record is written with one call, so a killed server
leaves at most an unfinished last record, which is cut off when the log is read again; the change it held was
never answered. When the log has outgrown the snapshot, changes go to a new log from some version on. A
snapshot of that version is written beside the old one, in any thread, and takes its place by a rename. A kill
at any point leaves one of the two whole, and all logs from it on; each begins where the last one ends.
"""

from __future__ import annotations

import fcntl
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from volcano_py.simulator.apiserver.store import DELETED, Change, Item, Store, decode, make_item

Sync = Literal["each", "os"]
"""When a record reaches the disk: before its request is answered, or when the system likes (a killed server
loses nothing then, a machine without power may lose the last seconds)."""

_HEAD: Final = struct.Struct("<II")
_LOG_FLOOR_BYTES: Final = 8 << 20

Record = tuple[int, str, str, bytes]
"""Version, kind of change, bucket, body of the object."""


class DataDamagedError(Exception):
    """The files hold something that no killed server leaves behind."""


class DataInUseError(Exception):
    """Another server works on this folder."""


@dataclass(slots=True)
class Snapshot:
    """One that is being written: all objects as they were at *version*.

    Attributes:
        size: in bytes, once it is written.
    """

    path: Path
    version: int
    buckets: list[tuple[str, Iterable[Item]]]
    size: int = 0

    def write(self) -> None:
        """Write it to the disk, under a name that means nothing yet. In any thread."""
        handle = os.open(self.unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            for bucket, items in self.buckets:
                file.writelines(_framed((0, "", bucket, item.body)) for item in items)
            # The last record names the version; a snapshot without it was never finished.
            file.write(_framed((self.version, "", "", b"")))
            file.flush()
            os.fsync(file.fileno())
            self.size = file.tell()

    @property
    def unfinished(self) -> Path:
        """Where it is written."""
        return self.path.with_suffix(".tmp")


class Journal:
    """The folder of one store.

    Args:
        folder: made if it is not there.
        floor_bytes: size of the log below which no snapshot is written.

    Raises:
        DataInUseError: another process has it open.
    """

    def __init__(self, folder: Path, *, sync: Sync = "os", floor_bytes: int = _LOG_FLOOR_BYTES) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._sync = sync
        self._floor = floor_bytes
        self._lock = _locked(folder / "lock")
        self._log: int | None = None
        self._log_bytes = 0
        self._earlier_bytes = 0
        self._snapshot_bytes = 0
        self._base = 0

    def open(self, *, history: int = 16_384) -> Store:
        """The store as the last server left it; from now on its changes are recorded here.

        Raises:
            DataDamagedError: the files can't be trusted.
        """
        store = Store(history=history, keeper=self)
        snapshot = self._newest_snapshot()
        if snapshot is not None:
            self._read_snapshot(snapshot, store)
        logs: list[Path] = []
        while (log := self._log_path(store.version)) not in logs and (log.exists() or not logs):
            logs.append(log)
            for record in self._read_log(log):
                _replay(store, record)
        self._use_log(_opened(logs[-1]), logs[-1])
        self._earlier_bytes = sum(path.stat().st_size for path in logs[:-1])
        self._sweep(snapshot, *logs)
        return store

    def record(self, change: Change) -> None:
        """Write *change* to the log."""
        body = change.item.body
        self._write((change.version, change.kind, change.bucket, body))

    @property
    def is_large(self) -> bool:
        """The log has outgrown the snapshot."""
        return self._earlier_bytes + self._log_bytes >= max(self._floor, 2 * self._snapshot_bytes)

    def condense(self, store: Store) -> None:
        """Put a snapshot in the place of log and old one. Where that fails (``OSError``) nothing is lost."""
        snapshot = self.begin(store)
        if snapshot is not None:
            snapshot.write()
            self.finish(snapshot)

    def begin(self, store: Store) -> Snapshot | None:
        """What is to be written of *store*; changes go to a new log from now on. None: there were none."""
        if store.version == self._base:
            return None
        log = self._log_path(store.version)
        handle = _opened(log)
        self._earlier_bytes += self._log_bytes
        self._use_log(handle, log)
        path = self._folder / f"snapshot-{store.version:020d}"
        return Snapshot(path, store.version, list(store.buckets()))

    def finish(self, snapshot: Snapshot) -> None:
        """*snapshot* is written: it takes the place of what came before it."""
        snapshot.unfinished.rename(snapshot.path)
        self._snapshot_bytes, self._earlier_bytes = snapshot.size, 0
        self._sweep(snapshot.path, self._log_path(snapshot.version))

    def close(self) -> None:
        """Let go of the folder; the log reaches the disk."""
        if self._log is not None:
            os.fsync(self._log)
            os.close(self._log)
            self._log = None
        os.close(self._lock)

    # inside

    def _log_path(self, version: int) -> Path:
        return self._folder / f"log-{version:020d}"

    def _newest_snapshot(self) -> Path | None:
        found = sorted(self._folder.glob("snapshot-" + "[0-9]" * 20))
        return found[-1] if found else None

    def _sweep(self, *kept: Path | None) -> None:
        """Remove what a finished snapshot has replaced, and what a killed server left unfinished."""
        for path in (*self._folder.glob("snapshot-*"), *self._folder.glob("log-*")):
            if path not in kept:
                path.unlink()

    def _use_log(self, handle: int, path: Path) -> None:
        if self._log is not None:
            os.close(self._log)
        self._log = handle
        self._log_bytes = os.fstat(handle).st_size
        self._base = int(path.name.removeprefix("log-"))

    def _write(self, record: Record) -> None:
        if self._log is None:
            raise ValueError("the journal is closed")
        data = _framed(record)
        written = os.write(self._log, data)
        if written != len(data):
            # Half a record must not be followed by a whole one.
            os.ftruncate(self._log, self._log_bytes)
            raise OSError("the log could not be written: no space left")
        if self._sync == "each":
            os.fdatasync(self._log)
        self._log_bytes += written

    def _read_snapshot(self, path: Path, store: Store) -> None:
        data = path.read_bytes()
        self._snapshot_bytes = len(data)
        version = 0
        for record, _ in _records(data, path):
            version, _, bucket, body = record
            if bucket:
                store.restore(bucket, _item(bucket, body))
        if version != int(path.name.removeprefix("snapshot-")):
            raise DataDamagedError(f"{path}: it has no end")
        store.start_at(version)

    def _read_log(self, path: Path) -> Iterator[Record]:
        if not path.exists():
            return
        data = path.read_bytes()
        whole = 0
        for record, end in _records(data, path):
            yield record
            whole = end
        if whole < len(data):
            os.truncate(path, whole)


def _opened(log: Path) -> int:
    return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _framed(record: Record) -> bytes:
    payload = msgspec.msgpack.encode(record)
    return _HEAD.pack(len(payload), zlib.crc32(payload)) + payload


def _records(data: bytes, path: Path) -> Iterator[tuple[Record, int]]:
    """Each whole record and where it ends; stops at an unfinished one.

    Raises:
        DataDamagedError: a record that is not the last one is broken.
    """
    at = 0
    while at + _HEAD.size <= len(data):
        length, checksum = _HEAD.unpack_from(data, at)
        end = at + _HEAD.size + length
        if end > len(data):
            return
        payload = data[at + _HEAD.size : end]
        if zlib.crc32(payload) != checksum:
            raise DataDamagedError(f"{path}: the record at byte {at} is broken")
        yield msgspec.msgpack.decode(payload, type=Record), end
        at = end


def _item(bucket: str, body: bytes) -> Item:
    document: dict[str, Any] = decode(body)
    return make_item(bucket, document, int(document["metadata"]["resourceVersion"]))


def _replay(store: Store, record: Record) -> None:
    version, kind, bucket, body = record
    item = _item(bucket, body)
    if kind == DELETED and store.get(bucket, item.namespace, item.name) is None:
        raise DataDamagedError(f"version {version} removes {bucket} {item.name}, which is not there")
    store.replay(Change(version, kind, bucket, item, None))


def _locked(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise DataInUseError(f"{path.parent} is used by another server") from error
    return handle
