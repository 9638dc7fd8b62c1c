"""How pods and nodes speak of cards: the model's ``CardSource``.

What a node must have in its plain columns is the number of shares, under the name the pod used. Memory,
percentage and cores leave the request: only the cards can say whether they fit. A node with registered
cards offers its shares under all names of its vendor, so an ask in any spelling meets it; a node without
them still serves ``nvidia.com/gpu: N`` as the counted resource that it is. So the plain resource fit is exact
on both kinds of nodes, and the cards' own check comes on top where cards are.

Queues and jobs are charged shares, memory x cards and cores x cards, under all names of each meaning, and
node totals are given under all too: a cap holds however it and the pods are spelled. Whole cards that
may end on nodes without registered cards are charged memory and cores only where the cluster has any.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from volcano_py.crds.annotations import PREEMPTABLE
from volcano_py.plugins.deviceshare import names
from volcano_py.plugins.deviceshare.asks import CardRequest
from volcano_py.plugins.deviceshare.catalogue import STANDARD, Books, Catalogue
from volcano_py.plugins.deviceshare.charges import ask_totals, bare_charge, charge_with, spelled
from volcano_py.plugins.deviceshare.deviceconfig import KEY, parse
from volcano_py.plugins.deviceshare.holdings import booked, unknown_cards
from volcano_py.plugins.deviceshare.reading import card_request
from volcano_py.plugins.deviceshare.records import RecordError, annotations_for, decode, written_form
from volcano_py.plugins.deviceshare.register import cards_of
from volcano_py.plugins.deviceshare.rounding import cut_asks, told_rounding
from volcano_py.scheduler.model.cards import CardChoice, CardSpec, PodShape, Slice
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem, child
from volcano_py.scheduler.model.kube.objects import Node, Pod
from volcano_py.scheduler.model.kube.request import pod_request
from volcano_py.scheduler.model.notes import as_flag, said

_NOTES: Final = "metadata.annotations"
_FIRST_VENDORS: Final = ("nvidia",)


_MOST_SHAPES: Final = 2**14
_encode = msgspec.msgpack.Encoder().encode


def _not_served(amounts: Mapping[str, int], counts: Sequence[str]) -> dict[str, int]:
    """Names among *counts* that the kubelet has nothing of, though of others: it refuses who asks by them.

    Where it has nothing of any, the plugin is away for a while, and the node is none the smaller.
    """
    stated = {name: amounts[name] for name in counts if name in amounts}
    return {name: 0 for name, amount in stated.items() if not amount} if any(stated.values()) else {}


def _yields(pod: Pod) -> bool:
    """Whether the pod itself says that it can be interrupted."""
    return as_flag(said(pod.metadata.labels, pod.metadata.annotations, PREEMPTABLE)) is True


class DeviceShareSource:
    """See the module.

    Attributes:
        catalogue: the backends.
        rules: labels of pods; those that have all of a rule's labels share no card.
        config_map: "namespace/name" of the device configuration, out of whose document *configured* makes
            the catalogue; "" for none.
        linked: all pods' cards are chosen by their links, as if they asked for it.
        measures: see ``CardSource.measures``; of the vendors whose cards were seen.
        largest_mib: memory of the largest registered card; 0 where there is none.
    """

    handshakes: tuple[str, ...] = names.HANDSHAKES

    def __init__(
        self,
        catalogue: Catalogue = STANDARD,
        rules: Sequence[Mapping[str, str]] = (),
        config_map: str = "",
        configured: Callable[[Mapping[str, Any]], Catalogue] | None = None,
        *,
        linked: bool = False,
    ) -> None:
        self.catalogue = self._unconfigured = catalogue
        self.rules = tuple(rules)
        self.config_map = config_map
        self.linked = linked
        self._configured = configured
        self.largest_mib = 0
        self._seen = set(_FIRST_VENDORS)
        known = sorted(self._seen & catalogue.backends.keys())
        self.measures: Mapping[str, str] = catalogue.measures(known)
        self._shapes: dict[Hashable, PodShape] = {}

    @property
    def aliases(self) -> Mapping[str, str]:
        """Further spellings of names that books are kept under."""
        return self.catalogue.aliases

    def sees(self, largest_mib: int) -> bool:
        """Note the largest card of the cluster; True if shapes made before are out of date."""
        changed = largest_mib != self.largest_mib
        self.largest_mib = largest_mib
        return changed

    def configure(self, name: str, data: Mapping[str, str] | None) -> bool:
        """See ``CardSource.configure``."""
        if name != self.config_map or self._configured is None:
            return False
        catalogue = self._unconfigured
        if data is not None and KEY in data:
            try:
                catalogue = self._configured(parse(data[KEY]))
            except ValueError as error:
                raise ObjectError(Problem(child("data", KEY), str(error))) from error
        self.catalogue = catalogue
        self.measures = catalogue.measures(sorted(self._seen & catalogue.backends.keys()))
        self._shapes.clear()
        return True

    def shape(self, pod: Pod, request: Mapping[str, int]) -> PodShape:
        """See ``CardSource.shape``."""
        resources = self.catalogue.resources
        if resources.isdisjoint(request):
            return PodShape(request, request)
        key = (*self._key(pod), tuple(request.items()), self.largest_mib)
        known = self._shapes.get(key)
        if known is None:
            if len(self._shapes) > _MOST_SHAPES:
                self._shapes.clear()
            known = self._shapes[key] = self._shape(pod, request)
        return known

    def _key(self, pod: Pod) -> tuple[Hashable, ...]:
        """All of *pod* that decides what it asks of cards: pods made alike are read once."""
        spec, notes, wishes = pod.spec, pod.metadata.annotations, self.catalogue.wishes
        both = (*spec.init_containers, *spec.containers)
        containers = _encode([(c.name, c.restart_policy, c.resources) for c in both])
        wished = tuple((key, notes[key]) for key in sorted(notes.keys() & wishes))
        rules = self._rules_of(pod)
        return containers, len(spec.init_containers), wished, bool(spec.node_name), rules, _yields(pod)

    def _shape(self, pod: Pod, request: Mapping[str, int]) -> PodShape:
        resources = self.catalogue.resources
        cards, problems = self._request(pod)
        plain = {name: amount for name, amount in request.items() if name not in resources}
        if cards is None:
            return PodShape(plain, plain, None, problems)
        counts = {n: amount for n, amount in request.items() if amount and n in self.catalogue.counts}
        charge = plain | self._expected(cards)
        problems += tuple(told_rounding(cards, self.catalogue))
        return PodShape(plain | counts, charge, cards, problems)

    def at_gate(self, amounts: Mapping[str, int]) -> Mapping[str, int]:
        """See ``CardSource.at_gate``: a percentage is an amount only once a card is chosen."""
        unknown = self.catalogue.not_offered
        return {name: amount for name, amount in amounts.items() if name not in unknown}

    def cards_of(self, node: Node) -> Sequence[CardSpec]:
        """See ``CardSource.cards_of``."""
        specs = cards_of(node, self.catalogue)
        new = {spec.vendor for spec in specs} - self._seen
        if new:
            self._seen |= new
            self.measures = self.catalogue.measures(sorted(self._seen))
        return specs

    def offers(self, amounts: Mapping[str, int], specs: Sequence[CardSpec]) -> Mapping[str, int]:
        """See ``CardSource.offers``."""
        if not specs:
            return amounts
        # Under names of any vendor's cards only some nodes state amounts; no totals can be made of these.
        unknown = self.catalogue.not_offered
        offered = {name: amount for name, amount in amounts.items() if name not in unknown}
        totals: dict[str, tuple[int, int, int]] = {}
        for spec in specs:
            slots, memory, cores = totals.get(spec.vendor, (0, 0, 0))
            totals[spec.vendor] = (slots + spec.slots, memory + spec.memory_mib, cores + spec.cores)
        for vendor, total in totals.items():
            books = self.catalogue.books(vendor)
            offered |= spelled(total, books) | _not_served(amounts, books[0])
        return offered

    def recorded(self, pod: Pod, cards: Sequence[CardSpec]) -> CardChoice | None:
        """See ``CardSource.recorded``."""
        request, _ = self._request(pod)
        if request is None:
            return None
        backends = [self.catalogue.backends[vendor] for vendor in request.selection.vendors]
        found = written_form(pod.metadata.annotations, backends, cards)
        own = [spec for spec in cards if request.selection.accepts_vendor(spec.vendor)]
        if found is None:
            if not own:
                return self._without_cards(pod, request)
            return unknown_cards(request, cards, "the pod has no record of its cards")
        backend, form = found
        try:
            pairs = decode(pod, form, request.asks)
        except RecordError as error:
            return unknown_cards(request, cards, str(error)) if own else None
        field = child(_NOTES, form.keys.allocated)
        return booked(pod, request, field, pairs, cards, backend.vendor, self.catalogue)

    def record(
        self, pod: Pod, slices: Sequence[Slice], node: str, cards: Sequence[CardSpec], now: float
    ) -> Mapping[str, str]:
        """See ``CardSource.record``: in the form of whoever registered the cards."""
        if not slices:
            return {}
        return annotations_for(pod, slices, node, cards, now, self.catalogue)

    def _request(self, pod: Pod) -> tuple[CardRequest | None, tuple[Problem, ...]]:
        """What *pod* asks, with the rules that it falls under."""
        request, problems = card_request(pod, self.catalogue)
        rules, yields = self._rules_of(pod), _yields(pod)
        if request is not None and (rules or yields or self.linked):
            linked = request.linked or self.linked
            request = replace(request, rules=rules, yields=yields, linked=linked)
        return request, problems

    def _rules_of(self, pod: Pod) -> int:
        """Bits of the rules whose labels *pod* has."""
        labels = pod.metadata.labels
        return sum(1 << at for at, rule in enumerate(self.rules) if rule.items() <= labels.items())

    def _without_cards(self, pod: Pod, request: CardRequest) -> CardChoice | None:
        """A pod on a node that reports no cards: a plain whole card, or one whose cards are gone."""
        if not (request.bare and self.largest_mib):
            return None
        return CardChoice((), (), charge_with(pod_request(pod), bare_charge(request), self.catalogue))

    def _expected(self, cards: CardRequest) -> dict[str, int]:
        """The charge before cards are chosen: a percentage is one of the largest card."""
        if cards.bare and not self.largest_mib:
            return bare_charge(cards)
        asks = cut_asks(cards, self.catalogue)
        return spelled(ask_totals(asks, self.largest_mib), self._books(cards.selection.vendors))

    def _books(self, vendors: Sequence[str]) -> Books:
        """The names under which an ask is charged before its cards are known: those of its own kind."""
        return self.catalogue.books(vendors[0]) if len(vendors) == 1 else self.catalogue.shared_books(vendors)
