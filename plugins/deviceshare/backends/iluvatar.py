"""Iluvatar: one backend a chip, registered in HAMi's older text; memory is asked for in 256 MiB."""

from __future__ import annotations

from typing import Final

from volcano_py.crds.cards.names import ResourceNames
from volcano_py.crds.cards.register import decode_hami
from volcano_py.plugins.deviceshare.backend import Backend, Register, Wishes, hami_family
from volcano_py.plugins.deviceshare.names import HAMI


def _chip(word: str) -> Backend:
    names = ResourceNames(
        (f"iluvatar.ai/{word}-vgpu",), (f"iluvatar.ai/{word}.vMem",), cores=(f"iluvatar.ai/{word}.vCore",)
    )
    return Backend(
        vendor=word,
        word=word,
        names=names,
        registers=(Register(f"hami.io/node-{word}-register", HAMI, decode_hami),),
        families=hami_family(word),
        wishes=Wishes(use_uuid=(f"hami.io/use-{word}-uuid",), not_uuid=(f"hami.io/no-use-{word}-uuid",)),
        unit_mib=256,
    )


ILUVATAR: Final = tuple(_chip(word) for word in ("MR-V100", "MR-V50", "BI-V150", "BI-V100"))
