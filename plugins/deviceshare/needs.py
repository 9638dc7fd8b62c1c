"""What a share takes of each card: what was asked, or the part of the hardware that is enough for it.

Neighbours: ``backend.Chip`` (parts by size), ``mig`` (instances by place), ``room`` for what is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from volcano_py.plugins.deviceshare.asks import WHOLE_PERCENT, ContainerAsk
from volcano_py.plugins.deviceshare.backend import Chip, Even, PerSlot, Template, Units
from volcano_py.plugins.deviceshare.mig import NONE, Geometry
from volcano_py.scheduler.model.resources import Ints, Mask

if TYPE_CHECKING:
    from volcano_py.plugins.deviceshare.room import Room


@dataclass(frozen=True, slots=True, eq=False)
class Need:
    """(n, G) arrays: what a share takes of a card.

    Attributes:
        memory: MiB.
        cores: as the card counts them; one number where it is the same everywhere.
        possible: the card can be cut so at all, free or not. None: every card.
        option: which instance it gets, -1 none. None where no card is cut into instances.
    """

    memory: Ints
    cores: Ints | int
    possible: Mask | None = None
    option: Ints | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """What a share takes of one card: MiB, cores, and of a card that is cut which instance."""

    memory_mib: int
    cores: int
    instance: str = ""
    parts: int = 0


def need_of(ask: ContainerAsk, room: Room) -> Need:
    """What a share of *ask* takes of the cards of *room*."""
    memory = _memory(ask, room)
    if room.cut is None:
        return Need(memory, ask.cores)
    return _cut_need(ask, room, memory)


def share_at(need: Need, room: Room, row: int, at: int) -> Share:
    """What a share takes of the card at position *at* of node *row* in *room*."""
    memory = int(need.memory[row, at])
    cores = need.cores if isinstance(need.cores, int) else int(need.cores[row, at])
    if need.option is None or need.option[row, at] < 0 or room.cut is None:
        return Share(memory, cores)
    geometry, option = room.cuts[int(room.cut[row, at]) - 1], int(need.option[row, at])
    if not isinstance(geometry, Geometry):
        raise TypeError(f"{geometry!r} has no instances")
    return Share(memory, cores, geometry.options[option].key, 1 << option)


def part_of(chip: Chip, ask: ContainerAsk) -> Template | None:
    """The part of a *chip* that a share of *ask* gets; None where there is none for it.

    Several cards at once are given whole only, and in pairs where they come in pairs.
    """
    if chip.paired and ask.count % 2:
        return None
    if ask.size:
        return next((part for part in chip.templates if part.size == ask.size), None)
    memory = ask.memory_mib
    if not memory and ask.percent < WHOLE_PERCENT:
        memory = max(chip.memory_mib * ask.percent // WHOLE_PERCENT, 1)
    part = chip.part(memory, ask.cores)
    return None if part is not None and part.name and ask.count > 1 else part


def _memory(ask: ContainerAsk, room: Room) -> Ints:
    """(n, G) MiB as asked; as ``ContainerAsk.memory_on``."""
    if ask.memory_mib:
        return np.full(room.memory.shape, ask.memory_mib, np.int64)
    if ask.percent == WHOLE_PERCENT:
        return room.memory_total
    return np.maximum(room.memory_total * ask.percent // WHOLE_PERCENT, 1)


def _cut_need(ask: ContainerAsk, room: Room, memory: Ints) -> Need:
    """What a share takes where some cards are cut in hardware."""
    cut, parts = room.cut, room.parts
    if cut is None or parts is None:
        raise ValueError("no card is cut")
    memory = memory.copy()
    cores = np.full(memory.shape, ask.cores, np.int64)
    possible = np.ones(memory.shape, np.bool_)
    option: Ints | None = None
    for number, kind in enumerate(room.cuts, 1):
        where = cut == number
        if not where.any():
            continue
        if isinstance(kind, Chip):
            part = part_of(kind, ask)
            possible[where] = part is not None
            if part is not None:
                memory[where], cores[where] = part.memory_mib, part.cores
        elif isinstance(kind, Even):
            size = kind.of(ask.memory_mib, ask.cores)
            possible[where] = False
            if size is not None:
                memory[where], cores[where] = size
                held = room.memory_total - room.memory
                possible |= where & (held == room.tenants * size[0])
        elif isinstance(kind, PerSlot):
            memory[where] = kind.memory_mib
        elif isinstance(kind, Units):
            cores[where] = kind.of(ask.cores)
        elif isinstance(kind, Geometry):
            if option is None:
                option = np.full(memory.shape, NONE, np.int64)
            possible[where] = False
            for taken in np.unique(parts[where]).tolist():
                picked = kind.pick(taken, least_mib(kind, ask), ask.cores)
                if picked == NONE:
                    continue
                here = where & (parts == taken)
                option[here], possible[here] = picked, True
                memory[here], cores[here] = kind.options[picked].memory_mib, kind.options[picked].cores
    return Need(memory, cores, possible, option)


def least_mib(geometry: Geometry, ask: ContainerAsk) -> int:
    """MiB that an instance for *ask* must have."""
    return ask.memory_mib or geometry.largest_mib * ask.percent // WHOLE_PERCENT
