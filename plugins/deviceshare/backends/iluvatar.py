"""Iluvatar: one backend a chip, registered in HAMi's older text; memory is asked for in 256 MiB.

The chips are a table in HAMi's form (``iluvatars`` of its device configuration).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from volcano_py.crds.cards.names import ResourceNames
from volcano_py.crds.cards.register import decode_hami
from volcano_py.plugins.deviceshare.backend import Backend, Register, Wishes, hami_family
from volcano_py.plugins.deviceshare.names import HAMI


def read_chips(document: Any) -> tuple[Backend, ...]:
    """The chips of ``iluvatars``; raises ``ValueError``."""
    if not isinstance(document, Sequence) or isinstance(document, str):
        raise ValueError(f"must be a list of chips, not {document!r}")
    return tuple(map(_chip, document))


def _chip(entry: Any) -> Backend:
    try:
        word = str(entry["commonWord"])
        count = str(entry.get("resourceCountName") or f"iluvatar.ai/{word}-vgpu")
        memory = str(entry.get("resourceMemoryName") or f"iluvatar.ai/{word}.vMem")
        cores = str(entry.get("resourceCoreName") or f"iluvatar.ai/{word}.vCore")
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{entry!r} is no chip with a commonWord") from error
    return Backend(
        vendor=word,
        word=word,
        names=ResourceNames((count,), (memory,), cores=(cores,)),
        registers=(Register(f"hami.io/node-{word}-register", HAMI, decode_hami),),
        families=hami_family(word),
        wishes=Wishes(use_uuid=(f"hami.io/use-{word}-uuid",), not_uuid=(f"hami.io/no-use-{word}-uuid",)),
        unit_mib=256,
    )


ILUVATAR: Final = read_chips([{"commonWord": word} for word in ("MR-V100", "MR-V50", "BI-V150", "BI-V100")])
"""What HAMi knows without a ConfigMap."""
