"""Whose is what the driver sees on the cards: processes to containers, by the cgroups that the kernel names.

A container has no say in it: neither its region nor its environment nor its own view of process numbers is
asked. A process number is believed only of the process that had it when the card was read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from volcano_py.shim.agent.cgroup.names import ContainerCgroup
from volcano_py.shim.agent.cgroup.tree import Tree, Whereabouts
from volcano_py.shim.agent.readings import CardProcess, Reading

ContainerKey = tuple[str, str]
"""Pod UID and container id."""
_START: Final = 19
"""Place of the start time in ``/proc/PID/stat``, counted from behind the name."""


@dataclass(frozen=True, slots=True)
class Found:
    """A process of the host.

    Attributes:
        pid: of the process, also where a thread's number was asked for.
        place: whose it is.
    """

    pid: int
    place: ContainerCgroup | Whereabouts


@dataclass(frozen=True, slots=True)
class HostProcesses:
    """The host's ``/proc``, asked for whose a process is."""

    tree: Tree

    def find(self, pid: int, listed_s: float) -> Found:
        """Whose the process is that had the number *pid* at *listed_s* (CLOCK_BOOTTIME)."""
        folder = self.tree.proc / str(pid)
        before = start_ticks(folder)
        if before is None or before > listed_s * os.sysconf("SC_CLK_TCK"):
            return Found(pid, Whereabouts.ENDED)
        process = _process_of(folder)
        place = self.tree.container_of(pid)
        if process is None or start_ticks(folder) != before:
            return Found(pid, Whereabouts.ENDED)
        return Found(process, place)


def start_ticks(folder: Path) -> int | None:
    """When the process in *folder* started, in clock ticks since boot; None where it ended."""
    try:
        text = (folder / "stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # A process chooses its name, parentheses and blanks included; what follows the last one is the kernel's.
    return int(text.rpartition(")")[2].split()[_START])


def _process_of(folder: Path) -> int | None:
    """The process that a thread belongs to."""
    try:
        text = (folder / "status").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Tgid:"))


@dataclass(frozen=True, slots=True)
class Use:
    """What a container holds of one card.

    Attributes:
        memory_bytes: of all its processes that are told.
        busy_percent: of the card's time; None where the card does not measure it.
        pids: its processes, on the host.
        untold: processes whose memory the driver does not tell.
    """

    memory_bytes: int = 0
    busy_percent: int | None = None
    pids: tuple[int, ...] = ()
    untold: int = 0


@dataclass(frozen=True, slots=True)
class Stray:
    """A process on a card that is in no container: a service of the host, or one whose place is unclear."""

    uuid: str
    pid: int
    memory_bytes: int
    why: Whereabouts


@dataclass(frozen=True, slots=True)
class Attribution:
    """Who holds what of the cards.

    Attributes:
        uses: by container, then card.
        strays: who is in no container. Processes that ended meanwhile are left out: they hold nothing.
        read: cards that told all.
    """

    uses: Mapping[ContainerKey, Mapping[str, Use]] = field(default_factory=dict)
    strays: tuple[Stray, ...] = ()
    read: frozenset[str] = frozenset()


def attribute(readings: Iterable[Reading], find: Callable[[int, float], Found]) -> Attribution:
    """Share out *readings* among containers.

    Args:
        readings: one a card; those in trouble name nobody.
        find: as ``HostProcesses.find``.
    """
    uses: dict[ContainerKey, dict[str, Use]] = {}
    strays: list[Stray] = []
    told = [reading for reading in readings if not reading.trouble]
    for reading in told:
        for found, process in _once(reading, find):
            if isinstance(found.place, ContainerCgroup):
                of_cards = uses.setdefault((found.place.pod_uid, found.place.container_id), {})
                of_cards[reading.uuid] = _with(of_cards.get(reading.uuid, Use()), found.pid, process)
            elif found.place is not Whereabouts.ENDED:
                strays.append(Stray(reading.uuid, found.pid, process.memory_bytes or 0, found.place))
    return Attribution(uses, tuple(strays), frozenset(reading.uuid for reading in told))


def _once(reading: Reading, find: Callable[[int, float], Found]) -> Iterable[tuple[Found, CardProcess]]:
    """Every process once, also where the driver lists several of its threads."""
    by_pid: dict[int, tuple[Found, CardProcess]] = {}
    for listed in reading.processes:
        found = find(listed.pid, reading.listed_s)
        _, known = by_pid.get(found.pid, (found, listed))
        memory, busy = (
            _larger(known.memory_bytes, listed.memory_bytes),
            _larger(known.busy_percent, listed.busy_percent),
        )
        by_pid[found.pid] = found, CardProcess(found.pid, memory, busy)
    return by_pid.values()


def _with(use: Use, pid: int, process: CardProcess) -> Use:
    busy = use.busy_percent
    if process.busy_percent is not None:
        busy = min((busy or 0) + process.busy_percent, 100)
    return Use(
        use.memory_bytes + (process.memory_bytes or 0),
        busy,
        (*use.pids, pid),
        use.untold + (process.memory_bytes is None),
    )


def _larger(one: int | None, other: int | None) -> int | None:
    told = [each for each in (one, other) if each is not None]
    return max(told, default=None)
