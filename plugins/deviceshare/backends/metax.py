"""Metax: shared cards that the node registers in the vendor's JSON, and whole cards that it only counts.

Cards of one link zone are linked better; zone 0 is none.
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
    Counted,
    Held,
    Register,
    Wishes,
    hami_family,
    in_nanoseconds,
)
from volcano_py.plugins.deviceshare.names import HAMI
from volcano_py.scheduler.model.kube.objects import Pod


class _Device(msgspec.Struct, frozen=True, rename="camel"):
    """A card as the vendor's plugin registers it; zero values are left out."""

    uuid: str = ""
    model: str = ""
    total_dev_count: int = 0
    total_compute: int = 0
    total_vram: int = msgspec.field(default=0, name="totalVRam")
    numa: int = 0
    healthy: bool = False
    link_zone: int = 0


class _Given(msgspec.Struct, frozen=True, omit_defaults=True):
    uuid: str
    compute: int = 0
    vram: int = msgspec.field(default=0, name="vRam")


_read: Final = msgspec.json.Decoder(list[_Device]).decode


def decode(text: str) -> Sequence[CardReport]:
    """The cards of the vendor's JSON; raises ``WireError``."""
    try:
        devices = _read(text)
    except (msgspec.DecodeError, ValueError) as error:
        raise WireError(f"not a list of cards: {error}") from error
    for device in devices:
        if not device.uuid or device.total_vram <= 0 or device.total_dev_count <= 0:
            raise WireError(f"card {device.uuid!r}: uuid, totalVRam and totalDevCount are needed")
    return [
        CardReport(
            uuid=device.uuid,
            index=at,
            slots=device.total_dev_count,
            memory_mib=device.total_vram,
            cores=device.total_compute or 100,
            type=device.model or "Metax-SGPU",
            numa=device.numa,
            healthy=device.healthy,
            custom=(("LinkZone", device.link_zone),),
        )
        for at, device in enumerate(devices)
    ]


def _allocated(_: Pod, held: Held, now: float) -> Mapping[str, str]:
    given = [[_Given(p.uuid, p.cores, p.memory_mib) for p, _ in segment] for segment in held]
    return {
        "metax-tech.com/gpu-devices-allocated": msgspec.json.encode(given).decode(),
        "metax-tech.com/predicate-time": in_nanoseconds(now),
    }


SHARED: Final = Backend(
    vendor="metax-shared",
    word="Metax-SGPU",
    names=ResourceNames(
        ("metax-tech.com/sgpu",), ("metax-tech.com/vmemory",), cores=("metax-tech.com/vcore",)
    ),
    registers=(Register("metax-tech.com/node-gpu-devices", HAMI, decode),),
    families=hami_family("metax-sgpu", extra=_allocated),
    wishes=Wishes(use_uuid=("metax-tech.com/use-gpuuuid",), not_uuid=("metax-tech.com/nouse-gpuuuid",)),
    unit_mib=1024,
    bytes_with_unit=True,
    default_cores=100,
)
WHOLE: Final = Backend(
    vendor="metax",
    word="Metax-GPU",
    names=ResourceNames(("metax-tech.com/gpu",)),
    families=hami_family("metax-gpu"),
    counted=Counted("metax-tech.com/gpu", "metax", memory_mib=65536, slots=1),
    default_cores=100,
)
METAX: Final = (SHARED, WHOLE)
