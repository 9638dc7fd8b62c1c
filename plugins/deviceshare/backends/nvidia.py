"""NVIDIA: slices under HAMi's and Volcano's device plugins, whole cards, MIG instances."""

from __future__ import annotations

from typing import Final

from volcano_py.crds.cards import names as resources
from volcano_py.crds.cards.records import HAMI as HAMI_KEYS
from volcano_py.crds.cards.records import VOLCANO as VOLCANO_KEYS
from volcano_py.crds.cards.register import (
    HAMI_HANDSHAKE,
    HAMI_REGISTER,
    VOLCANO_HANDSHAKE,
    VOLCANO_REGISTER,
    decode_hami,
    decode_volcano,
)
from volcano_py.plugins.deviceshare.backend import Backend, Family, Register, Wishes
from volcano_py.plugins.deviceshare.names import HAMI, VOLCANO

NVIDIA: Final = Backend(
    vendor="nvidia",
    word="NVIDIA",
    names=resources.NVIDIA,
    registers=(
        Register(HAMI_REGISTER, HAMI, decode_hami, HAMI_HANDSHAKE),
        Register(VOLCANO_REGISTER, VOLCANO, decode_volcano, VOLCANO_HANDSHAKE),
    ),
    families={
        HAMI: Family(HAMI, HAMI_KEYS),
        VOLCANO: Family(VOLCANO, VOLCANO_KEYS, init_first=False, terminated=False),
    },
    wishes=Wishes(
        use_type=("nvidia.com/use-gputype",),
        not_type=("nvidia.com/nouse-gputype",),
        use_uuid=("nvidia.com/use-gpuuuid", "volcano.sh/vgpu-use-gpuuuid"),
        not_uuid=("nvidia.com/nouse-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid"),
        mode_within="nvidia.com/vgpu-mode",
        mode_equal="volcano.sh/vgpu-mode",
    ),
    whole_by_count=True,
)
