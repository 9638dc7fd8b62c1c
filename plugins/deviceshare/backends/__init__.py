"""The vendors whose cards are known: one declaration a file."""

from __future__ import annotations

from typing import Final

from volcano_py.plugins.deviceshare.backend import Backend
from volcano_py.plugins.deviceshare.backends.nvidia import NVIDIA

BACKENDS: Final[tuple[Backend, ...]] = (NVIDIA,)

__all__ = ["BACKENDS"]
