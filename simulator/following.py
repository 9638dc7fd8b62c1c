"""Follows objects of one kind as structs of one's own, or as plain documents.

For what the simulator's rooms read and the scheduler's model leaves out, such as commands and templates.
How a server is followed is the reflector's affair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from volcano_py.scheduler.cluster.api import Api, Resource
from volcano_py.scheduler.cluster.fastpath import WireEvent, WireList, WireObject
from volcano_py.scheduler.cluster.reflector import Change, Pace, Reflector
from volcano_py.scheduler.cluster.wire import Event, Garbage, Page, Reader, Seen
from volcano_py.scheduler.model.kube.errors import Problem

_raw_list: Final = msgspec.json.Decoder(WireList[msgspec.Raw])
_raw_event: Final = msgspec.json.Decoder(WireEvent[msgspec.Raw])
_identity: Final = msgspec.json.Decoder(WireObject)
_OBJECT_EVENTS: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})


class OwnReader(Reader):
    """Reads objects of one kind with *decode*; what it refuses comes as unreadable."""

    def __init__(self, resource: Resource, decode: Callable[[bytes | msgspec.Raw], Any]) -> None:
        super().__init__(resource)
        self._decode_own = decode

    def page(self, body: bytes) -> Page:
        """A page of a list. Raises :class:`Garbage`."""
        try:
            page = _raw_list.decode(body)
        except msgspec.DecodeError as error:
            raise Garbage(f"no list of {self.resource.plural}: {error}") from error
        where = page.metadata
        return Page([self._seen(one) for one in page.items], where.resource_version, where.continue_)

    def event(self, line: bytes) -> Event:
        """A line of a watch. Raises :class:`Garbage`."""
        try:
            wire = _raw_event.decode(line)
        except msgspec.DecodeError as error:
            raise Garbage(f"no event of {self.resource.plural}: {error}") from error
        if wire.type not in _OBJECT_EVENTS:
            return super().event(line)
        seen = self._seen(wire.object)
        return Event(wire.type, seen.version, seen)

    def _seen(self, raw: msgspec.Raw) -> Seen:
        try:
            meta = _identity.decode(raw).metadata
        except msgspec.DecodeError as error:
            raise Garbage(f"one of the {self.resource.plural} has no identity: {error}") from error
        key = f"{meta.namespace}/{meta.name}" if self.resource.namespaced else meta.name
        try:
            return Seen(key, meta.uid, meta.resource_version, self._decode_own(raw))
        except msgspec.DecodeError as error:
            return Seen(key, meta.uid, meta.resource_version, None, (Problem("", str(error)),))


class Followed(NamedTuple):
    """What to follow: a kind, how it is read, and which of its objects."""

    resource: Resource
    decode: Callable[[bytes | msgspec.Raw], Any]
    select: Mapping[str, str]


def follow(api: Api, followed: Followed, tell: Callable[[Change], None]) -> Reflector:
    """A reflector of *followed* that calls *tell* for every change; ``run`` it."""
    reader = OwnReader(followed.resource, followed.decode)
    return Reflector(
        api, followed.resource, tell, lambda: None, Pace(), reader=reader, select=followed.select
    )
