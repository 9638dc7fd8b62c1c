"""Volcano's older card sharing: a node states its cards' number and their memory together.

A pod asks for memory of one card (``volcano.sh/gpu-memory``), or for whole cards (``volcano.sh/gpu-number``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano_py.crds.cards.names import ResourceNames
from volcano_py.plugins.deviceshare.backend import Backend, Counted, Held, hami_family, in_nanoseconds
from volcano_py.scheduler.model.kube.objects import Pod

_NUMBER: Final = "volcano.sh/gpu-number"
_MEMORY: Final = "volcano.sh/gpu-memory"


def _chosen(_: Pod, held: Held, now: float) -> Mapping[str, str]:
    """Numbers of the cards, as the older device plugin takes them."""
    numbers = [str(spec.index) for segment in held for _, spec in segment]
    return {
        "volcano.sh/gpu-index": ",".join(numbers),
        "volcano.sh/predicate-time": in_nanoseconds(now),
        "volcano.sh/gpu-assigned": "false",
    }


GPUSHARE: Final = Backend(
    vendor="gpushare",
    word="gpushare",
    names=ResourceNames((_NUMBER,), (_MEMORY,)),
    families=hami_family("gpushare", extra=_chosen, consumed=False),
    counted=Counted(_NUMBER, "gpu", memory=_MEMORY, unwell="volcano.sh/gpu-unhealthy-ids"),
)
