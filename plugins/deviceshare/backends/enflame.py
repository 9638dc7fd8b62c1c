"""Enflame: whole cards, which a node only counts, and cards that are cut into parts.

A node with such cards tells how many slices they have and which parts can be cut (``3g.24gb``: three slices,
24 GiB). A part is asked for by its number of slices, or by memory (GiB) and percent of the cores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from volcano_py.crds.cards.errors import WireError
from volcano_py.crds.cards.names import ResourceNames
from volcano_py.crds.cards.register import CardReport
from volcano_py.plugins.deviceshare.backend import (
    Backend,
    Chip,
    Counted,
    Held,
    Register,
    Template,
    Wishes,
    hami_family,
    in_nanoseconds,
)
from volcano_py.plugins.deviceshare.names import HAMI, MINOR
from volcano_py.scheduler.model.kube.objects import Pod

_GIB: Final = 1024
_MOST_GIB: Final = 512
"""An amount of memory above this is one in MiB."""
_DIGITS: Final = 6


class _Device(msgspec.Struct, frozen=True):
    index: str = ""
    minor: str = ""
    capacity: int | str = 0


class _Capacity(msgspec.Struct, frozen=True):
    """A node's annotation: its cards, and the parts by name with what the plugin calls them besides."""

    devices: list[_Device] = []
    profiles: dict[str, str] = {}


class _Given(msgspec.Struct, frozen=True, omit_defaults=True):
    """A container's part as the vendor's plugin reads it."""

    allocated: bool
    request: int
    ident: str = msgspec.field(default="", name="profileID")
    name: str = msgspec.field(default="", name="profileName")


_read: Final = msgspec.json.Decoder(_Capacity).decode


def decode(text: str) -> Sequence[CardReport]:
    """The cards of the vendor's JSON; raises ``WireError``."""
    capacity, chip = _capacity(text), cut(text)
    reports = []
    for at, device in enumerate(capacity.devices):
        slices = _number(device.capacity)
        if not slices:
            raise WireError(f"card {device.index or at}: capacity {device.capacity!r} is no number of slices")
        index = _number(device.index, at)
        minor = ((MINOR, _number(device.minor, index)),)
        reports.append(
            CardReport(str(index), index, slices, chip.memory_mib, chip.cores, "Enflame", custom=minor)
        )
    return reports


def cut(text: str) -> Chip:
    """The parts that the vendor's JSON names; raises ``WireError`` if there are none."""
    profiles = _capacity(text).profiles
    parts = sorted(filter(None, (_part(*entry) for entry in profiles.items())), key=_by_size)
    if not parts:
        raise WireError("names no parts that cards can be cut into")
    largest = max(part.memory_mib for part in parts)
    return Chip(largest, largest, max(part.size for part in parts), tuple(parts))


def _capacity(text: str) -> _Capacity:
    try:
        return _read(text)
    except (msgspec.DecodeError, ValueError) as error:
        raise WireError(f"not the capacity of cards: {error}") from error


def _part(name: str, ident: str) -> Template | None:
    """``3g.24gb``; None where *name* is of another form."""
    size, _, memory = name.lower().strip().partition(".")
    slices, gib = _number(size.removesuffix("g")), _number(memory.removesuffix("gb"))
    return Template(name, gib * _GIB, slices, slices, ident) if slices and gib else None


def _by_size(part: Template) -> tuple[int, int, str]:
    return part.size, part.memory_mib, part.name


def _number(text: int | str, otherwise: int = 0) -> int:
    """*text* as a number that a card may have of anything."""
    digits = str(text).strip()
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) <= _DIGITS else otherwise


def _assigned(_: Pod, held: Held, now: float) -> Mapping[str, str]:
    """What the vendor's plugin is told: each container's part, and the first one's card."""
    given = {}
    first: dict[str, str] = {}
    for part, spec in (entry for segment in held for entry in segment):
        if not isinstance(spec.cut, Chip):
            raise TypeError(f"{spec.uuid} is not cut into parts")
        template = spec.cut.held(part.memory_mib)
        given[part.container] = _Given(False, template.size, template.ident, template.name)
        first = first or {
            "enflame.com/gcu-assigned-index": str(spec.index),
            "enflame.com/gcu-assigned-id": str(spec.index),
            "enflame.com/gcu-assigned-minor": str(spec.minor),
            "enflame.com/gcu-request-size": str(template.size),
        }
    return {
        **first,
        "enflame.com/gcu-assigned": "false",
        "enflame.com/gcu-assigned-time": in_nanoseconds(now),
        "assigned-containers": msgspec.json.encode(given).decode(),
    }


WHOLE: Final = Backend(
    vendor="enflame",
    word="GCU",
    names=ResourceNames(("enflame.com/gcu",)),
    families=hami_family("enflame-gcu"),
    counted=Counted("enflame.com/gcu", "GCU", memory_mib=100, slots=1),
    default_cores=100,
)
SHARED: Final = Backend(
    vendor="enflame-shared",
    word="Enflame",
    names=ResourceNames(
        ("enflame.com/drs-gcu",), ("enflame.com/gcu-memory",), cores=("enflame.com/gcu-core",)
    ),
    registers=(Register("enflame.com/gcu-drs-capacity", HAMI, decode, cut=cut, named="enflame-drs"),),
    families=hami_family("enflame-vgpu", extra=_assigned, consumed=False),
    wishes=Wishes(use_uuid=("enflame.com/use-gpuuuid",), not_uuid=("enflame.com/nouse-gpuuuid",)),
    unit_mib=_GIB,
    mib_above=_MOST_GIB,
    sizes=True,
)
ENFLAME: Final = (WHOLE, SHARED)
