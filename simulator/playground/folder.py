"""The folder of one playground: its state, its kubeconfig, the logs of its parts, and who uses it now.

One process at a time; a folder of something else, or of another format, is refused rather than overwritten.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Any, Final

FORMAT: Final = 1
_MARK: Final = "playground.json"


class PlaygroundError(Exception):
    """Why a playground can't be had, in words for who asked for it."""


class Folder:
    """A folder that this process holds until ``release``.

    Attributes:
        root: the folder.
        is_kept: whether it stays after the playground has ended.
    """

    def __init__(self, root: Path, *, is_kept: bool) -> None:
        self.root = root
        self.is_kept = is_kept
        self.logs = root / "logs"
        self.state = root / "state"
        self.kubeconfig = root / "kubeconfig"
        self._lock = -1

    @classmethod
    def take(cls, data: Path | None) -> Folder:
        """Take *data*, or a new folder that ends with the playground.

        Raises:
            PlaygroundError: another playground runs there, or it holds something else.
        """
        root = Path(tempfile.mkdtemp(prefix="volcano-py-playground-")) if data is None else data.absolute()
        folder = cls(root, is_kept=data is not None)
        folder._open()
        return folder

    def port(self, wanted: int) -> int:
        """The port to serve on: *wanted*, else the last one if it is still free, else any.

        Raises:
            PlaygroundError: *wanted* is taken.
        """
        if wanted:
            if not _is_free(wanted):
                raise PlaygroundError(f"port {wanted} on 127.0.0.1 is in use; say another --port, or none")
            port = wanted
        else:
            last = int(self._mark().get("port", 0))
            port = last if last and _is_free(last) else any_port()
        self._write_mark({"format": FORMAT, "port": port})
        return port

    def log(self, part: str) -> Path:
        """Where *part* writes."""
        return self.logs / f"{part}.log"

    def release(self, *, keep: bool = False) -> None:
        """Give the folder up; a temporary one is removed unless *keep*."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        if not self.is_kept and not keep:
            shutil.rmtree(self.root, ignore_errors=True)

    def _open(self) -> None:
        self._check()
        try:
            self.logs.mkdir(parents=True, exist_ok=True)
            self.state.mkdir(mode=0o700, exist_ok=True)
            self._lock = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise PlaygroundError(f"can't write to {self.root}: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._lock, 20).decode() or "unknown"
            os.close(self._lock)
            self._lock = -1
            raise PlaygroundError(
                f"a playground (process {holder}) runs on {self.root}; stop it, or say another --data"
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, str(os.getpid()).encode(), 0)
        if not (self.root / _MARK).exists():
            self._write_mark({"format": FORMAT})

    def _check(self) -> None:
        if self.root.exists() and not self.root.is_dir():
            raise PlaygroundError(f"{self.root} is no folder")
        if not self.root.exists() or not any(self.root.iterdir()):
            return
        if not (self.root / _MARK).exists():
            raise PlaygroundError(f"{self.root} holds something else than a playground; say another --data")
        found = self._mark().get("format")
        if found != FORMAT:
            raise PlaygroundError(
                f"{self.root} was written by another version (format {found}, this one reads {FORMAT});"
                " remove it, or say another --data"
            )

    def _mark(self) -> dict[str, Any]:
        try:
            mark = json.loads((self.root / _MARK).read_text())
        except ValueError:
            mark = None
        return mark if isinstance(mark, dict) else {}

    def _write_mark(self, mark: dict[str, Any]) -> None:
        fresh = self.root / f"{_MARK}.new"
        fresh.write_text(json.dumps(mark) + "\n")
        fresh.replace(self.root / _MARK)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def any_port() -> int:
    """A port on the loopback address that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
