"""Moore Threads: nodes state amounts only, a card being 16 cores; memory is counted in 512 MiB.

An ask's memory and cores are those of all its shares together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano_py.crds.cards.names import ResourceNames
from volcano_py.plugins.deviceshare.backend import Backend, Counted, Held, Wishes, hami_family, in_nanoseconds
from volcano_py.scheduler.model.kube.objects import Pod

_CORES: Final = "mthreads.com/sgpu-core"
_MEMORY: Final = "mthreads.com/sgpu-memory"
_NAME: Final = "mthreads"
_A_CARD: Final = 16


def _chosen(_: Pod, held: Held, now: float) -> Mapping[str, str]:
    """Numbers of the last container's cards and their node, as the vendor's plugin takes them."""
    last = [spec for _, spec in [segment for segment in held if segment][-1]]
    return {
        "mthreads.com/gpu-index": ",".join(str(spec.index) for spec in last),
        "mthreads.com/predicate-node": last[-1].uuid.removesuffix(f"-{_NAME}-{last[-1].index}"),
        "mthreads.com/predicate-time": in_nanoseconds(now),
    }


MTHREADS: Final = Backend(
    vendor="mthreads",
    word="Mthreads",
    names=ResourceNames(("mthreads.com/vgpu",), (_MEMORY,), cores=(_CORES,)),
    families=hami_family("mthreads-vgpu", extra=_chosen, consumed=False),
    counted=Counted(_CORES, _NAME, each=_A_CARD, memory=_MEMORY),
    wishes=Wishes(use_uuid=("mthreads.ai/use-gpuuuid",), not_uuid=("mthreads.ai/nouse-gpuuuid",)),
    unit_mib=512,
    totals=True,
    whole_cores=_A_CARD,
)
