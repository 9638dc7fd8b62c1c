"""What is free on the cards of some nodes, and which cards take a share. Arrays, no loops over nodes.

Neighbours: ``facts`` for what the cards are, ``needs`` for what a share takes of them, ``choose`` for the
cards of a whole pod.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from volcano_py.plugins.deviceshare.asks import WHOLE_PERCENT, CardRequest, ContainerAsk
from volcano_py.plugins.deviceshare.facts import CardFacts
from volcano_py.plugins.deviceshare.names import WHOLE_CORES
from volcano_py.plugins.deviceshare.needs import Need
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
        cut: which of *cuts* a card is cut by, from 1; 0 none. None where no card is cut for this pod.
        parts: bits of the instances taken.
    """

    usable: Mask
    memory_total: Ints
    cores_total: Ints
    memory: Ints
    cores: Ints
    slots: Ints
    tenants: Ints
    cut: Ints | None = None
    cuts: tuple[Hashable, ...] = ()
    parts: Ints | None = None

    def without(self, chosen: Mask, need: Need) -> Room:
        """The room left once a share that needs *need* is taken of the *chosen* cards (n, G)."""
        parts = self.parts
        if parts is not None and need.option is not None:
            parts = parts | np.where(chosen & (need.option >= 0), 1 << np.maximum(need.option, 0), 0)
        return replace(
            self,
            memory=self.memory - np.where(chosen, need.memory, 0),
            cores=self.cores - chosen * need.cores,
            slots=self.slots - chosen,
            tenants=self.tenants + chosen,
            parts=parts,
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
            None if self.cut is None else self.cut[rows],
            self.cuts,
            None if self.parts is None else self.parts[rows],
        )


def room_of(
    table: CardTable, facts: CardFacts, request: CardRequest | None, rows: Rows32, *, future: bool
) -> Room:
    """Room on node *rows* (n,) for pods that ask *request* (None: any card); there is a card position.

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
    usable = (facts.usable if request is None else facts.eligible(request.selection)).take(rows, axis=0)
    room = Room(
        usable,
        memory,
        cores,
        memory - held("memory"),
        cores - held("cores"),
        table.slots.take(rows, axis=0, mode="clip") - tenants,
        tenants,
    )
    return room if request is None else _for_request(room, table, facts, request, rows, future=future)


def blank_room(table: CardTable, facts: CardFacts, request: CardRequest, rows: Rows32) -> Room:
    """The room for *request* on node *rows* (n,) if nobody had anything of their cards."""
    memory = table.memory.take(rows, axis=0, mode="clip")
    cores = table.cores.take(rows, axis=0, mode="clip")
    slots = table.slots.take(rows, axis=0, mode="clip")
    usable = facts.eligible(request.selection).take(rows, axis=0)
    nothing = np.zeros_like(memory)
    room = Room(usable, memory, cores, memory, cores, slots, nothing)
    room = _for_request(room, table, facts, replace(request, rules=0), rows, future=False)
    return room if room.parts is None else replace(room, parts=nothing)


def _for_request(
    room: Room, table: CardTable, facts: CardFacts, request: CardRequest, rows: Rows32, *, future: bool
) -> Room:
    """*room* with what only some pods look at."""
    if facts.cut is not None and not request.soft:
        parts = bits_held(table, "parts", rows, future=future)
        room = replace(room, cut=facts.cut.take(rows, axis=0), cuts=tuple(facts.cuts), parts=parts)
    if facts.lent is not None and request.yields:
        more = facts.lent.take(rows, axis=0) - WHOLE_PERCENT
        room = replace(
            room,
            memory=room.memory + room.memory_total * more // WHOLE_PERCENT,
            cores=room.cores + room.cores_total * more // WHOLE_PERCENT,
        )
    if request.rules:
        mine = bits_held(table, "tags", rows, future=future) & request.rules
        room = replace(room, usable=room.usable & (mine == 0))
    return room


def bits_held(table: CardTable, kind: str, rows: Rows32, *, future: bool) -> Ints:
    """(n, G) bits of *kind* (``parts``, ``tags``) that are taken now, or will be."""
    used: Ints = getattr(table, f"used_{kind}").take(rows, axis=0, mode="clip")
    if not table.moving:
        return used
    promised: Ints = getattr(table, f"promised_{kind}").take(rows, axis=0, mode="clip")
    if future:
        used = used & ~getattr(table, f"leaving_{kind}").take(rows, axis=0, mode="clip")
    return used | promised


def fits(ask: ContainerAsk, room: Room, need: Need, *, untouched: bool) -> Mask:
    """(n, G) cards that take one share of *ask*.

    A card whose cores are all given out takes nobody, not even who asks for none: that is what makes
    100 percent exclusive. Who asks for 100 waits for an empty card, unless cores are scaled beyond 100.
    Of a card that is cut into instances only a free instance counts.
    """
    ok: Mask = (need.memory <= room.memory) & (room.cores >= np.maximum(need.cores, 1))
    if not untouched and ask.cores >= WHOLE_CORES:
        ok &= (room.tenants == 0) | (room.cores_total != WHOLE_CORES)
    if need.option is not None:
        ok |= need.option >= 0
    ok &= room.usable & (room.slots >= 1)
    if need.possible is not None:
        ok &= need.possible
    if untouched:
        ok &= room.tenants == 0
    return ok
