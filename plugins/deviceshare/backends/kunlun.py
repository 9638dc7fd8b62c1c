"""Kunlunxin: shared cards that the node registers, and whole cards that it only counts.

Shared cards are cut into quarters or halves, one size at a time. Of the others one half is on each NUMA node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano_py.crds.cards.names import ResourceNames
from volcano_py.crds.cards.records import HAMI as HAMI_KEYS
from volcano_py.crds.cards.records import Keys
from volcano_py.crds.cards.register import decode_hami
from volcano_py.plugins.deviceshare.backend import (
    Backend,
    Counted,
    Even,
    Family,
    Held,
    Register,
    Wishes,
    hami_family,
)
from volcano_py.plugins.deviceshare.names import HAMI
from volcano_py.scheduler.model.kube.objects import Pod

_WISHES: Final = Wishes(
    use_uuid=("hami.io/use-xpu-uuid", "baidu.com/use-gpuuuid"),
    not_uuid=("hami.io/no-use-xpu-uuid", "baidu.com/nouse-gpuuuid"),
)


def _chosen(_: Pod, held: Held, __: float) -> Mapping[str, str]:
    """Numbers of the last container's cards, as HAMi writes them."""
    numbers = [str(spec.index) for _, spec in [segment for segment in held if segment][-1]]
    return {"BAIDU_COM_DEVICE_IDX": ",".join(numbers)}


SHARED: Final = Backend(
    vendor="kunlun-shared",
    word="XPU",
    names=ResourceNames(("kunlunxin.com/vxpu",), ("kunlunxin.com/vxpu-memory",)),
    registers=(Register("hami.io/node-register-xpu", HAMI, decode_hami),),
    families=hami_family("xpu"),
    wishes=_WISHES,
    even=Even(((24576, 25), (49152, 50), (98304, 100))),
)
WHOLE: Final = Backend(
    vendor="kunlun",
    word="kunlun",
    names=ResourceNames(("kunlunxin.com/xpu",)),
    families={
        HAMI: Family(
            HAMI,
            Keys(
                node=HAMI_KEYS.node,
                time=HAMI_KEYS.time,
                allocated="hami.io/kunlun-allocated",
                to_allocate="hami.io/kunlun-allocated",
                phase=HAMI_KEYS.phase,
                bind_time=HAMI_KEYS.bind_time,
            ),
            extra=_chosen,
        )
    },
    counted=Counted("kunlunxin.com/xpu", "kunlun", memory_mib=98304, slots=1, two_numa=True),
    wishes=_WISHES,
    default_cores=100,
)
KUNLUN: Final = (SHARED, WHOLE)
