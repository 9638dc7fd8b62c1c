"""MIG instances in a pod's record of HAMi's family: of which card, which profile, and where on it.

Neighbours: ``records`` for the record that they belong to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from volcano_py.crds.cards.errors import WireError

INSTANCES: Final = "hami.io/vgpu-mig-allocations"


class Placement(msgspec.Struct, frozen=True):
    """Memory slices of a card: how many from which on."""

    start: int = 0
    size: int = 0


class InstanceEntry(msgspec.Struct, frozen=True, rename="camel"):
    """An instance in HAMi's list; who made it adds identities of its own.

    Attributes:
        container_index, device_index: segment of the record, and place in it.
        profile: ``1g.10gb``.
    """

    container_index: int = 0
    device_index: int = 0
    card: str = msgspec.field(default="", name="gpuUUID")
    profile: str = ""
    placement: Placement = Placement()


_read: Final = msgspec.json.Decoder(list[InstanceEntry]).decode


def encode_instances(entries: Sequence[InstanceEntry]) -> str:
    """*entries* as the text of the annotation."""
    return msgspec.json.encode(entries).decode()


def decode_instances(text: str) -> list[InstanceEntry]:
    """The instances that *text* lists; raises ``WireError``."""
    try:
        return _read(text)
    except (msgspec.DecodeError, ValueError) as error:
        raise WireError(str(error)) from error
