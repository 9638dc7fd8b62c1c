"""What was handed to containers, one folder each: ``slices/<id>/`` with ``owner.json`` and the region.

A folder appears whole, by a rename, before the kubelet hears of it, and every later write of a file is a
rename too: after kill -9 at any point each folder says what it said before or after. Containers see the
region and ``cache/`` only. Neighbours: ``answers`` for what is mounted, ``collect`` for what is removed.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from volcano_py.shim.agent.instances import Instance

__all__ = ["CACHE", "OWNER", "REGION", "Owner", "Share", "Slices", "read_owner", "write_file"]

OWNER: Final = "owner.json"
REGION: Final = "region"
CACHE: Final = "cache"
"""Folder of a slice that the container may write: HAMi's library keeps its own file there."""
_UNBORN: Final = ".new-"


class Share(msgspec.Struct, frozen=True):
    """What a container holds of one card.

    Attributes:
        uuid: the card, or the MIG instance of it.
        memory_mib: 0 is no limit.
        cores: percent, 0 is no limit.
    """

    uuid: str
    memory_mib: int = 0
    cores: int = 0


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """``owner.json``: one allocation of the kubelet's, and whose it is.

    Attributes:
        id: name of the folder.
        sequence: grows with each allocation of this node.
        resource: as the kubelet asked for it.
        ids: device ids that the kubelet chose, sorted.
        limited: whether the container gets the library; without it, it has its cards alone.
        library: name of the library's file, "" without one.
        confirmed: the kubelet has told whose it is; before, pod and container are supposed.
        pod_uid, namespace, pod, container: whose it is.
        role: ``app``, ``sidecar`` or ``init``.
        priority: among those who share a card; lower goes first.
        shares: what it holds.
        instances: MIG instances that were made for it.
    """

    id: str
    sequence: int
    resource: str
    ids: tuple[str, ...]
    limited: bool
    library: str = ""
    confirmed: bool = False
    pod_uid: str
    namespace: str
    pod: str
    container: str
    role: str = "app"
    priority: int = 1
    shares: tuple[Share, ...] = ()
    instances: tuple[Instance, ...] = ()


_read: Final = msgspec.json.Decoder(Owner).decode


def read_owner(folder: Path) -> Owner | None:
    """What *folder* says of its owner; None where it says nothing that can be read."""
    try:
        owner = _read((folder / OWNER).read_bytes())
    except (OSError, msgspec.DecodeError, ValueError):
        return None
    return owner if owner.id == folder.name else None


class Slices:
    """The slices below *place*, as they are on disk.

    Attributes:
        place: folder of the folders.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self._by_id: dict[str, Owner] = {}

    def load(self) -> None:
        """Read what is there; what was being made when an agent died is removed. Raises ``OSError``."""
        self.place.mkdir(parents=True, exist_ok=True)
        self._by_id = {}
        for folder in sorted(self.place.iterdir()):
            if folder.name.startswith(_UNBORN):
                shutil.rmtree(folder, ignore_errors=True)
            elif (owner := read_owner(folder)) is not None:
                self._by_id[owner.id] = owner

    def all(self) -> list[Owner]:
        """All that can be read, in the order in which they were made."""
        return sorted(self._by_id.values(), key=lambda owner: owner.sequence)

    def folder(self, owner: Owner) -> Path:
        """Where *owner*'s files are."""
        return self.place / owner.id

    def region(self, owner: Owner) -> Path:
        """The file that *owner*'s container and the agent share."""
        return self.folder(owner) / REGION

    def make(self, owner: Owner) -> Owner:
        """Make a folder for *owner*, whose id and sequence are given here. Raises ``OSError``."""
        sequence = max((each.sequence for each in self._by_id.values()), default=0) + 1
        owner = msgspec.structs.replace(owner, id=_new_id(owner), sequence=sequence)
        unborn = self.place / f"{_UNBORN}{owner.id}"
        (unborn / CACHE).mkdir(parents=True)
        (unborn / CACHE).chmod(0o777)  # whoever the container runs as
        write_file(unborn / OWNER, msgspec.json.encode(owner))
        unborn.rename(self.folder(owner))
        _sync(self.place)
        self._by_id[owner.id] = owner
        return owner

    def rewrite(self, owner: Owner) -> None:
        """Keep what *owner* says now. Raises ``OSError``."""
        if self._by_id.get(owner.id) != owner:
            write_file(self.folder(owner) / OWNER, msgspec.json.encode(owner))
            self._by_id[owner.id] = owner

    def of_ids(self, resource: str, ids: Iterable[str]) -> list[Owner]:
        """Allocations of just these *ids*, the latest first."""
        wanted = tuple(sorted(ids))
        found = [owner for owner in self.all() if owner.resource == resource and owner.ids == wanted]
        return found[::-1]

    def libraries(self) -> set[str] | None:
        """Names of the library's files that slices were handed out with; None where one does not tell."""
        folders = {path.name for path in self.place.iterdir() if not path.name.startswith(_UNBORN)}
        if folders - self._by_id.keys() or any(o.limited and not o.library for o in self.all()):
            return None
        return {owner.library for owner in self.all() if owner.library}

    def remove(self, owner: Owner) -> None:
        """Remove *owner*'s folder with all that is in it. Raises ``OSError``."""
        doomed = self.place / f"{_UNBORN}{owner.id}"
        self.folder(owner).rename(doomed)  # never half a folder under the name
        self._by_id.pop(owner.id, None)
        shutil.rmtree(doomed)


def write_file(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write *content* to *path*, whole or not at all, on disk when this returns. Raises ``OSError``."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(draft, "xb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _new_id(owner: Owner) -> str:
    """Tells of the ids, and is never used twice: a container that ends may still have the last one mapped."""
    text = "\n".join((owner.resource, *owner.ids))
    return f"{sha256(text.encode()).hexdigest()[:12]}-{secrets.token_hex(4)}"


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
