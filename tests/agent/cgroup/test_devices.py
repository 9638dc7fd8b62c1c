"""Which card files a container may open, on this machine's kernel. ``zero`` and ``full`` play the cards."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agent.cgroup.hosts import WAIT_S, Host
from volcano_py.shim.agent.cgroup import bpf
from volcano_py.shim.agent.cgroup.bpf import CHARACTER, Device
from volcano_py.shim.agent.cgroup.devices import ASCEND, CardFiles, DeviceGuard, card_files, rules
from volcano_py.shim.agent.cgroup.errors import CgroupError, CgroupGone
from volcano_py.shim.agent.cgroup.names import ContainerCgroup

ZERO, FULL = Device(1, 5), Device(1, 7)
CARDS = frozenset({ZERO, FULL})
ONLY_ZERO = CardFiles(CARDS, frozenset({ZERO}))
ONLY_FULL = CardFiles(CARDS, frozenset({FULL}))
NONE = CardFiles(CARDS, frozenset())


def opens(node: Host, cgroup: ContainerCgroup, *names: str) -> list[str]:
    """Which of the device files in ``/dev`` a process in *cgroup* can open for reading."""
    script = 'for f; do if (: < "/dev/$f"); then echo "$f"; fi; done'
    process = node.start(cgroup, "/bin/sh", "-c", f"exec 2>&-; {script}", "sh", *names)
    said, _ = process.communicate(timeout=WAIT_S)
    return said.decode().split()


def refuse_all_but(node: Host, cgroup: ContainerCgroup, *allowed: str) -> None:
    """What a runtime tells v1's controller when a container starts."""
    folder = node.tree.folder(cgroup, "devices")
    (folder / "devices.deny").write_text("a")
    for line in allowed:
        (folder / "devices.allow").write_text(line)


def test_only_the_own_card_can_be_opened(node: Host) -> None:
    mine, guard = node.container(), DeviceGuard(node.tree)
    assert opens(node, mine, "zero", "full", "null") == ["zero", "full", "null"]
    guard.hold(mine, ONLY_ZERO)
    assert opens(node, mine, "zero", "full", "null") == ["zero", "null"]


def test_nobody_else_is_held(node: Host) -> None:
    mine, other = node.container(), node.container()
    DeviceGuard(node.tree).hold(mine, NONE)
    assert opens(node, mine, "zero", "full") == []
    assert opens(node, other, "zero", "full") == ["zero", "full"]


def test_what_is_below_a_container_is_held_with_it(node: Host) -> None:
    mine = node.container("cgroupfs")
    DeviceGuard(node.tree).hold(mine, ONLY_FULL)
    process = node.start(mine, "/bin/sh", "-c", "(: </dev/zero) 2>&- || echo no", below="inner")
    assert process.communicate(timeout=WAIT_S)[0] == b"no\n"


def test_other_cards_later(node: Host) -> None:
    mine, guard = node.container(), DeviceGuard(node.tree)
    if not node.tree.unified:
        refuse_all_but(node, mine, "c 1:3 rwm", "c 1:5 rw", "c 1:7 rw")
    assert guard.hold(mine, ONLY_ZERO)
    assert guard.hold(mine, ONLY_FULL)
    assert opens(node, mine, "zero", "full", "null") == ["full", "null"]
    assert not guard.hold(mine, ONLY_FULL)


def test_letting_go(node: Host) -> None:
    mine, guard = node.container(), DeviceGuard(node.tree)
    guard.hold(mine, NONE)
    guard.release(mine, NONE)
    assert opens(node, mine, "zero", "full") == ["zero", "full"]


def test_a_container_that_ended_is_told(node: Host) -> None:
    gone = node.container("cgroupfs")
    node.remove(gone)
    with pytest.raises(CgroupGone):
        DeviceGuard(node.tree).hold(gone, NONE)


# -- version 1 ----------------------------------------------------------------------------------


def test_what_the_runtime_refused_stays_refused(lists: Host) -> None:
    mine = lists.container()
    refuse_all_but(lists, mine, "c *:* m", "b *:* m", "c 1:3 rwm", "c 1:5 rw", "c 1:7 rw")
    assert DeviceGuard(lists.tree).hold(mine, ONLY_ZERO)
    assert opens(lists, mine, "zero", "full", "null", "urandom") == ["zero", "null"]


def test_a_rule_for_whole_ranges_is_told(lists: Host) -> None:
    mine = lists.container()
    refuse_all_but(lists, mine, "c 1:* rw")
    with pytest.raises(CgroupError, match="whole ranges"):
        DeviceGuard(lists.tree).hold(mine, ONLY_ZERO)


def test_a_line_that_is_no_rule_is_told() -> None:
    with pytest.raises(CgroupError, match="'c 1:x rw', which is no rule"):
        rules("c 1:3 rw\nc 1:x rw\n")


# -- version 2 ----------------------------------------------------------------------------------


def names_on(node: Host, cgroup: ContainerCgroup) -> list[str]:
    handle = os.open(node.tree.folder(cgroup, "devices"), os.O_RDONLY)
    try:
        found = [bpf.open_program(number) for number in bpf.attached(handle)]
        names = [bpf.name_of(program) for program in found]
        for program in found:
            os.close(program)
        return names
    finally:
        os.close(handle)


def attach(node: Host, cgroup: ContainerCgroup, code: bytes, name: str) -> None:
    handle = os.open(node.tree.folder(cgroup, "devices"), os.O_RDONLY)
    try:
        with bpf.loaded(code, name) as program:
            bpf.attach(handle, program, None)
    finally:
        os.close(handle)


def test_the_runtimes_program_stays_beside_ours(programs: Host) -> None:
    mine, guard = programs.container(), DeviceGuard(programs.tree)
    attach(programs, mine, bpf.assemble([Device(1, 9)]), "runtime")
    guard.hold(mine, ONLY_ZERO)
    guard.hold(mine, ONLY_FULL)
    assert opens(programs, mine, "zero", "full", "urandom") == ["full"]
    assert len(names_on(programs, mine)) == 2
    guard.release(mine, ONLY_FULL)
    assert names_on(programs, mine) == ["runtime"]
    assert opens(programs, mine, "zero", "full", "urandom") == ["zero", "full"]


def test_what_an_earlier_life_left_twice_becomes_one(programs: Host) -> None:
    mine = programs.container()
    attach(programs, mine, bpf.assemble([ZERO]), "vpy_one")
    attach(programs, mine, bpf.assemble([FULL]), "vpy_two")
    assert DeviceGuard(programs.tree).hold(mine, ONLY_FULL)
    assert opens(programs, mine, "zero", "full") == ["full"]
    assert len(names_on(programs, mine)) == 1


def test_the_program_outlives_who_attached_it(programs: Host) -> None:
    """No handle of ours is open any more when the first process opens a card."""
    mine = programs.container()
    before = {*os.listdir("/proc/self/fd")}
    DeviceGuard(programs.tree).hold(mine, ONLY_ZERO)
    assert {*os.listdir("/proc/self/fd")} <= before
    assert opens(programs, mine, "zero", "full") == ["zero"]


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("count", [0, 1, 2, 300])
def test_the_kernel_takes_programs_of_every_length(count: int) -> None:
    with bpf.loaded(bpf.assemble(Device(195, minor) for minor in range(count)), "vpy_length") as program:
        assert bpf.name_of(program) == "vpy_length"


@pytest.mark.usefixtures("programs")
def test_a_bad_program_is_told_with_the_kernels_words() -> None:
    with pytest.raises(CgroupError, match=r"(?s)does not take the device program: .*R0 !read_ok"):
        bpf.loaded(bpf.assemble([])[-8:], "vpy_bad").__enter__()


def test_more_devices_than_a_jump_passes_are_told() -> None:
    with pytest.raises(CgroupError, match="10001 devices"):
        bpf.assemble(Device(195, minor) for minor in range(10001))


# -- what programs decide -----------------------------------------------------------------------


def decide(program: bytes, kind: int, access: int, device: Device) -> int:
    """What *program* answers, worked out by reading it one instruction at a time."""
    context = struct.pack("<III", access << 16 | kind, device.major, device.minor)
    registers, place = [0] * 11, 0
    while True:
        code, both, offset, value = struct.unpack_from("<BBhi", program, 8 * place)
        to, of = both & 15, both >> 4
        place += 1
        match code:
            case 0x61:
                (registers[to],) = struct.unpack_from("<I", context, offset)
            case 0xBF:
                registers[to] = registers[of]
            case 0x77:
                registers[to] >>= value
            case 0x57:
                registers[to] &= value
            case 0xB7:
                registers[to] = value
            case 0x55:
                place += offset if registers[to] != value else 0
            case 0x45:
                place += offset if registers[to] & value else 0
            case 0x05:
                place += offset
            case 0x95:
                return registers[0]
            case _:
                raise AssertionError(f"code {code:#x}")


DEVICES = st.builds(Device, st.integers(193, 197), st.integers(0, 5))


@settings(max_examples=300)
@given(st.sets(DEVICES), st.sampled_from([1, CHARACTER]), st.integers(1, 7), DEVICES)
def test_a_program_refuses_exactly_what_it_was_made_for(
    denied: set[Device], kind: int, access: int, asked: Device
) -> None:
    refused = kind == CHARACTER and access & 6 and asked in denied
    assert decide(bpf.assemble(denied), kind, access, asked) == (0 if refused else 1)


def test_card_files_are_devices_and_no_links(tmp_path: Path) -> None:
    (tmp_path / "nvidia0").symlink_to("/dev/zero")
    (tmp_path / "nvidia1").write_text("")
    (tmp_path / "nvidiactl").write_text("")
    assert card_files(tmp_path) == {}
    if os.geteuid() != 0:
        pytest.skip("making device files takes root")
    os.mknod(tmp_path / "nvidia7", 0o20600, os.makedev(195, 7))
    os.mknod(tmp_path / "davinci2", 0o20600, os.makedev(236, 2))
    os.mknod(tmp_path / "nvidia-uvm", 0o20600, os.makedev(508, 0))
    assert card_files(tmp_path) == {7: Device(195, 7)}
    assert card_files(tmp_path, ASCEND) == {2: Device(236, 2)}
