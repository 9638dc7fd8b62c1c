"""AMD, Biren and Vastai, registered in HAMi's JSON.

AMD registers how many compute units a card has, and its records call cards by their model.
"""

from __future__ import annotations

from typing import Final

from volcano_py.crds.cards.names import ResourceNames
from volcano_py.crds.cards.register import decode_hami
from volcano_py.plugins.deviceshare.backend import Backend, Register, Wishes, hami_family
from volcano_py.plugins.deviceshare.names import HAMI

AMD: Final = Backend(
    vendor="amd",
    word="AMD",
    names=ResourceNames(("amd.com/gpu",), ("amd.com/gpumem",), cores=("amd.com/gpucores",)),
    registers=(Register("hami.io/node-amd-register", HAMI, decode_hami),),
    families=hami_family("amd"),
    wishes=Wishes(
        use_type=("amd.com/use-gputype",),
        not_type=("amd.com/nouse-gputype",),
        use_uuid=("amd.com/use-gpu-uuid",),
        not_uuid=("amd.com/nouse-gpu-uuid",),
    ),
    default_cores=100,
    core_units=True,
    tells_model=True,
)
BIREN: Final = Backend(
    vendor="biren",
    word="Biren",
    names=ResourceNames(("birentech.com/gpu",)),
    registers=(Register("hami.io/node-biren-register", HAMI, decode_hami),),
    families=hami_family("Biren"),
    wishes=Wishes(
        use_type=("birentech.com/use-biren",),
        not_type=("birentech.com/nouse-biren",),
        use_uuid=("birentech.com/use-gpuuuid",),
        not_uuid=("birentech.com/nouse-gpuuuid",),
    ),
)
VASTAI: Final = Backend(
    vendor="vastai",
    word="Vastai",
    names=ResourceNames(("vastaitech.com/va",)),
    registers=(Register("hami.io/node-va-register", HAMI, decode_hami),),
    families=hami_family("Vastai"),
    wishes=Wishes(
        use_type=("vastaitech.com/use-va",),
        not_type=("vastaitech.com/nouse-va",),
        use_uuid=("vastaitech.com/use-gpuuuid",),
        not_uuid=("vastaitech.com/nouse-gpuuuid",),
    ),
)
OTHERS: Final = (AMD, BIREN, VASTAI)
