"""Cambricon MLU: nodes state amounts only, a card being 100 of the cores; memory is counted in 256 MiB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano_py.crds.cards.names import ResourceNames
from volcano_py.plugins.deviceshare.backend import Backend, Counted, Held, Wishes, hami_family
from volcano_py.scheduler.model.kube.objects import Pod

_UNIT_MIB: Final = 256
_CORES: Final = "cambricon.com/mlu.smlu.vcore"
_MEMORY: Final = "cambricon.com/mlu.smlu.vmemory"


def _profile(_: Pod, held: Held, __: float) -> Mapping[str, str]:
    """What the vendor's plugin makes of the first card: its number, cores and memory in units."""
    part, spec = next(entry for segment in held for entry in segment)
    profile = f"{spec.index}_{part.cores}_{part.memory_mib // _UNIT_MIB}"
    return {"CAMBRICON_DSMLU_PROFILE": profile, "CAMBRICON_DSMLU_ASSIGNED": "false"}


MLU: Final = Backend(
    vendor="cambricon",
    word="MLU",
    names=ResourceNames(("cambricon.com/mlu", "cambricon.com/vmlu"), (_MEMORY,), cores=(_CORES,), booked=2),
    families=hami_family("cambricon-mlu", extra=_profile),
    counted=Counted(_CORES, "cambricon-mlu", each=100, memory=_MEMORY),
    wishes=Wishes(use_uuid=("cambricon.com/use-gpuuuid",), not_uuid=("cambricon.com/nouse-gpuuuid",)),
    unit_mib=_UNIT_MIB,
    default_cores=100,
)
