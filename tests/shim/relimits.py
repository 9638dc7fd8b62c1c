"""Other limits in a region while programs run, as docs/shim-region.md says; no agent of ours does it yet."""

import zlib
from collections.abc import Sequence
from ctypes import sizeof
from pathlib import Path

from volcano_py.shim.agent import region
from volcano_py.shim.agent.region_layout import LimitsLayout, RegionLayout, offset_of


def relimit(path: Path, devices: Sequence[region.DeviceLimit], *, priority: int = 1) -> None:
    """Fills the set of limits that is not in use with those of *devices*, and turns to it."""
    drawn = path.with_name("drawn")
    region.create(drawn, devices, priority=priority)
    fresh = RegionLayout.from_buffer_copy(drawn.read_bytes()).limits[0]
    with path.open("r+b", buffering=0) as file:
        now = RegionLayout.from_buffer_copy(file.read())
        other = 1 - now.control.active
        fresh.generation = now.limits[now.control.active].generation + 1
        fresh.crc = zlib.crc32(bytes(fresh)[offset_of(LimitsLayout, "generation") :])
        file.seek(offset_of(RegionLayout, "limits") + other * sizeof(LimitsLayout))
        file.write(fresh)
        file.seek(offset_of(RegionLayout, "control"))
        file.write(other.to_bytes(4, "little"))
