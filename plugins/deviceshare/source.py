"""How pods and nodes speak of cards: the model's ``CardSource`` for NVIDIA card slices.

What a node must have in its plain columns is the number of shares, under the name the pod used. Memory,
percentage and cores leave the request: only the cards can say whether they fit. A node with registered
cards offers its shares under both names, so an ask in either spelling meets it; a node without them
still serves ``nvidia.com/gpu: N`` as the counted resource that it is. So the plain resource fit is exact
on both kinds of nodes, and the cards' own check comes on top where cards are.

Queues and jobs are charged shares, memory x cards and cores x cards, under both names of each meaning, and
node totals are given under both too: a cap holds however it and the pods are spelled. Whole cards that
may end on nodes without registered cards are charged memory and cores only where the cluster has any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from volcano_py.crds.cards.records import Part
from volcano_py.plugins.deviceshare import names
from volcano_py.plugins.deviceshare.asks import CardRequest, Role, card_request, containers_of, peak
from volcano_py.plugins.deviceshare.charges import ask_totals, bare_charge, charge_with, slice_totals, spelled
from volcano_py.plugins.deviceshare.records import (
    RecordError,
    annotations_for,
    decode,
    holds_of,
    slices_of,
    written_family,
)
from volcano_py.plugins.deviceshare.register import cards_of
from volcano_py.scheduler.model.cards import CardChoice, CardHold, CardSpec, PodShape, Slice
from volcano_py.scheduler.model.kube.errors import Problem, child
from volcano_py.scheduler.model.kube.objects import Node, Pod
from volcano_py.scheduler.model.kube.request import pod_request

_NOTES: Final = "metadata.annotations"


class DeviceShareSource:
    """See the module.

    Attributes:
        aliases: further spellings of names that books are kept under.
        measures: see ``CardSource.measures``.
        largest_mib: memory of the largest registered card; 0 where there is none.
    """

    aliases: Mapping[str, str] = names.ALIASES
    measures: Mapping[str, str] = names.MEASURES
    handshakes: tuple[str, ...] = names.HANDSHAKES

    def __init__(self) -> None:
        self.largest_mib = 0

    def sees(self, largest_mib: int) -> bool:
        """Note the largest card of the cluster; True if shapes made before are out of date."""
        changed = largest_mib != self.largest_mib
        self.largest_mib = largest_mib
        return changed

    def shape(self, pod: Pod, request: Mapping[str, int]) -> PodShape:
        """See ``CardSource.shape``."""
        if names.ALL.isdisjoint(request):
            return PodShape(request, request)
        cards, problems = card_request(pod)
        plain = {name: amount for name, amount in request.items() if name not in names.ALL}
        if cards is None:
            return PodShape(plain, plain, None, problems)
        counts = {name: request[name] for name in names.COUNT if request.get(name)}
        charge = plain | self._expected(cards)
        return PodShape(plain | counts, charge, cards, problems)

    def at_gate(self, amounts: Mapping[str, int]) -> Mapping[str, int]:
        """See ``CardSource.at_gate``: a percentage is an amount only once a card is chosen."""
        return {name: amount for name, amount in amounts.items() if name not in names.NOT_OFFERED}

    def cards_of(self, node: Node) -> Sequence[CardSpec]:
        """See ``CardSource.cards_of``."""
        return cards_of(node)

    def offers(self, amounts: Mapping[str, int], specs: Sequence[CardSpec]) -> Mapping[str, int]:
        """See ``CardSource.offers``."""
        if not specs:
            return amounts
        return {
            **amounts,
            **spelled(
                (
                    sum(spec.slots for spec in specs),
                    sum(spec.memory_mib for spec in specs),
                    sum(spec.cores for spec in specs),
                )
            ),
        }

    def recorded(self, pod: Pod, cards: Sequence[CardSpec]) -> CardChoice | None:
        """See ``CardSource.recorded``."""
        request, _ = card_request(pod)
        if request is None:
            return None
        form = written_family(pod.metadata.annotations, cards[0].family if cards else "")
        if form is None:
            if not cards:
                return self._without_cards(pod, request)
            return unknown_cards(request, cards, "the pod has no record of its cards")
        try:
            pairs = decode(pod, form, request.asks)
        except RecordError as error:
            return unknown_cards(request, cards, str(error)) if cards else None
        return self._booked(pod, child(_NOTES, form.keys.allocated), pairs, cards)

    def record(
        self, pod: Pod, slices: Sequence[Slice], node: str, cards: Sequence[CardSpec], now: float
    ) -> Mapping[str, str]:
        """See ``CardSource.record``: in the form of whoever registered the cards."""
        if not slices:
            return {}
        return annotations_for(pod, slices, node, cards[slices[0].card].family, now)

    def _without_cards(self, pod: Pod, request: CardRequest) -> CardChoice | None:
        """A pod on a node that reports no cards: a plain whole card, or one whose cards are gone."""
        if not (request.plain and self.largest_mib):
            return None
        return CardChoice((), (), charge_with(pod_request(pod), bare_charge(request)))

    def _booked(
        self, pod: Pod, field: str, pairs: list[tuple[str, Part]], cards: Sequence[CardSpec]
    ) -> CardChoice:
        """What a readable record books; a card that is gone is named and keeps its charge."""
        slices, lost = slices_of(pairs, cards)
        roles = {container.name: role for role, container, _ in containers_of(pod)}
        order = {name: at for at, name in enumerate(roles)}

        def start(part: Slice) -> int:  # records have orders of their own
            return order.get(part.container, len(order))

        slices.sort(key=start)
        problems = [Problem(field, f"card {part.uuid} is not on the node") for part in lost if cards]
        if any(not part.container for part in slices):
            problems.append(Problem(field, "does not match what the containers ask; all of it is booked"))
        charge = None
        if all(part.memory_mib for part in lost):
            told = sorted([*slices, *lost], key=start)
            held = slice_totals([(roles.get(part.container, Role.APP), part) for part in told])
            charge = charge_with(pod_request(pod), spelled(held))
        return CardChoice(tuple(slices), holds_of(slices, roles), charge, tuple(problems))

    def _expected(self, cards: CardRequest) -> dict[str, int]:
        """The charge before cards are chosen: a percentage is one of the largest card."""
        if cards.plain and not self.largest_mib:
            return bare_charge(cards)
        return spelled(ask_totals(cards.asks, self.largest_mib))


def unknown_cards(request: CardRequest, cards: Sequence[CardSpec], why: str) -> CardChoice:
    """A placed pod whose cards can't be told: any of *cards* may be its, so each is booked for it."""
    holds = []
    for at, spec in enumerate(cards):
        memory = peak((ask.role, ask.memory_on(spec.memory_mib)) for ask in request.asks)
        cores = peak((ask.role, ask.cores) for ask in request.asks)
        slots = peak((ask.role, 1) for ask in request.asks)
        holds.append(
            CardHold(at, min(memory, spec.memory_mib), min(cores, spec.cores), min(slots, spec.slots))
        )
    problem = Problem(_NOTES, f"{why}; its ask is booked on every card of the node")
    return CardChoice((), tuple(holds), None, (problem,))
