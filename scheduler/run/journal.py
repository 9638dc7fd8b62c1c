"""Writes down what was taken in and what was decided, in a folder of bounded size.

A journal is a row of segments, files that each begin with all that was known (``records``), so that any of
them can be replayed without those before it and the oldest can be deleted. What is known is written by a
thread of its own, a little at a time; until it stands, the records go on into the old segment as well
as into the new one. Nothing is forced to the disk: a journal survives the death of the process, not that of
the machine. A full disk ends a segment, never the scheduler.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import structlog

from volcano_py.scheduler.cluster.feed import Change
from volcano_py.scheduler.run.memory import Memory
from volcano_py.scheduler.run.records import MAGIC, Knew, Opened, Record, Remembered, framed, item_of

SUFFIX: Final = ".vpj"
_CHUNK: Final = 100
"""Objects that are written in one go: about a millisecond."""
_PAUSE_S: Final = 0.002
_BUFFER: Final = 1 << 16

_log = structlog.get_logger("journal")


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a segment begins with. ``known`` is read by another thread: hand over a copy."""

    opened: Opened
    known: Iterable[Change]
    memory: Memory


class _Segment:
    """One file being written; records wait in memory until its beginning stands."""

    def __init__(self, path: Path, beginning: Beginning) -> None:
        self.path, self.size, self.begins = path, 0, 0
        self.standing, self.trouble = False, ""
        self._waiting: list[bytes] = []
        self._lock = threading.Lock()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        self._thread = threading.Thread(target=self._begin, args=(beginning,), name="journal", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Append *data*; what goes wrong shows in ``trouble``."""
        with self._lock:
            if not self.standing:
                self._waiting.append(data)
            elif not self.trouble:
                self._put(data)
                if not os.fstat(self._file).st_nlink:
                    self.trouble = f"{self.path} was deleted"

    def close(self) -> None:
        """Wait for the beginning and close the file."""
        if self._thread is not threading.current_thread():
            self._thread.join()
        os.close(self._file)

    def _begin(self, beginning: Beginning) -> None:
        try:
            self._put_beginning(beginning)
        except Exception as error:  # in a thread of its own it would end unheard, and the segment never stand
            self.trouble = f"what is known can't be written: {error}"

    def _put_beginning(self, beginning: Beginning) -> None:
        self._put(MAGIC + framed(beginning.opened))
        for chunk in _chunks(beginning.known):
            if self.trouble:
                break
            self._put(framed(Knew([item_of(change) for change in chunk])))
            time.sleep(_PAUSE_S)
        self._put(framed(Remembered(beginning.memory)))
        self.begins = self.size
        with self._lock:
            self._put(b"".join(self._waiting))
            self._waiting.clear()
            self.standing = True

    def _put(self, data: bytes) -> None:
        try:
            view = memoryview(data)
            while view and not self.trouble:
                written = os.write(self._file, view)
                self.size += written
                view = view[written:]
        except OSError as error:
            self.trouble = str(error)


class Journal:
    """See the module. Used by one thread at a time.

    Attributes:
        trouble: why nothing is written at present; "" while all is well.
        written: bytes written since the start.
    """

    def __init__(self, folder: Path, size: int, retry_s: float = 60.0) -> None:
        """Write into *folder*, which is made if missing, at most about *size* bytes.

        After a failure a new segment is begun no sooner than *retry_s* later. Raises ``OSError`` if the
        folder can't be written to.
        """
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(f"{folder} can't be written to")
        self.folder, self.size = folder, size
        self.trouble, self.written = "", 0
        self._current: _Segment | None = None
        self._next: _Segment | None = None
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._retry_s, self._retry_at = retry_s, 0.0

    def wants_beginning(self) -> bool:
        """Whether ``begin`` should be called: there is no segment, or the present one is full."""
        if self._next is not None or time.monotonic() < self._retry_at:
            return False
        if self._current is None:
            return True
        return self._current.size - self._current.begins > max(self.size // 4, self._current.begins)

    @property
    def is_beginning(self) -> bool:
        """Whether the beginning of a segment is being written at this moment."""
        return self._next is not None and not (self._next.standing or self._next.trouble)

    def begin(self, beginning: Beginning) -> None:
        """Begin a segment; the present one goes on until that stands."""
        self.flush()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)  # somebody may have removed it meanwhile
            number = max((number_of(path) for path in segments(self.folder)), default=0) + 1
            path = self.folder / f"{number:012d}{SUFFIX}"
            self._next = _Segment(path, beginning)
        except OSError as error:
            self._fail(str(error))

    def add(self, record: Record) -> None:
        """Write *record* with the next ``flush`` at the latest; if that can't be, the segment ends."""
        try:
            data = framed(record)
        except Exception as error:  # an object may hold what MessagePack can't
            self._give_up(f"a record can't be written: {error}")
            return
        self._buffer.append(data)
        self._buffered += len(data)
        if self._buffered > _BUFFER:
            self.flush()

    def flush(self) -> None:
        """Hand everything to the operating system."""
        data = b"".join(self._buffer)
        self._buffer.clear()
        self._buffered = 0
        self.written += len(data)
        for segment in (self._current, self._next):
            if segment is not None and data:
                segment.write(data)
        self._turn_over()

    def close(self) -> None:
        """Write what is left and close the files."""
        self.flush()
        for segment in (self._current, self._next):
            if segment is not None:
                segment.close()
        self._current = self._next = None

    def _turn_over(self) -> None:
        """Leave the old segment once the new one stands; give up what can't be written."""
        if self._next is not None and (self._next.standing or self._next.trouble):
            old, self._current, self._next = self._current, self._next, None
            if old is not None:
                old.close()
            try:
                self._delete_old()
            except OSError as error:
                self._fail(f"an old segment can't be deleted: {error}")
        if self._current is not None and self._current.trouble:
            trouble = self._current.trouble
            self._current.close()
            self._current = None
            self._fail(trouble)
        elif self._current is not None:
            self.trouble = ""

    def _give_up(self, trouble: str) -> None:
        for segment in (self._current, self._next):
            if segment is not None:
                segment.trouble = segment.trouble or trouble
        self._turn_over()

    def _fail(self, trouble: str) -> None:
        self.trouble = trouble
        self._retry_at = time.monotonic() + self._retry_s
        _log.error("journal_interrupted", folder=str(self.folder), error=trouble, retry_s=self._retry_s)

    def _delete_old(self) -> None:
        """Delete the oldest segments, so that the present one has room to grow within the bound."""
        files = segments(self.folder)
        sizes = {path: path.stat().st_size for path in files}
        present = None if self._current is None else self._current.path
        for path in files:
            if sum(sizes.values()) <= self.size - self.size // 4 or path == present:
                return
            path.unlink(missing_ok=True)
            del sizes[path]


def segments(folder: Path) -> list[Path]:
    """The segments in *folder*, oldest first."""
    return sorted((path for path in folder.glob(f"*{SUFFIX}") if number_of(path)), key=number_of)


def number_of(path: Path) -> int:
    """The number of a segment; 0 for other files."""
    return int(path.stem) if path.stem.isascii() and path.stem.isdigit() else 0


def _chunks(known: Iterable[Change]) -> Iterator[list[Change]]:
    rest = iter(known)
    while chunk := list(islice(rest, _CHUNK)):
        yield chunk
