"""What is free on the cards of some nodes, and which cards take a share. Arrays, no loops over nodes.

Neighbours: ``facts`` for what the cards are, ``choose`` for the cards of a whole pod.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from volcano_py.plugins.deviceshare.asks import WHOLE_PERCENT, ContainerAsk, Selection
from volcano_py.plugins.deviceshare.facts import CardFacts
from volcano_py.plugins.deviceshare.names import WHOLE_CORES
from volcano_py.scheduler.model.cards import CardTable
from volcano_py.scheduler.model.resources import Ints, Mask, Rows32


@dataclass(frozen=True, slots=True, eq=False)
class Room:
    """(n, G) arrays: n nodes, G card positions.

    Attributes:
        usable: the pod may take a slice of the card at all.
        memory_total, cores_total: capacities (MiB, percent).
        memory, cores, slots: free; negative where a card shrank under its pods.
        tenants: slots taken.
    """

    usable: Mask
    memory_total: Ints
    cores_total: Ints
    memory: Ints
    cores: Ints
    slots: Ints
    tenants: Ints

    def without(self, chosen: Mask, memory: Ints, cores: int) -> Room:
        """The room left once a share of *memory* (n, G) and *cores* is taken of the *chosen* cards."""
        return replace(
            self,
            memory=self.memory - np.where(chosen, memory, 0),
            cores=self.cores - chosen * cores,
            slots=self.slots - chosen,
            tenants=self.tenants + chosen,
        )

    def only(self, rows: Mask) -> Room:
        """The room of the nodes that *rows* (n,) selects."""
        return Room(
            self.usable[rows],
            self.memory_total[rows],
            self.cores_total[rows],
            self.memory[rows],
            self.cores[rows],
            self.slots[rows],
            self.tenants[rows],
        )


def room_of(table: CardTable, facts: CardFacts, selection: Selection, rows: Rows32, *, future: bool) -> Room:
    """Room on node *rows* (n,) for pods that accept *selection*; at least one card position exists.

    Now: free, less what is promised beyond what is leaving. *future*: without what is leaving and with
    what is promised.
    """

    def held(kind: str) -> Ints:
        # Rows beyond the card table have no cards; clipped, they are ruled out by ``usable``.
        taken: Ints = getattr(table, f"used_{kind}").take(rows, axis=0, mode="clip")
        if table.moving:
            late = getattr(table, f"promised_{kind}").take(rows, axis=0, mode="clip")
            late = late - getattr(table, f"leaving_{kind}").take(rows, axis=0, mode="clip")
            taken = taken + (late if future else np.maximum(late, 0))
        return taken

    memory = table.memory.take(rows, axis=0, mode="clip")
    cores = table.cores.take(rows, axis=0, mode="clip")
    tenants = held("slots")
    return Room(
        facts.eligible(selection).take(rows, axis=0),
        memory,
        cores,
        memory - held("memory"),
        cores - held("cores"),
        table.slots.take(rows, axis=0, mode="clip") - tenants,
        tenants,
    )


def memory_need(ask: ContainerAsk, room: Room) -> Ints:
    """(n, G) MiB that a share takes of each card; as ``ContainerAsk.memory_on``."""
    if ask.memory_mib:
        return np.full(room.memory.shape, ask.memory_mib, np.int64)
    if ask.percent == WHOLE_PERCENT:
        return room.memory_total
    return np.maximum(room.memory_total * ask.percent // WHOLE_PERCENT, 1)


def fits(ask: ContainerAsk, room: Room, need: Ints, *, untouched: bool) -> Mask:
    """(n, G) cards that take one share of *ask*.

    A card whose cores are all given out takes nobody, not even who asks for none: that is what makes
    100 percent exclusive. Who asks for 100 waits for an empty card, unless cores are scaled beyond 100.
    """
    ok: Mask = room.usable & (need <= room.memory) & (room.slots >= 1) & (room.cores >= max(ask.cores, 1))
    if untouched:
        ok &= room.tenants == 0
    elif ask.cores >= WHOLE_CORES:
        ok &= (room.tenants == 0) | (room.cores_total != WHOLE_CORES)
    return ok
