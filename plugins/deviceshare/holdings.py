"""What a readable record books on a node's cards, and what is booked where nobody can tell.

Neighbours: ``records`` for the text, ``slices`` for what a fresh choice books.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from volcano_py.crds.cards.records import Part
from volcano_py.plugins.deviceshare.asks import CardRequest, Role, containers_of, peak
from volcano_py.plugins.deviceshare.backend import Chip, PerSlot
from volcano_py.plugins.deviceshare.catalogue import Catalogue
from volcano_py.plugins.deviceshare.charges import charge_with, charged
from volcano_py.plugins.deviceshare.mig import Geometry, label_of
from volcano_py.plugins.deviceshare.rounding import told_parts
from volcano_py.plugins.deviceshare.slices import holds_of
from volcano_py.scheduler.model.cards import CardChoice, CardHold, CardSpec, Slice
from volcano_py.scheduler.model.kube.errors import Problem
from volcano_py.scheduler.model.kube.objects import Pod
from volcano_py.scheduler.model.kube.request import pod_request

_NOTES: Final = "metadata.annotations"
NO_CARD: Final = -1
"""Position of a recorded card that the node does not report."""


def booked(
    pod: Pod,
    request: CardRequest,
    field: str,
    pairs: list[tuple[str, Part]],
    cards: Sequence[CardSpec],
    vendor: str,
    catalogue: Catalogue,
) -> CardChoice:
    """What a record of *vendor*'s cards books; a card that is gone is named and keeps its charge.

    Once all init containers have ended, only what the others hold is booked.
    """
    slices, lost = slices_of(pairs, cards, soft=request.soft)
    roles = {container.name: role for role, container, _ in containers_of(pod)}
    order = {name: at for at, name in enumerate(roles)}

    def start(part: Slice) -> int:  # records have orders of their own
        return order.get(part.container, len(order))

    slices.sort(key=start)
    instances, unknown = _instances(slices, cards)
    over = {name for name, role in roles.items() if role == Role.INIT} if pod.init_is_over else set()
    running = [part for part in slices if part.container not in over or _keeps(cards[part.card])]
    problems = [Problem(field, f"card {part.uuid} is not on the node") for part in lost if cards]
    if any(not part.container for part in slices):
        problems.append(Problem(field, "does not match what the containers ask; all of it is booked"))
    charge = None
    if all(part.memory_mib for part in lost):
        held = sorted([*running, *(part for part in lost if part.container not in over)], key=start)
        parts = [(roles.get(part.container, Role.APP), part) for part in held]
        vendors = {part.card: cards[part.card].vendor if part.card != NO_CARD else vendor for part in held}
        charge = charge_with(
            pod_request(pod), charged(parts, vendors, catalogue, request.selection.vendors), catalogue
        )
    told = "instance is not known; all of the card is booked"
    problems += [Problem(field, f"card {uuid}: {told}") for uuid in unknown]
    problems += told_parts(request, slices, cards, catalogue)
    holds = holds_of(running, roles, instances, request.rules)
    return CardChoice(tuple(slices), holds, charge, tuple(problems))


def _keeps(card: CardSpec) -> bool:
    """Whether an instance stays on the *card* for the pod's life, whoever of its containers had it."""
    return isinstance(card.cut, Geometry)


def slices_of(
    pairs: Iterable[tuple[str, Part]], cards: Sequence[CardSpec], *, soft: bool = False
) -> tuple[list[Slice], list[Slice]]:
    """Recorded shares as slices of the node's *cards*, and those of cards that are not among them."""
    position = {spec.uuid: at for at, spec in enumerate(cards)}
    slices: list[Slice] = []
    lost: list[Slice] = []
    for container, part in pairs:
        at = position.get(part.card)
        if at is None:
            lost.append(Slice(container, NO_CARD, part.card, part.memory_mib, part.cores))
            continue
        spec = cards[at]
        memory = part.memory_mib or spec.memory_mib  # 0 lets the container take all of it
        cores = part.cores
        if isinstance(spec.cut, Chip) and not soft:
            held = spec.cut.held(memory)
            memory, cores = held.memory_mib, held.cores
        if isinstance(spec.cut, PerSlot):
            memory = part.memory_mib or spec.cut.memory_mib
        label = ""
        if isinstance(spec.cut, Geometry):
            in_brackets = part.uuid.partition("[")[2].removesuffix("]")
            label = label_of(part.cores) if spec.cut.by_mask else in_brackets
        slices.append(Slice(container, at, part.card, memory, cores, label))
    return slices, lost


def _instances(slices: list[Slice], cards: Sequence[CardSpec]) -> tuple[dict[int, int], list[str]]:
    """Bits of the instances by card, and the cards of which some can't be told.

    A label in *slices* is replaced by the option's own name.
    """
    bits: dict[int, int] = {}
    unknown: list[str] = []
    for at, part in enumerate(slices):
        geometry = cards[part.card].cut
        if not isinstance(geometry, Geometry):
            bits.setdefault(part.card, 0)
            continue
        option = geometry.find(part.instance)
        if option is None:
            unknown.append(part.uuid)
            bits[part.card] = geometry.everything
            continue
        kind = geometry.options[option]
        bits[part.card] = bits.get(part.card, 0) | 1 << option
        slices[at] = Slice(part.container, part.card, part.uuid, kind.memory_mib, kind.cores, kind.key)
    return bits, unknown


def unknown_cards(request: CardRequest, cards: Sequence[CardSpec], why: str) -> CardChoice:
    """A placed pod whose cards can't be told: any of *cards* may be its, so each is booked for it."""
    holds = []
    for at, spec in enumerate(cards):
        if not request.selection.accepts_vendor(spec.vendor):
            continue
        memory = peak((ask.role, ask.memory_on(spec.memory_mib)) for ask in request.asks)
        cores = peak((ask.role, ask.cores) for ask in request.asks)
        slots = peak((ask.role, 1) for ask in request.asks)
        parts = spec.cut.everything if isinstance(spec.cut, Geometry) else 0
        if isinstance(spec.cut, Chip) and not request.soft:
            held = spec.cut.held(memory)
            memory, cores = held.memory_mib, held.cores
        memory, cores = min(memory, spec.memory_mib), min(cores, spec.cores)
        holds.append(CardHold(at, memory, cores, min(slots, spec.slots), parts, request.rules))
    problem = Problem(_NOTES, f"{why}; its ask is booked on every card of the node")
    return CardChoice((), tuple(holds), None, (problem,))
