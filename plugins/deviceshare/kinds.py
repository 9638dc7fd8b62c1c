"""Which kinds of asks run on each node, for the policy that keeps alike pods together.

Books of its own, kept by the accounts' observers and made anew from the tasks when the plugin starts.
A node's kinds are bits (``CardAsk.kind_bit``) or-ed together.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from volcano_py.plugins.deviceshare.asks import CardRequest
from volcano_py.plugins.deviceshare.placement import CardAsk
from volcano_py.plugins.deviceshare.translate import main_ask, milli_of
from volcano_py.scheduler.model.accounts import Batch
from volcano_py.scheduler.model.cards import CardTable
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.resources import Ints
from volcano_py.scheduler.model.tasks import HOLDS_NODE, NOWHERE


class KindBook:
    """Pods of each kind on each node.

    Attributes:
        bits: (N,) int64.
    """

    def __init__(self, state: ClusterState) -> None:
        self.bits: Ints = np.zeros(len(state.nodes.version), np.int64)
        self._cards: CardTable = state.cards
        self._counts: dict[int, Counter[int]] = {}
        tasks = state.tasks
        for task in tasks.index.values():
            if HOLDS_NODE[tasks.status[task]] and tasks.node[task] != NOWHERE:
                self._count(state.classes[int(tasks.klass[task])], int(tasks.node[task]), 1)
        observers = state.accounts.observers
        observers[:] = [observer for observer in observers if not isinstance(observer, KindBook)]
        observers.append(self)

    def booked(self, batch: Batch, sign: int) -> None:
        """See ``accounts.Observer``."""
        if HOLDS_NODE[batch.status]:
            for node in batch.nodes.tolist():
                self._count(batch.klass, node, sign)

    def reach(self, rows: int) -> Ints:
        """``bits`` for at least *rows* nodes."""
        if rows > len(self.bits):
            self.bits = np.concatenate([self.bits, np.zeros(rows - len(self.bits), np.int64)])
        return self.bits

    def _count(self, klass: TaskClass, node: int, sign: int) -> None:
        request = klass.cards
        if not isinstance(request, CardRequest):
            return
        ask = main_ask(request)
        specs = self._cards.specs.get(node, ())
        milli = milli_of(ask, specs[0].memory_mib) if specs else 0
        bit = CardAsk(0, 0, milli, ask.count).kind_bit if milli else 0
        counts = self._counts.setdefault(node, Counter())
        counts[bit] += sign
        self.reach(node + 1)[node] = sum(kind for kind, count in counts.items() if count > 0)
