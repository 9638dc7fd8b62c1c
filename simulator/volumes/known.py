"""What is known of claims, volumes and storage classes, and who is concerned when one of them changes."""

from __future__ import annotations

from typing import Any, Final

from volcano_py.scheduler.model.kube.errors import ObjectError
from volcano_py.scheduler.model.kube.objects import PersistentVolume, PersistentVolumeClaim, decode
from volcano_py.scheduler.model.storage import BIND_COMPLETED, Claim, VolumeRecord, read_claim, read_volume

Document = dict[str, Any]
Key = tuple[str, str]
"""Kind, and ``namespace/name`` or the name."""
CLAIM: Final = "PersistentVolumeClaim"
VOLUME: Final = "PersistentVolume"
CLASS: Final = "StorageClass"
KINDS: Final = (CLAIM, VOLUME, CLASS)


class Known:
    """The latest state heard of each object, by key.

    Attributes:
        claims, volumes, classes: as the server shows them, with kind and ``apiVersion``.
        asks, offers: what claims ask and volumes offer, of those that can be read.
    """

    def __init__(self) -> None:
        self.claims: dict[str, Document] = {}
        self.volumes: dict[str, Document] = {}
        self.classes: dict[str, Document] = {}
        self.asks: dict[str, Claim] = {}
        self.offers: dict[str, VolumeRecord] = {}
        self._kept: dict[str, set[str]] = {}

    def put(self, document: Document) -> list[Key]:
        """*document* is new or changed; what is not newer is dropped. Who has to be looked at again."""
        kind, key = document["kind"], key_of(document)
        known = self.of(kind).get(key)
        if known is not None and _version(document) <= _version(known):
            return []
        concerned = self.drop(kind, key)
        self.of(kind)[key] = document
        self._read(key, document)
        if kind == VOLUME and (owner := owner_of(document)):
            self._kept.setdefault(owner, set()).add(key)
        return [*dict.fromkeys([*concerned, *self._concerned(document)])]

    def drop(self, kind: str, key: str) -> list[Key]:
        """The object is gone. Who has to be looked at again."""
        document = self.of(kind).pop(key, None)
        if document is None:
            return []
        if kind != CLASS:
            (self.asks if kind == CLAIM else self.offers).pop(key, None)
        if kind == VOLUME and (owner := owner_of(document)):
            self._kept[owner].discard(key)
            if not self._kept[owner]:
                del self._kept[owner]
        return self._concerned(document)

    def of(self, kind: str) -> dict[str, Document]:
        """All objects of *kind*, by key."""
        return {CLAIM: self.claims, VOLUME: self.volumes, CLASS: self.classes}[kind]

    def kept_for(self, claim: Document) -> list[Document]:
        """Volumes that name *claim*, by name."""
        return [self.volumes[name] for name in sorted(self._kept.get(key_of(claim), ()))]

    def _read(self, key: str, document: Document) -> None:
        try:
            match decode(document):
                case PersistentVolumeClaim() as claim:
                    self.asks[key] = read_claim(claim)
                case PersistentVolume() as volume:
                    self.offers[key] = read_volume(volume)
        except ObjectError:
            return

    def _concerned(self, document: Document) -> list[Key]:
        """Whoever may have something to do because of *document*, itself first."""
        kind, key = document["kind"], key_of(document)
        if kind == CLASS:
            return [(CLAIM, name) for name, claim in self.claims.items() if not _is_bound(claim)]
        if kind == CLAIM:
            named = document["spec"].get("volumeName")
            volumes = {*self._kept.get(key, ()), *([named] if named else ())}
            return [(CLAIM, key), *((VOLUME, name) for name in sorted(volumes))]
        owner = owner_of(document)
        claims = [owner] if owner else [name for name, claim in self.claims.items() if not _is_bound(claim)]
        return [(VOLUME, key), *((CLAIM, name) for name in claims)]


def key_of(document: Document) -> str:
    """``namespace/name``, or the name of what has no namespace."""
    meta = document["metadata"]
    space = meta.get("namespace")
    return f"{space}/{meta['name']}" if space else str(meta["name"])


def owner_of(volume: Document) -> str:
    """Key of the claim that *volume* names, "" for none."""
    owner = volume["spec"].get("claimRef")
    return f"{owner.get('namespace', '')}/{owner.get('name', '')}" if owner else ""


def _is_bound(claim: Document) -> bool:
    return BIND_COMPLETED in (claim["metadata"].get("annotations") or {})


def _version(document: Document) -> int:
    text = str(document["metadata"].get("resourceVersion", "0"))
    return int(text) if text.isdecimal() else 0
