"""Cards as columns: what each card of each node offers, what is used, leaving, promised.

A rectangle of node x position rather than one long list: everything that chooses a card looks at the
cards of some nodes, and ``table.memory[nodes]`` is then one gather of shape (n, G). Positions a node
does not have are of type -1 and offer nothing.

Which resource names ask for cards, how a node reports them and how a choice is recorded on a pod is
the device plugin's business; the model meets it as a ``CardSource``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.model.kube.errors import Problem
from volcano_py.scheduler.model.kube.objects import Node, Pod
from volcano_py.scheduler.model.resources import Ints


@dataclass(frozen=True, slots=True)
class CardSpec:
    """One card as its node reports it.

    Attributes:
        uuid: the card's identity.
        memory_mib, cores: what may be handed out (cores in percent, 100 = the card).
        slots: how many pods may share it.
        type: model name, for type selection (``NVIDIA-A100``).
        family: who registered it and how it is recorded (``volcano.sh``, ``hami.io``).
        mode: how it is cut (``hami-core``, ``mig``, ...).
        healthy: takes new slices.
        numa: NUMA node, -1 unknown.
        vendor: whose card it is, as the device plugin names it.
        index: its number on the node.
        minor: number of its device's file, where that is told; -1 where it is not.
        zone: cards of one zone are linked better than others; -1 unknown.
        cut: the parts that its hardware can be cut into; None: any amounts.
        counts_cores: its cores are a number, and no percent of it.
        lent: percent of its memory and cores that pods may have together which can be interrupted.
    """

    uuid: str
    memory_mib: int
    cores: int
    slots: int
    type: str
    family: str
    mode: str = "hami-core"
    healthy: bool = True
    numa: int = -1
    vendor: str = ""
    index: int = 0
    minor: int = -1
    zone: int = -1
    cut: Hashable = None
    counts_cores: bool = False
    lent: int = 100


@dataclass(frozen=True, slots=True)
class Slice:
    """A container's part of a card (memory in MiB, cores in percent), of a cut one which instance."""

    container: str
    card: int
    uuid: str
    memory_mib: int
    cores: int
    instance: str = ""


@dataclass(frozen=True, slots=True)
class CardHold:
    """What a pod takes of one card over its life (init containers and sidecars weighed in).

    Attributes:
        parts: bits of the instances it takes of a card that is cut in hardware.
        tags: bits of the rules by which others keep off the card.
    """

    card: int
    memory_mib: int
    cores: int
    slots: int
    parts: int = 0
    tags: int = 0


@dataclass(frozen=True, slots=True)
class CardChoice:
    """The cards chosen for one pod.

    Attributes:
        slices: what each container gets, in container order.
        holds: what is booked, one entry a card.
        charge: what queue and job are charged with, if it differs from the class's charge
            (resource, base units), else None.
        problems: what of a record was doubtful.
    """

    slices: tuple[Slice, ...]
    holds: tuple[CardHold, ...]
    charge: tuple[tuple[str, int], ...] | None = None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class PodShape:
    """A pod's request with its card asks taken apart (base units).

    Attributes:
        problems: what of the ask was doubtful but usable.
    """

    request: Mapping[str, int]
    charge: Mapping[str, int]
    cards: Hashable = None
    problems: tuple[Problem, ...] = ()


class CardSource(Protocol):
    """What the model asks a device plugin about objects."""

    @property
    def aliases(self) -> Mapping[str, str]:
        """Resource names that mean the same as another one."""

    @property
    def measures(self) -> Mapping[str, str]:
        """Resource names that queues are charged under -> the card's ``memory``, ``cores`` or ``slots``."""

    @property
    def handshakes(self) -> tuple[str, ...]:
        """Beginnings of node annotations that device plugins rewrite all the time and nobody reads."""

    @property
    def config_map(self) -> str:
        """The ConfigMap ("namespace/name") that tells of cards; "" for none."""

    def sees(self, largest_mib: int) -> bool:
        """The largest card of the cluster has this memory; True if earlier shapes are out of date."""

    def configure(self, name: str, data: Mapping[str, str] | None) -> bool:
        """ConfigMap *name* ("namespace/name") has *data*; None: it is gone.

        True if what was read of nodes and pods before is out of date. Raises ``ObjectError`` on garbage.
        """

    def offers(self, amounts: Mapping[str, int], specs: Sequence[CardSpec]) -> Mapping[str, int]:
        """What a node with *specs* that states *amounts* has in its columns (base units)."""

    def shape(self, pod: Pod, request: Mapping[str, int]) -> PodShape:
        """Take *pod*'s card asks out of its *request*; raises ``ObjectError`` on garbage."""

    def at_gate(self, amounts: Mapping[str, int]) -> Mapping[str, int]:
        """What counts before a group is let in of the *amounts* that it states as its minimum."""

    def cards_of(self, node: Node) -> Sequence[CardSpec]:
        """The cards *node* reports; raises ``ObjectError`` on garbage."""

    def recorded(self, pod: Pod, cards: Sequence[CardSpec]) -> CardChoice | None:
        """What a placed *pod* holds of its node's *cards* according to its annotations."""

    def record(
        self, pod: Pod, slices: Sequence[Slice], node: str, cards: Sequence[CardSpec], now: float
    ) -> Mapping[str, str]:
        """Annotations that tell the node's agent and a restarted scheduler what *pod* got.

        Args:
            pod: who is bound.
            slices: what it gets of *cards*; nothing is written where there are none.
            node: where it is bound to, with these *cards*.
            cards: the node's cards.
            now: epoch seconds.
        """


class NoCards:
    """The source where no device plugin is configured: card names are plain resources."""

    aliases: Mapping[str, str] = MappingProxyType({})
    measures: Mapping[str, str] = MappingProxyType({})
    handshakes: tuple[str, ...] = ()
    config_map = ""

    def sees(self, largest_mib: int) -> bool:
        """Shapes never depend on cards."""
        return False

    def configure(self, name: str, data: Mapping[str, str] | None) -> bool:
        """No ConfigMap says anything of cards."""
        return False

    def offers(self, amounts: Mapping[str, int], specs: Sequence[CardSpec]) -> Mapping[str, int]:
        """What the node states."""
        return amounts

    def shape(self, pod: Pod, request: Mapping[str, int]) -> PodShape:
        """The request as it is."""
        return PodShape(request, request)

    def at_gate(self, amounts: Mapping[str, int]) -> Mapping[str, int]:
        """All of it."""
        return amounts

    def cards_of(self, node: Node) -> Sequence[CardSpec]:
        """No cards."""
        return ()

    def recorded(self, pod: Pod, cards: Sequence[CardSpec]) -> CardChoice | None:
        """No slices."""
        return None

    def record(
        self, pod: Pod, slices: Sequence[Slice], node: str, cards: Sequence[CardSpec], now: float
    ) -> Mapping[str, str]:
        """Nothing to tell."""
        return {}


def moved(choice: CardChoice, old: Sequence[CardSpec], new: Sequence[CardSpec]) -> CardChoice:
    """*choice* among the cards *old* of a node that now reports *new*; what is gone is dropped."""
    found = {spec.uuid: at for at, spec in enumerate(new)}
    at = {before: found[spec.uuid] for before, spec in enumerate(old) if spec.uuid in found}
    slices = tuple(replace(part, card=at[part.card]) for part in choice.slices if part.card in at)
    holds = tuple(replace(hold, card=at[hold.card]) for hold in choice.holds if hold.card in at)
    return replace(choice, slices=slices, holds=holds)


_KINDS: Final = ("used", "leaving", "promised")
_AMOUNTS: Final = ("memory", "cores", "slots")
_BITS: Final = ("parts", "tags")


class CardTable:
    """All cards, (N, G) arrays with node rows as in ``NodeTable``.

    Attributes:
        memory, cores, slots: (N, G) int64 capacities (MiB, percent, pods).
        used_*, leaving_*, promised_*: (N, G) int64 of the same; ``used`` includes ``leaving``.
        *_parts, *_tags: (N, G) int64, the bits that at least one hold of that kind has.
        type: (N, G) int32 index into ``types``; -1 where no card is.
        specs: node row -> its cards' specs.
        moving: choices booked as leaving or promised, all nodes together.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.positions = 0
        self.moving = 0
        self.types: list[str] = []
        self.specs: dict[int, tuple[CardSpec, ...]] = {}
        self.type: NDArray[np.int32] = np.zeros((0, 0), np.int32)
        empty: Ints = np.zeros((0, 0), np.int64)  # stands for all of them until the first card comes
        self.memory = self.cores = self.slots = empty
        self.used_memory = self.used_cores = self.used_slots = empty
        self.leaving_memory = self.leaving_cores = self.leaving_slots = empty
        self.promised_memory = self.promised_cores = self.promised_slots = empty
        self.used_parts = self.leaving_parts = self.promised_parts = empty
        self.used_tags = self.leaving_tags = self.promised_tags = empty
        self._held_bits: dict[tuple[str, int, int], Counter[int]] = {}

    def set_cards(self, row: int, specs: Sequence[CardSpec]) -> None:
        """Node *row* reports *specs*; what is booked on its positions stays booked."""
        self._reach(row + 1, len(specs))
        if specs:
            self.specs[row] = tuple(specs)
        else:  # a node without cards is as one that never had any
            self.specs.pop(row, None)
        for array in (self.memory, self.cores, self.slots):
            array[row] = 0
        self.type[row] = -1
        for position, spec in enumerate(specs):
            self.memory[row, position] = spec.memory_mib
            self.cores[row, position] = spec.cores
            self.slots[row, position] = spec.slots
            if spec.type not in self.types:
                self.types.append(spec.type)
            self.type[row, position] = self.types.index(spec.type)

    def book(self, kind: str, row: int, choice: CardChoice, sign: int) -> None:
        """Add (sign 1) or take back (-1) *choice* on node *row* under *kind* (used, leaving, promised)."""
        if kind != "used":
            self.moving += sign
        for hold in choice.holds:
            self._reach(row + 1, hold.card + 1)
            memory, cores, slots = self._books(kind)
            memory[row, hold.card] += sign * hold.memory_mib
            cores[row, hold.card] += sign * hold.cores
            slots[row, hold.card] += sign * hold.slots
            if hold.parts:
                self._book_bits(f"{kind}_parts", row, hold.card, hold.parts, sign)
            if hold.tags:
                self._book_bits(f"{kind}_tags", row, hold.card, hold.tags, sign)

    def _books(self, kind: str) -> tuple[Ints, Ints, Ints]:
        """Memory, cores and slots of *kind*."""
        if kind == "used":
            return self.used_memory, self.used_cores, self.used_slots
        if kind == "leaving":
            return self.leaving_memory, self.leaving_cores, self.leaving_slots
        return self.promised_memory, self.promised_cores, self.promised_slots

    def _book_bits(self, what: str, row: int, card: int, bits: int, sign: int) -> None:
        """Two holds may have a bit in common, in records that others wrote; it is free when both are gone."""
        counts = self._held_bits.setdefault((what, row, card), Counter())
        for bit in range(bits.bit_length()):
            if bits >> bit & 1:
                counts[bit] += sign
        getattr(self, what)[row, card] = sum(1 << bit for bit, count in counts.items() if count > 0)

    def _reach(self, rows: int, positions: int) -> None:
        """Grow so that node row ``rows - 1`` and position ``positions - 1`` exist."""
        if rows <= self.rows and positions <= self.positions:
            return
        rows = max(self.rows, 16, 2 * rows if rows > self.rows else 0)
        positions = max(self.positions, positions)
        for name, array in self._arrays().items():
            wide = np.full((rows, positions), -1 if name == "type" else 0, array.dtype)
            wide[: self.rows, : self.positions] = array
            setattr(self, name, wide)
        self.rows, self.positions = rows, positions

    def _arrays(self) -> dict[str, NDArray[Any]]:
        booked = [f"{kind}_{amount}" for kind in _KINDS for amount in (*_AMOUNTS, *_BITS)]
        return {name: getattr(self, name) for name in ("type", *_AMOUNTS, *booked)}
