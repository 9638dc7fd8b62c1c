"""What a node's device plugin publishes of its cards, in the forms that are about.

HAMi's JSON leaves zero values out, a false health among them, so a card without ``health`` is unhealthy.
HAMi's older text has seven or nine fields a card, Volcano's six. Neighbours: ``records`` for the pods' side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from volcano_py.crds.cards.errors import WireError
from volcano_py.crds.cards.instances import Placement

__all__ = [
    "AWAY",
    "CORDON",
    "HAMI_HANDSHAKE",
    "HAMI_REGISTER",
    "VOLCANO_HANDSHAKE",
    "VOLCANO_REGISTER",
    "CardReport",
    "MigProfile",
    "WireError",
    "away_since",
    "decode_hami",
    "decode_volcano",
    "encode_hami",
    "encode_volcano",
]

HAMI_REGISTER: Final = "hami.io/node-nvidia-register"
VOLCANO_REGISTER: Final = "volcano.sh/node-vgpu-register"
HAMI_HANDSHAKE: Final = "hami.io/node-handshake"
VOLCANO_HANDSHAKE: Final = "volcano.sh/node-vgpu-handshake"
AWAY: Final = "Deleted_"
"""How a handshake begins by which a device plugin has gone: nobody hands out its cards. A time follows."""
CORDON: Final = "hami.io/device-cordon"
"""Of a node: identities of cards that take nothing new, separated by commas."""
LARGEST: Final = 2**24
"""What a card may report of memory (MiB), shares or cores; more is garbage."""
WHOLE_CORES: Final = 100
DEFAULT_MODE: Final = "hami-core"
UNKNOWN_NUMA: Final = -1
_VOLCANO_FIELDS: Final = "UUID,count,memory,type,health,mode"
_OLD_FIELDS: Final = "id,count,memory,cores,type,numa,health[,index,mode]"


@dataclass(frozen=True, slots=True)
class MigProfile:
    """An instance that a card can be cut into.

    Attributes:
        name: ``1g.10gb``.
        memory_mib, cores: what an instance has (cores in percent of the card).
        slices: memory slices that it takes of the card.
        placements: (first slice, number of slices) where it may lie.
    """

    name: str
    memory_mib: int
    cores: int
    slices: int
    placements: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class CardReport:
    """One card as its node's plugin reports it.

    Attributes:
        uuid: the card's identity.
        index: minor number.
        slots: how many shares it is cut into.
        memory_mib, cores: what may be handed out (cores in percent of a card).
        type: model name.
        numa: NUMA node, -1 unknown.
        mode: how it is cut (``hami-core``, ``mig``, ``mps``).
        healthy: takes new slices.
        mig: instances it can be cut into.
        custom: further whole numbers by name (``NetworkID``, ``LinkZone``).
    """

    uuid: str
    index: int
    slots: int
    memory_mib: int
    cores: int
    type: str
    numa: int = 0
    mode: str = DEFAULT_MODE
    healthy: bool = True
    mig: tuple[MigProfile, ...] = ()
    custom: tuple[tuple[str, int], ...] = ()


class _Profile(msgspec.Struct, frozen=True):
    name: str = ""
    memory: int = msgspec.field(default=0, name="memoryMB")
    core: int = 0
    slices: int = msgspec.field(default=0, name="sliceCount")
    placements: list[Placement] | None = None


class _Device(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry of HAMi's JSON, its fields in the order in which HAMi writes them."""

    id: str = ""
    index: int = 0
    count: int = 0
    devmem: int = 0
    devcore: int = 0
    type: str = ""
    numa: int = 0
    mode: str = ""
    profiles: list[_Profile] | None = msgspec.field(default=None, name="migProfiles")
    health: bool = False
    custom: dict[str, object] | None = msgspec.field(default=None, name="custominfo")


_read_json: Final = msgspec.json.Decoder(list[_Device]).decode


def away_since(now: datetime) -> str:
    """The handshake of a device plugin that goes at *now*, as HAMi writes it."""
    return f"{AWAY}{now:%Y-%m-%d %H:%M:%S}"


def encode_hami(cards: Sequence[CardReport]) -> str:
    """*cards* as the JSON of ``hami.io/node-nvidia-register``."""
    return msgspec.json.encode([_device(card) for card in cards]).decode()


def encode_volcano(cards: Sequence[CardReport]) -> str:
    """*cards* as the text of ``volcano.sh/node-vgpu-register``; cores and NUMA node have no place there."""
    return "".join(
        f"{card.uuid},{card.slots},{card.memory_mib},{card.type},{str(card.healthy).lower()},{card.mode}:"
        for card in cards
    )


def decode_hami(text: str) -> tuple[CardReport, ...]:
    """The cards of HAMi's JSON or older text; raises ``WireError``."""
    text = text.strip()
    if text.startswith("["):
        return _checked(_from_json(text))
    return _checked(_from_old_text(row, at) for at, row in enumerate(_rows(text)))


def decode_volcano(text: str) -> tuple[CardReport, ...]:
    """The cards of Volcano's text; raises ``WireError``."""
    return _checked(_from_volcano(row, at) for at, row in enumerate(_rows(text.strip())))


def _device(card: CardReport) -> _Device:
    return _Device(
        id=card.uuid,
        index=card.index,
        count=card.slots,
        devmem=card.memory_mib,
        devcore=card.cores,
        type=card.type,
        numa=card.numa,
        mode=card.mode,
        profiles=[_profile(profile) for profile in card.mig] or None,
        health=card.healthy,
        custom=dict(card.custom) or None,
    )


def _profile(profile: MigProfile) -> _Profile:
    places = [Placement(start, size) for start, size in profile.placements]
    return _Profile(profile.name, profile.memory_mib, profile.cores, profile.slices, places)


def _from_json(text: str) -> list[CardReport]:
    try:
        devices = _read_json(text)
    except (msgspec.DecodeError, ValueError) as error:
        raise WireError(f"not a list of cards: {error}") from error
    return [_from_device(device) for device in devices]


def _from_device(device: _Device) -> CardReport:
    numbers: list[tuple[str, int]] = []
    if device.custom:
        numbers = sorted((key, value) for key, value in device.custom.items() if type(value) is int)
    return CardReport(
        uuid=device.id,
        index=device.index,
        slots=device.count,
        memory_mib=device.devmem,
        cores=device.devcore or WHOLE_CORES,
        type=device.type,
        numa=device.numa,
        mode=device.mode or DEFAULT_MODE,
        healthy=device.health,
        mig=tuple(map(_mig_profile, device.profiles or ())),
        custom=tuple(numbers),
    )


def _mig_profile(profile: _Profile) -> MigProfile:
    places = tuple((place.start, place.size) for place in profile.placements or ())
    return MigProfile(profile.name, profile.memory, profile.core, profile.slices, places)


def _rows(text: str) -> list[str]:
    return [row.strip() for row in text.split(":") if row.strip()]


def _from_volcano(row: str, at: int) -> CardReport:
    parts = [part.strip() for part in row.split(",")]
    if len(parts) != 6:
        raise WireError(f"{row!r} has {len(parts)} fields, {_VOLCANO_FIELDS} were expected")
    return CardReport(
        uuid=parts[0],
        index=at,
        slots=_number(parts[1], row),
        memory_mib=_number(parts[2], row),
        cores=WHOLE_CORES,
        type=parts[3],
        numa=UNKNOWN_NUMA,
        mode=parts[5] or DEFAULT_MODE,
        healthy=parts[4].lower() == "true",
    )


def _from_old_text(row: str, at: int) -> CardReport:
    parts = [part.strip() for part in row.split(",")]
    if len(parts) not in (7, 9):
        raise WireError(f"{row!r} has {len(parts)} fields, {_OLD_FIELDS} were expected")
    long = len(parts) == 9
    return CardReport(
        uuid=parts[0],
        index=_number(parts[7], row) if long else at,
        slots=_number(parts[1], row),
        memory_mib=_number(parts[2], row),
        cores=_number(parts[3], row) or WHOLE_CORES,
        type=parts[4],
        numa=_number(parts[5], row),
        mode=(parts[8] if long else "") or DEFAULT_MODE,
        healthy=parts[6].lower() == "true",
    )


def _absurd(card: CardReport) -> str:
    """Which amount of *card* is none that a card could have."""
    amounts = (("memory", card.memory_mib), ("count", card.slots), ("cores", card.cores))
    what, value = next((what, value) for what, value in amounts if not 0 < value <= LARGEST)
    return f"card {card.uuid}: {what} must be above 0, not {value}"


def _number(text: str, row: str) -> int:
    if not text.lstrip("-").isdecimal() or len(text) > 18:
        raise WireError(f"{row!r}: {text!r} is not a number")
    return int(text)


def _checked(cards: Iterable[CardReport]) -> tuple[CardReport, ...]:
    """*cards*, if each has an identity of its own and amounts that a card can have."""
    seen: set[str] = set()
    checked = tuple(cards)
    for card in checked:
        if not card.uuid:
            raise WireError("a card has no id")
        if not (0 < card.memory_mib <= LARGEST and 0 < card.slots <= LARGEST and 0 < card.cores <= LARGEST):
            raise WireError(_absurd(card))
        if card.uuid in seen:
            raise WireError(f"card {card.uuid} is listed twice")
        seen.add(card.uuid)
    return checked
