"""The region file: both sides agree on it, and no content of it can break the reader."""

import ctypes
import fcntl
import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shim.relimits import relimit
from volcano_py.shim.agent import region, region_layout
from volcano_py.shim.agent.region import CorePolicy, DeviceLimit, RegionError

LIB = Path(__file__).parents[3] / "shim" / "lib"
CARDS = (DeviceLimit("GPU-1", 4 << 30, 50), DeviceLimit("GPU-2", 0, 0))
STRUCTS = {
    "region_header": region_layout.HeaderLayout,
    "region_control": region_layout.ControlLayout,
    "region_device": region_layout.DeviceLayout,
    "region_limits": region_layout.LimitsLayout,
    "region_card": region_layout.CardLayout,
    "region_slot": region_layout.SlotLayout,
    "region": region_layout.RegionLayout,
}


def _fields() -> Iterator[tuple[str, str, int]]:
    for name, layout in STRUCTS.items():
        for field in layout._fields_:
            yield name, field[0], getattr(layout, field[0]).offset


def _run_c(folder: Path, body: str) -> str:
    source = folder / "probe.c"
    source.write_text(f'#include "region.h"\n#include <stdio.h>\n#include <string.h>\n{body}\n')
    program = folder / "probe"
    command = ["gcc", "-std=c11", "-Wall", f"-I{LIB}", str(source), str(LIB / "region.c"), "-o", str(program)]
    subprocess.run(command, check=True, timeout=120)
    return subprocess.run([program], check=True, capture_output=True, text=True, timeout=60).stdout


def test_every_offset_is_the_same_in_c(tmp_path: Path) -> None:
    fields = list(_fields())
    prints = "".join(
        f'printf("{name} {field} %zu\\n", offsetof(struct {name}, {field}));' for name, field, _ in fields
    )
    sizes = "".join(f'printf("{name} %zu\\n", sizeof(struct {name}));' for name in STRUCTS)
    said = _run_c(tmp_path, f"int main(void) {{ {prints}{sizes} return 0; }}").splitlines()
    expected = [f"{name} {field} {offset}" for name, field, offset in fields]
    expected += [f"{name} {ctypes.sizeof(layout)}" for name, layout in STRUCTS.items()]
    assert said == expected


def test_a_region_made_in_python_is_one_in_c_and_the_other_way_round(tmp_path: Path) -> None:
    region.create(tmp_path / "ours", CARDS)
    program = """
    static struct region read_one, made;
    int main(void) {
        FILE *file = fopen("%s/ours", "rb");
        if (fread(&read_one, 1, sizeof(read_one), file) != sizeof(read_one)) return 1;
        const char *fault = region_fault(&read_one, sizeof(read_one));
        printf("%%s\\n", fault ? fault : "fine");
        struct region_device card = {.memory_limit = 7, .cores = 30};
        strcpy(card.uuid, "GPU-9");
        region_format(&made, &card, 1, 0, REGION_CORES_SHARED, 0);
        FILE *out = fopen("%s/theirs", "wb");
        return fwrite(&made, 1, sizeof(made), out) != sizeof(made) || fclose(out);
    }
    """
    assert _run_c(tmp_path, program % (tmp_path, tmp_path)) == "fine\n"
    theirs = region.read(tmp_path / "theirs")
    assert [(card.uuid, card.limit_bytes, card.cores) for card in theirs.devices] == [("GPU-9", 7, 30)]
    assert (theirs.priority, theirs.policy, theirs.made_by_agent) == (0, CorePolicy.SHARED, False)


def test_create_and_read(tmp_path: Path) -> None:
    path = tmp_path / "region"
    region.create(path, CARDS, priority=0)
    said = region.read(path)
    assert [(card.uuid, card.limit_bytes, card.cores) for card in said.devices] == [
        ("GPU-1", 4 << 30, 50),
        ("GPU-2", 0, 0),
    ]
    assert (said.processes, said.priority, said.policy, said.made_by_agent) == (
        (),
        0,
        CorePolicy.ALWAYS,
        True,
    )
    assert path.stat().st_mode & 0o777 == 0o666
    assert os.listdir(tmp_path) == ["region"]


@pytest.mark.parametrize(
    "card",
    [DeviceLimit("G" * 64, 1), DeviceLimit("G", -1), DeviceLimit("G", 1 << 47), DeviceLimit("G", 1, 101)],
)
def test_limits_out_of_range_are_refused(tmp_path: Path, card: DeviceLimit) -> None:
    with pytest.raises(ValueError, match=r"."):
        region.create(tmp_path / "region", [card])
    assert os.listdir(tmp_path) == []


def test_more_cards_than_a_region_holds(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="17 cards"):
        region.create(tmp_path / "region", [DeviceLimit("G", 1)] * 17)


def test_the_set_of_limits_that_holds_is_read(tmp_path: Path) -> None:
    path = tmp_path / "region"
    region.create(path, CARDS, priority=0)
    for bytes_, cores, priority in ((1 << 30, 25, 0), (2 << 30, 75, 1)):
        relimit(path, [DeviceLimit("GPU-1", bytes_, cores), DeviceLimit("GPU-2", 6)], priority=priority)
        said = region.read(path)
        assert [(card.limit_bytes, card.cores) for card in said.devices] == [(bytes_, cores), (6, 0)]
        assert said.priority == priority


def test_a_block_is_a_time_and_can_be_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "region"
    region.create(path, CARDS)
    until = time.monotonic_ns() + 10**9
    region.block(path, until)
    assert region.read(path).blocked_until_ns == until
    region.block(path, 0)
    assert region.read(path).blocked_until_ns == 0


@pytest.mark.parametrize(
    ("offset", "why"),
    [
        (0, "magic"),
        (8, "version"),
        (12, "header checksum"),
        (17, "header checksum"),
        (65, "no such set of limits"),
        (128, "checksum of the limits"),
        (200, "checksum of the limits"),
    ],
)
def test_a_broken_byte_is_told(tmp_path: Path, offset: int, why: str) -> None:
    path = tmp_path / "region"
    region.create(path, CARDS)
    image = bytearray(path.read_bytes())
    image[offset] ^= 0x40
    path.write_bytes(image)
    with pytest.raises(RegionError, match=why):
        region.read(path)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 4096, region.SIZE - 1])
def test_a_file_that_was_cut_off_is_told(tmp_path: Path, size: int) -> None:
    path = tmp_path / "region"
    region.create(path, CARDS)
    os.truncate(path, size)
    with pytest.raises(RegionError, match=f"{size} bytes"):
        region.read(path)


def test_what_stands_in_its_place_is_told_and_never_waited_for(tmp_path: Path) -> None:
    with pytest.raises(RegionError, match="No such file"):
        region.read(tmp_path / "missing")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RegionError, match="not a regular file"):
        region.read(tmp_path / "pipe")
    region.create(tmp_path / "region", CARDS)
    (tmp_path / "link").symlink_to(tmp_path / "region")
    with pytest.raises(RegionError, match="symbolic links"):
        region.read(tmp_path / "link")


def test_no_content_breaks_the_reader(tmp_path: Path) -> None:
    """What a container wrote into its counters and slots is read as numbers, whatever it is."""
    path = tmp_path / "region"
    region.create(path, CARDS)
    dice = random.Random(5)
    image = bytearray(path.read_bytes())
    image[72:128] = dice.randbytes(56)
    image[4352:] = dice.randbytes(len(image) - 4352)
    path.write_bytes(image)
    said = region.read(path)
    assert said.processes == ()
    assert [card.used_bytes for card in said.devices] == [0, 0]


def test_only_who_holds_the_lock_of_a_slot_counts(tmp_path: Path) -> None:
    path = tmp_path / "region"
    region.create(path, CARDS)
    layout = region_layout.RegionLayout.from_buffer_copy(path.read_bytes())
    layout.control.slots_high = 2
    for slot in range(2):
        layout.slots[slot].pid = 100 + slot
        layout.used[0][slot] = 5 + slot
        layout.slots[slot].launches[0] = 3
    path.write_bytes(bytes(layout))
    with open(path, "r+b") as owner:
        fcntl.fcntl(owner, fcntl.F_OFD_SETLK, region._FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 1, 1, 0))
        said = region.read(path)
        assert [(process.slot, process.pid, process.used_bytes) for process in said.processes] == [
            (1, 101, (6, 0))
        ]
        assert (said.devices[0].used_bytes, said.devices[0].launches) == (6, 6)
        region.note_host_pid(path, said.processes[0], 4242)
        assert region.read(path).processes[0].host_pid == 4242
    assert region.read(path).processes == ()
