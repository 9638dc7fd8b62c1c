"""Hygon DCU, registered in HAMi's older text."""

from __future__ import annotations

from typing import Final

from volcano_py.crds.cards.names import ResourceNames
from volcano_py.crds.cards.register import decode_hami
from volcano_py.plugins.deviceshare.backend import Backend, Register, Wishes, hami_family
from volcano_py.plugins.deviceshare.names import HAMI

DCU: Final = Backend(
    vendor="hygon",
    word="DCU",
    names=ResourceNames(("hygon.com/dcunum",), ("hygon.com/dcumem",), cores=("hygon.com/dcucores",)),
    registers=(Register("hami.io/node-dcu-register", HAMI, decode_hami),),
    families=hami_family("dcu"),
    wishes=Wishes(
        use_type=("hygon.com/use-dcutype",),
        not_type=("hygon.com/nouse-dcutype",),
        use_uuid=("hygon.com/use-gpuuuid",),
        not_uuid=("hygon.com/nouse-gpuuuid",),
    ),
    default_cores=100,
)
