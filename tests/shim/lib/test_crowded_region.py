"""A process in a late place of a crowded region is measured like the first one."""

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.shim.harness import one_slice
from tests.shim.stub.state import Card, Clock
from volcano_py.shim.agent.region_layout import RegionLayout

NEIGHBOURS = 300
FIRST_PID = 3_000_000


@contextmanager
def neighbours(file: Path) -> Iterator[None]:
    """So many first places of the region have owners, whose pids NVML never names."""
    with file.open("r+b") as opened:
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, NEIGHBOURS, 0)
        fcntl.fcntl(opened, fcntl.F_OFD_SETLK, lock)
        layout = RegionLayout.from_buffer_copy(opened.read())
        layout.control.slots_high = NEIGHBOURS
        for place in range(NEIGHBOURS):
            layout.slots[place].pid = layout.slots[place].host_pid = FIRST_PID + place
        opened.seek(0)
        opened.write(layout)
        opened.flush()
        yield


def test_a_process_behind_many_others_is_held_to_the_share(library: Path, tmp_path: Path) -> None:
    with (
        one_slice(tmp_path, (1024,), cards=[Card()], cores=25) as slice_,
        Clock(tmp_path / "clock") as clock,
        neighbours(slice_.region),
    ):
        assert slice_.spin(clock) == pytest.approx(25, abs=5)
