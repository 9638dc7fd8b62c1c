"""From MiB and percent to the milli of a card that placement policies count in, and back to cards.

A share's milli is the larger of its memory's and its cores' part of a card. Rounding never lets a share
in that does not fit, nor keeps out one that does: what fits is known exactly from ``room``, and the
milli are bent to agree. Neighbours: ``placement`` (the policies), ``room``.
"""

from __future__ import annotations

import numpy as np

from volcano_py.plugins.deviceshare.asks import WHOLE_PERCENT, CardRequest, ContainerAsk
from volcano_py.plugins.deviceshare.facts import CardFacts
from volcano_py.plugins.deviceshare.placement import WHOLE_CARD, CardAsk, CardNodes
from volcano_py.plugins.deviceshare.room import Room
from volcano_py.scheduler.framework.view import NodeView
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.resources import CPU, MEMORY, Ints, Mask

_PERCENT_MILLI = WHOLE_CARD // WHOLE_PERCENT
_NO_CARD = -1


def main_ask(request: CardRequest) -> ContainerAsk:
    """The ask that stands for the pod where one has to: most memory and cores, then most cards."""
    return max(request.asks, key=lambda ask: (ask.cores, ask.percent, ask.memory_mib, ask.count))


def milli_of(ask: ContainerAsk, card_mib: int) -> int:
    """Milli of a card with *card_mib* that a share takes, at least 1 and at most a whole card."""
    memory = -(-ask.memory_mib * WHOLE_CARD // card_mib) if ask.memory_mib and card_mib else 0
    share = max(memory, ask.percent * _PERCENT_MILLI, ask.cores * _PERCENT_MILLI, 1)
    return min(share, WHOLE_CARD)


def ask_of(klass: TaskClass, card_mib: int, facts: CardFacts) -> CardAsk:
    """What pods of *klass* ask, on cards of *card_mib*."""
    cpu, memory = int(klass.request[CPU]), int(klass.request[MEMORY])
    request = klass.cards
    if not isinstance(request, CardRequest):
        return CardAsk(cpu, memory, 0, 0)
    ask = main_ask(request)
    return CardAsk(cpu, memory, milli_of(ask, card_mib), ask.count, facts.models(request.selection))


def card_nodes(view: NodeView, facts: CardFacts, room: Room, kinds: Ints | None) -> CardNodes:
    """The nodes of *view* as policies see them; *room* is theirs."""
    memory = room.memory * WHOLE_CARD // np.maximum(room.memory_total, 1)
    cores = room.cores * WHOLE_CARD // np.maximum(room.cores_total, 1)
    free = np.maximum(np.minimum(memory, cores), 0)  # never above a whole card: used is never negative
    rows, idle = view.rows.astype(np.int64), view.allocatable - view.used
    return CardNodes(
        row=rows,
        cpu_idle=idle[:, CPU],
        memory_idle=idle[:, MEMORY],
        free=np.where(room.usable, free, _NO_CARD).astype(np.int32),
        model=facts.model.take(rows),
        kinds=np.zeros(len(rows), np.int64) if kinds is None else kinds[rows],
    )


def agree(nodes: CardNodes, fit: Mask, milli: int) -> CardNodes:
    """*nodes* with the room of each card bent so that *milli* fits exactly where *fit* (n, G) says."""
    if np.array_equal(nodes.free >= milli, fit):
        return nodes
    bent = np.where(fit, np.maximum(nodes.free, milli), np.minimum(nodes.free, milli - 1))
    return CardNodes(
        nodes.row, nodes.cpu_idle, nodes.memory_idle, bent.astype(np.int32), nodes.model, nodes.kinds
    )
