"""What a pod asks of cards, as one hashable value.

Memory and cores are per share, never divided by the count. What is not stated is the whole of a card's
memory. How it is read from a pod is in ``reading``; which card serves an ask is decided in ``choose``; what a
pod did get is read in ``records``. Source: ``spec/hami-semantics.md`` 1 and 2, decisions.md 25 to 31.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from volcano_py.scheduler.model.kube.objects import Pod
from volcano_py.scheduler.model.kube.pod import Container

WHOLE_PERCENT: Final = 100
LARGEST_CARD_MIB: Final = 2**24
"""What a node may report; a card with more is refused as garbage."""


class Role(IntEnum):
    """When a container holds its slices: one after another at the start, or for the pod's life."""

    INIT = 0
    SIDECAR = 1
    APP = 2


@dataclass(frozen=True, slots=True)
class ContainerAsk:
    """The cards one container asks for.

    Attributes:
        count: shares, each on another card.
        memory_mib: per share; 0 where *percent* counts.
        percent: per share, of the memory of the card that is taken; 100 where nothing was stated.
        cores: per share, percent; 100 is exclusive use of a card.
        size: the part of a card that is asked for by its number (``Template.size``); 0 for none.
    """

    container: str
    role: Role
    count: int
    memory_mib: int
    percent: int
    cores: int
    size: int = 0

    def memory_on(self, card_mib: int) -> int:
        """MiB of a share on a card with *card_mib*; never 0, which would mean no limit."""
        return self.memory_mib or max(card_mib * self.percent // WHOLE_PERCENT, 1)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which cards a pod accepts; empty accepts all.

    Attributes:
        vendors: whose cards.
        types, not_types: parts of model names, lower case; any of them is enough.
        uuids, not_uuids: exact identities.
        mode_within: the card's mode must occur in this text.
        mode_equal: the card's mode must be this.
    """

    vendors: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    not_types: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    not_uuids: tuple[str, ...] = ()
    mode_within: str = ""
    mode_equal: str = ""

    def accepts_type(self, model: str) -> bool:
        """Whether a card of *model* may be taken."""
        name = model.lower()
        wanted = not self.types or any(part in name for part in self.types)
        return wanted and not any(part in name for part in self.not_types)

    def accepts_vendor(self, vendor: str) -> bool:
        """Whether cards of *vendor* may be taken."""
        return not self.vendors or vendor in self.vendors

    def accepts_mode(self, mode: str) -> bool:
        """Whether a card cut in *mode* may be taken."""
        within = not self.mode_within or mode in self.mode_within
        return within and self.mode_equal in ("", mode)

    def accepts_uuid(self, uuid: str) -> bool:
        """Whether this very card may be taken."""
        return (not self.uuids or uuid in self.uuids) and uuid not in self.not_uuids


ANY_CARD: Final = Selection()


@dataclass(frozen=True, slots=True)
class CardRequest:
    """What a pod asks of cards; part of its class's signature.

    Attributes:
        asks: init containers and sidecars in their order, then app containers; only those that ask.
        card_order: ``binpack`` or ``spread`` where the pod wishes one, else "".
        node_order: the same for nodes.
        untouched: only cards that nobody uses.
        numa: the cards of a container on one NUMA node.
        bare: the resource under which whole cards and nothing else are asked for, which a node without
            registered cards serves as well; "" where only registered cards will do.
        soft: any amounts of cards that can be cut in hardware, instead of such a part.
        linked: the cards of a container that are linked best.
        together: the cards of a container on one NUMA node where that can be.
        weights: of slots, cores and memory in how full a card is; () for memory, then cores.
        rules: bits of the rules by which it shares no card with some others.
        yields: it can be interrupted, so it may have of a card what is handed out twice.
        digest: the hash of all that.
    """

    asks: tuple[ContainerAsk, ...]
    selection: Selection = ANY_CARD
    card_order: str = ""
    node_order: str = ""
    untouched: bool = False
    numa: bool = False
    bare: str = ""
    soft: bool = False
    linked: bool = False
    together: bool = False
    weights: tuple[float, ...] = ()
    rules: int = 0
    yields: bool = False
    digest: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Pods made alike share one request, which is looked up with each of them: hash it once."""
        wishes = (self.card_order, self.node_order, self.untouched, self.numa, self.linked, self.together)
        more = (self.bare, self.soft, self.weights, self.rules, self.yields)
        object.__setattr__(self, "digest", hash((self.asks, self.selection, wishes, more)))

    def __hash__(self) -> int:
        return self.digest


def peak(parts: Iterable[tuple[Role, int]]) -> int:
    """The most that containers hold together at one time, from (role, amount) in starting order."""
    top = running = beside = 0
    for role, held in parts:
        if role == Role.INIT:
            top = max(top, beside + held)
            continue
        running += held
        if role == Role.SIDECAR:
            beside += held
    return max(top, running)


def containers_of(pod: Pod) -> Iterator[tuple[Role, Container, str]]:
    """Role, container and field of all containers in starting order."""
    for at, container in enumerate(pod.spec.init_containers):
        role = Role.SIDECAR if container.is_sidecar else Role.INIT
        yield role, container, f"spec.initContainers[{at}]"
    for at, container in enumerate(pod.spec.containers):
        yield Role.APP, container, f"spec.containers[{at}]"
