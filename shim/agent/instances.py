"""MIG instances: where a pod's record wants them, and what was made of that.

A scheduler of HAMi's family names the profile and the place of each instance; the agent makes it when the
container is allocated, writes its identity beside, and ends it with the slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from volcano_py.crds.cards.errors import WireError
from volcano_py.crds.cards.instances import INSTANCES, InstanceEntry, decode_instances
from volcano_py.shim.agent.pods import Pod, RecordError


@dataclass(frozen=True, slots=True)
class Wish:
    """An instance as a record wants it.

    Attributes:
        profile: ``1g.10gb``.
        start, size: which memory slices of the card.
    """

    card: str
    profile: str
    start: int
    size: int


class Instance(msgspec.Struct, frozen=True):
    """An instance that was made.

    Attributes:
        uuid: ``MIG-...``.
        card, profile, start, size: as they were wished.
        gpu_instance, compute_instance: the driver's numbers.
        nodes: device nodes that it takes to use it, besides the card's.
    """

    uuid: str
    card: str
    profile: str
    start: int
    size: int
    gpu_instance: int
    compute_instance: int
    nodes: tuple[str, ...] = ()

    @property
    def wish(self) -> Wish:
        """What it was made for."""
        return Wish(self.card, self.profile, self.start, self.size)


Places = Mapping[tuple[int, int], Wish]
"""By segment of the record and place in it."""


def wishes(pod: Pod) -> Places:
    """The instances that *pod*'s record wants; raises ``RecordError``."""
    text = pod.metadata.annotations.get(INSTANCES)
    if not text:
        return {}
    try:
        entries = decode_instances(text)
    except WireError as error:
        raise RecordError(f"{INSTANCES}: {error}") from error
    return {(each.container_index, each.device_index): _wish(each) for each in entries}


def _wish(entry: InstanceEntry) -> Wish:
    return Wish(entry.card, entry.profile, entry.placement.start, entry.placement.size)


def with_identities(text: str, made: Iterable[Instance]) -> str:
    """*text*, a pod's list of instances, with the identities of those that were *made*.

    What is no list of instances stays as it is.
    """
    by_wish = {each.wish: each for each in made}
    try:
        entries: list[dict[str, Any]] = msgspec.json.decode(text)
        read = decode_instances(text)
    except (msgspec.DecodeError, ValueError):
        return text
    for entry, each in zip(entries, read, strict=True):
        found = by_wish.get(_wish(each))
        if found is not None:
            entry["migUUID"] = found.uuid
            entry["gpuInstanceID"] = found.gpu_instance
            entry["computeInstanceID"] = found.compute_instance
    return msgspec.json.encode(entries).decode()
