"""Follows objects of one kind as structs of one's own, or as plain documents.

For what the simulator's rooms read and the scheduler's model leaves out, such as commands and templates.
How a server is followed is the reflector's affair.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from volcano_py.client.api import Api, Resource
from volcano_py.scheduler.cluster.fastpath import WireObject
from volcano_py.scheduler.cluster.reflector import Change, Pace, Reflector
from volcano_py.scheduler.cluster.wire import Garbage, Reader, Seen
from volcano_py.scheduler.model.kube.errors import Problem

_identity: Final = msgspec.json.Decoder(WireObject)


class OwnReader(Reader):
    """Reads objects of one kind with *decode*; what it refuses comes as unreadable."""

    def __init__(self, resource: Resource, decode: Callable[[bytes | msgspec.Raw], Any]) -> None:
        super().__init__(resource)
        self._fast = None
        self._decode = decode

    def _single(self, raw: msgspec.Raw) -> Seen:
        try:
            meta = _identity.decode(raw).metadata
        except msgspec.DecodeError as error:
            raise Garbage(f"one of the {self.resource.plural} has no identity: {error}") from error
        key = f"{meta.namespace}/{meta.name}" if self.resource.namespaced else meta.name
        try:
            return Seen(key, meta.uid, meta.resource_version, self._decode(raw))
        except msgspec.DecodeError as error:
            return Seen(key, meta.uid, meta.resource_version, None, (Problem("", str(error)),))

    def _careful(self, doc: Any) -> Seen:
        """What no decoder takes can't be given in a form of one's own."""
        raise Garbage(f"no JSON in one of the {self.resource.plural}: {str(doc)[:120]!r}")


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


async def run_listed(group: asyncio.TaskGroup, reflectors: Sequence[Reflector]) -> None:
    """Run *reflectors* in *group*; returns once each of them has told all there is."""
    for one in reflectors:
        group.create_task(one.run())
    for one in reflectors:
        await one.listed.wait()
