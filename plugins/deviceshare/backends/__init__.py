"""The vendors whose cards are known: one declaration a file."""

from __future__ import annotations

from typing import Final

from volcano_py.plugins.deviceshare.backend import Backend
from volcano_py.plugins.deviceshare.backends.ascend import ASCEND
from volcano_py.plugins.deviceshare.backends.cambricon import MLU
from volcano_py.plugins.deviceshare.backends.enflame import ENFLAME
from volcano_py.plugins.deviceshare.backends.hygon import DCU
from volcano_py.plugins.deviceshare.backends.iluvatar import ILUVATAR
from volcano_py.plugins.deviceshare.backends.kunlun import KUNLUN
from volcano_py.plugins.deviceshare.backends.metax import METAX
from volcano_py.plugins.deviceshare.backends.mthreads import MTHREADS
from volcano_py.plugins.deviceshare.backends.neuron import NEURON
from volcano_py.plugins.deviceshare.backends.nvidia import NVIDIA
from volcano_py.plugins.deviceshare.backends.others import OTHERS

BACKENDS: Final[tuple[Backend, ...]] = (
    NVIDIA,
    *ASCEND,
    DCU,
    MLU,
    *ILUVATAR,
    *METAX,
    MTHREADS,
    *ENFLAME,
    NEURON,
    *KUNLUN,
    *OTHERS,
)

__all__ = ["BACKENDS"]
