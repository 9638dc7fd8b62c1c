"""Which card files a container may open: its own cards', and none of the others on the host.

Of v1 the devices controller is told; of v2 a program is attached beside the runtime's. Both only govern the
device files named as cards: what the runtime allowed or refused besides stays as it is. Files that are open
already stay open.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from volcano_py.shim.agent.cgroup import bpf
from volcano_py.shim.agent.cgroup.bpf import Device
from volcano_py.shim.agent.cgroup.errors import CgroupError
from volcano_py.shim.agent.cgroup.files import read, write
from volcano_py.shim.agent.cgroup.names import ContainerCgroup
from volcano_py.shim.agent.cgroup.tree import Tree

NVIDIA, ASCEND = "nvidia", "davinci"
"""What the files of single cards are called, before their number."""
_PREFIX: Final = "vpy_"
_DIGITS: Final = 11
_RULE: Final = re.compile(r"(?P<type>[abc]) (?P<major>\d+|\*):(?P<minor>\d+|\*) (?P<access>[rwm]+)")


@dataclass(frozen=True, slots=True)
class CardFiles:
    """What one container may open.

    Attributes:
        all: every card of the host.
        own: the container's.
    """

    all: frozenset[Device]
    own: frozenset[Device]

    @property
    def others(self) -> list[Device]:
        """Cards that are not the container's."""
        return sorted(self.all - self.own)


def card_files(dev: Path = Path("/dev"), vendor: str = NVIDIA) -> dict[int, Device]:
    """The files in *dev* that are one card of *vendor* each, by the number in their name.

    Control files (nvidiactl, nvidia-uvm) are everybody's and no card. Links are not followed: a name is no
    proof of what is behind it.
    """
    found = {}
    for entry in os.scandir(dev):
        number = re.fullmatch(rf"{vendor}(\d+)", entry.name)
        status = entry.stat(follow_symlinks=False)
        if number and stat.S_ISCHR(status.st_mode):
            found[int(number[1])] = Device(os.major(status.st_rdev), os.minor(status.st_rdev))
    return found


@dataclass(frozen=True, slots=True)
class DeviceGuard:
    """Holds containers to their card files."""

    tree: Tree

    def hold(self, cgroup: ContainerCgroup, files: CardFiles) -> bool:
        """Let *cgroup* open its own cards only; whether a change was seen.

        Where v1 allows all devices it does not show which it refuses, and no change is seen.

        A runtime that updates its container may drop what others attached, so ask again from time to time.

        Raises:
            CgroupError: the kernel refuses, or a rule of the runtime admits more than can be taken away.
            CgroupGone: the container ended.
        """
        folder = self.tree.folder(cgroup, "devices")
        return _hold_v2(folder, files) if self.tree.unified else _hold_v1(folder, files)

    def release(self, cgroup: ContainerCgroup, files: CardFiles) -> None:
        """Take back what ``hold`` did: cards are governed by the runtime alone."""
        folder = self.tree.folder(cgroup, "devices")
        if self.tree.unified:
            with _handle(folder) as handle, _ours(handle) as found:
                for _, program in found:
                    bpf.detach(handle, program)
        else:
            _allow(folder, files.others)


# -- version 1 ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of ``devices.list``; None stands for every number."""

    type: str
    major: int | None
    minor: int | None
    access: str

    def opens(self, device: Device) -> bool:
        """Whether *device* may be opened by this rule."""
        numbers = ((self.major, device.major), (self.minor, device.minor))
        fits = all(mine is None or mine == its for mine, its in numbers)
        return self.type in "ac" and fits and bool({"r", "w"} & {*self.access})


def rules(text: str) -> list[Rule]:
    """The lines of ``devices.list``. Raises ``CgroupError`` where the kernel writes what we don't know."""
    return [_rule(line) for line in text.splitlines()]


def _rule(line: str) -> Rule:
    told = _RULE.fullmatch(line.strip())
    if told is None:
        raise CgroupError(f"devices.list says {line!r}, which is no rule that is known")
    major, minor = (None if told[part] == "*" else int(told[part]) for part in ("major", "minor"))
    return Rule(told["type"], major, minor, told["access"])


def _hold_v1(folder: Path, files: CardFiles) -> bool:
    before = read(folder / "devices.list")
    if any(rule.type == "a" for rule in rules(before)):
        # Everything is allowed but what was refused; the kernel does not list those, so all are told again.
        _deny(folder, files.others)
        return False
    wide = [rule for rule in rules(before) if rule.major is None or rule.minor is None]
    if any(rule.opens(device) for rule in wide for device in files.others):
        raise CgroupError(f"{folder} opens whole ranges of devices, which can't be narrowed to single cards")
    listed = rules(before)
    _deny(folder, [device for device in files.others if any(rule.opens(device) for rule in listed)])
    _allow(folder, [device for device in sorted(files.own) if not any(rule.opens(device) for rule in listed)])
    return read(folder / "devices.list") != before


def _deny(folder: Path, devices: Iterable[Device]) -> None:
    for device in devices:
        write(folder / "devices.deny", f"c {device.major}:{device.minor} rwm")


def _allow(folder: Path, devices: Iterable[Device]) -> None:
    for device in devices:
        write(folder / "devices.allow", f"c {device.major}:{device.minor} rw")


# -- version 2 ----------------------------------------------------------------------------------


def _hold_v2(folder: Path, files: CardFiles) -> bool:
    code = bpf.assemble(files.others)
    name = _PREFIX + hashlib.sha256(code).hexdigest()[:_DIGITS]
    with _handle(folder) as handle, _ours(handle) as found:
        if [each for each, _ in found] == [name]:
            return False
        with bpf.loaded(code, name) as program:
            bpf.attach(handle, program, found[0][1] if found else None)
        for _, left_over in found[1:]:
            bpf.detach(handle, left_over)
    return True


@contextmanager
def _handle(folder: Path) -> Iterator[int]:
    """*folder* open, and faults of bpf(2) over it told as ``CgroupError``."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield handle
        finally:
            os.close(handle)
    except OSError as error:
        raise CgroupError(f"device programs of {folder}: {error.strerror}") from error


@contextmanager
def _ours(folder: int) -> Iterator[list[tuple[str, int]]]:
    """Name and handle of each program of ours on the cgroup open as *folder*."""
    found: list[tuple[str, int]] = []
    handles = []
    try:
        for number in bpf.attached(folder):
            handle = bpf.open_program(number)
            handles.append(handle)
            name = bpf.name_of(handle)
            if name.startswith(_PREFIX):
                found.append((name, handle))
        yield found
    finally:
        for handle in handles:
            os.close(handle)
