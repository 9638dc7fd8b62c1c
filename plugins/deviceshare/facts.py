"""What the cards of all nodes are, whatever is booked on them: kept until a node changes.

Neighbours: ``room`` for what is free, ``asks`` for selections, ``wiring`` for how cards are linked.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

import numpy as np

from volcano_py.plugins.deviceshare import names
from volcano_py.plugins.deviceshare.asks import ANY_CARD, Selection
from volcano_py.plugins.deviceshare.catalogue import STANDARD, Catalogue
from volcano_py.scheduler.model.cards import CardSpec
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.resources import Ints, Mask, Rows32

UNKNOWN_MODEL: Final = -1


class CardFacts:
    """Arrays over node rows (N, the tables' capacity) and card positions (G).

    Attributes:
        stamp: state of the tables they were made from.
        positions: G; 0 where no node registers cards.
        cards: (N,) cards registered.
        size: (N,) MiB of the largest card.
        sizes: the different values of it, in order.
        model: (N,) int32, id of the first card's model; -1 without cards.
        usable: (N, G) there, healthy, not cordoned, and cut in a known way.
        numa: (N, G) NUMA node, -1 unknown.
        cuts: the ways in which cards are cut in hardware.
        cut: (N, G) which of *cuts*, counted from 1; 0 is none. None where no card is cut.
        lent: (N, G) percent of a card for pods that can be interrupted. None where all are 100.
    """

    def __init__(self, state: ClusterState, catalogue: Catalogue = STANDARD) -> None:
        table, capacity = state.cards, len(state.nodes.version)
        self.stamp = stamp_of(state)
        self.catalogue = catalogue
        self.positions = table.positions
        shape = (capacity, table.positions)
        self.cards: Ints = np.zeros(capacity, np.int64)
        self.size: Ints = np.zeros(capacity, np.int64)
        self.model: Rows32 = np.full(capacity, UNKNOWN_MODEL, np.int32)
        self.usable: Mask = np.zeros(shape, np.bool_)
        self.numa: Ints = np.full(shape, -1, np.int64)
        self.cuts: list[Hashable] = []
        self.cut: Ints | None = None
        self.lent: Ints | None = None
        # By name, so that ids, and what policies make of their order, don't depend on who came first.
        self.types = tuple(sorted({spec.type for specs in table.specs.values() for spec in specs}))
        ids = {name: number for number, name in enumerate(self.types)}
        self.specs = table.specs
        self.nodes = state.nodes.objects
        self._where: dict[str, list[tuple[int, int]]] | None = None
        self._accepted: dict[Selection, Mask] = {}
        self._eligible: dict[Selection, Mask] = {ANY_CARD: self.usable}
        self._bare: dict[str, Mask] = {}
        self._own: dict[tuple[str, ...], Mask] = {}
        for row, specs in table.specs.items():
            if specs:
                self._describe(row, specs)
                self.model[row] = ids[specs[0].type]
        self.sizes: list[int] = np.unique(self.size[self.cards > 0]).tolist()

    def eligible(self, selection: Selection) -> Mask:
        """(N, G) usable cards that *selection* accepts."""
        known = self._eligible.get(selection)
        if known is None:
            known = self._eligible[selection] = self.usable & self.accepted(selection)
        return known

    def accepted(self, selection: Selection) -> Mask:
        """(N, G) cards that *selection* accepts, usable or not."""
        known = self._accepted.get(selection)
        if known is None:
            known = self._accepted[selection] = self._accept(selection)
        return known

    def own(self, vendors: tuple[str, ...]) -> Mask:
        """(N,) nodes with registered cards of *vendors*."""
        if vendors not in self._own:
            self._own[vendors] = self.accepted(Selection(vendors)).sum(axis=1) > 0
        return self._own[vendors]

    def bare(self, resource: str) -> Mask:
        """(N,) nodes without a register of those cards: *resource* there is an ordinary counted one."""
        known = self._bare.get(resource)
        if known is None:
            known = self._bare[resource] = self._find_bare(resource)
        return known

    def models(self, selection: Selection) -> frozenset[int] | None:
        """Ids of the models that *selection* accepts; None accepts any."""
        if not (selection.types or selection.not_types):
            return None
        return frozenset(i for i, name in enumerate(self.types) if selection.accepts_type(name))

    def cards_by_model(self) -> dict[int, int]:
        """Number of cards by model id."""
        counts = np.bincount(self.model[self.cards > 0], self.cards[self.cards > 0], len(self.types))
        return {model: int(count) for model, count in enumerate(counts.tolist()) if count}

    def _describe(self, row: int, specs: tuple[CardSpec, ...]) -> None:
        self.cards[row] = len(specs)
        self.size[row] = max(spec.memory_mib for spec in specs)
        for at, spec in enumerate(specs):
            self.usable[row, at] = spec.healthy and (spec.mode != names.MIG or spec.cut is not None)
            self.numa[row, at] = spec.numa
            if spec.cut is not None:
                self._note_cut(row, at, spec.cut)
            if spec.lent != names.WHOLE_CORES:
                if self.lent is None:
                    self.lent = np.full(self.usable.shape, names.WHOLE_CORES, np.int64)
                self.lent[row, at] = spec.lent

    def _note_cut(self, row: int, at: int, cut: Hashable) -> None:
        if cut not in self.cuts:
            self.cuts.append(cut)
        if self.cut is None:
            self.cut = np.zeros(self.usable.shape, np.int64)
        self.cut[row, at] = self.cuts.index(cut) + 1

    def _find_bare(self, resource: str) -> Mask:
        backends = self.catalogue.askings[resource].backends
        keys = {register.key for backend in backends for register in backend.registers}
        vendors = {backend.vendor for backend in backends}
        mask = np.zeros(len(self.cards), np.bool_)
        for row, node in enumerate(self.nodes):
            mask[row] = node is not None and keys.isdisjoint(node.metadata.annotations)
        for row, specs in self.specs.items():
            mask[row] &= all(spec.vendor not in vendors for spec in specs)
        return mask

    def _accept(self, selection: Selection) -> Mask:
        mask = np.zeros(self.usable.shape, np.bool_)
        for row, at in self._candidates(selection):
            spec = self.specs[row][at]
            mask[row, at] = (
                selection.accepts_vendor(spec.vendor)
                and selection.accepts_uuid(spec.uuid)
                and selection.accepts_type(spec.type)
                and selection.accepts_mode(spec.mode)
            )
        return mask

    def _candidates(self, selection: Selection) -> Iterable[tuple[int, int]]:
        """The cards worth looking at: those named, or all."""
        if self._where is None:
            self._where = {}
            for row, specs in self.specs.items():
                for at, spec in enumerate(specs):
                    self._where.setdefault(spec.uuid, []).append((row, at))
        if selection.uuids:
            return [place for uuid in selection.uuids for place in self._where.get(uuid, ())]
        return [place for places in self._where.values() for place in places]


def stamp_of(state: ClusterState) -> tuple[int, int, int]:
    """Changes whenever a node or its cards do."""
    return state.nodes.static_epoch, state.cards.positions, len(state.nodes.version)
