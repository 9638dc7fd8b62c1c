"""A choice of cards as the model books it: slices a container, holds a card, and the charge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from volcano_py.plugins.deviceshare.asks import CardRequest, Role, peak
from volcano_py.plugins.deviceshare.catalogue import Catalogue
from volcano_py.plugins.deviceshare.charges import charge_with, charged
from volcano_py.plugins.deviceshare.needs import Share
from volcano_py.plugins.deviceshare.rounding import told_parts
from volcano_py.scheduler.model.cards import CardChoice, CardHold, CardSpec, Slice
from volcano_py.scheduler.model.classes import TaskClass

Taken = Sequence[tuple[int, Share]]
"""Cards of one ask: position, and what is taken of it."""

CardCharge = tuple[tuple[str, int], ...] | None
"""As ``CardChoice.charge``."""


def single_choice(
    request: CardRequest, at: int, spec: CardSpec, share: Share, charge: CardCharge
) -> CardChoice:
    """The choice of one *share* of the card *spec* at position *at* for the one ask, if *charge* is known."""
    part = Slice(request.asks[0].container, at, spec.uuid, share.memory_mib, share.cores)
    hold = CardHold(at, share.memory_mib, share.cores, 1, share.parts, request.rules)
    return CardChoice((part,), (hold,), charge)


def choice_of(
    klass: TaskClass,
    request: CardRequest,
    specs: Sequence[CardSpec],
    taken: Sequence[Taken],
    catalogue: Catalogue,
    largest_mib: int,
) -> CardChoice:
    """The choice of what is *taken* (an entry each ask) of a node's *specs*.

    Raises ``ValueError`` where an ask did not get its number of cards: booking less would be a lie.
    """
    slices: list[Slice] = []
    for ask, cards in zip(request.asks, taken, strict=True):
        if len(cards) != ask.count:
            raise ValueError(f"container {ask.container} asks {ask.count} cards and got {len(cards)}")
        for at, share in cards:
            slices.append(
                Slice(ask.container, at, specs[at].uuid, share.memory_mib, share.cores, share.instance)
            )
    parts: dict[int, int] = {}
    for cards in taken:
        for at, share in cards:
            parts[at] = parts.get(at, 0) | share.parts
    charge = _charge(klass, request, specs, slices, catalogue, largest_mib)
    told = tuple(told_parts(request, slices, specs, catalogue))
    return CardChoice(tuple(slices), _holds(request, slices, parts), charge, told)


def _holds(request: CardRequest, slices: list[Slice], parts: Mapping[int, int]) -> tuple[CardHold, ...]:
    if len(request.asks) == 1:  # one container takes a card once at most
        return tuple(
            CardHold(part.card, part.memory_mib, part.cores, 1, parts[part.card], request.rules)
            for part in slices
        )
    return holds_of(slices, {ask.container: ask.role for ask in request.asks}, parts, request.rules)


def holds_of(
    slices: Sequence[Slice], roles: Mapping[str, Role], parts: Mapping[int, int], rules: int
) -> tuple[CardHold, ...]:
    """What *slices* book on each card: init containers one after another, the others together.

    *slices* stand in the order in which their containers start. A container without a role counts as
    one that runs all the time. *parts* are the instances by card, *rules* those of the pod.
    """
    by_card: dict[int, list[tuple[Role, Slice]]] = {}
    for part in slices:
        by_card.setdefault(part.card, []).append((roles.get(part.container, Role.APP), part))
    return tuple(
        CardHold(
            card,
            peak((role, part.memory_mib) for role, part in held),
            peak((role, part.cores) for role, part in held),
            peak((role, 1) for role, _ in held),
            parts.get(card, 0),
            rules,
        )
        for card, held in sorted(by_card.items())
    )


def _charge(
    klass: TaskClass,
    request: CardRequest,
    specs: Sequence[CardSpec],
    slices: list[Slice],
    catalogue: Catalogue,
    largest_mib: int,
) -> tuple[tuple[str, int], ...] | None:
    """The charge where it differs from the class's, which assumes the largest card."""
    as_asked = len(request.selection.vendors) == 1 and all(specs[part.card].cut is None for part in slices)
    if as_asked and all(ask.memory_mib for ask in request.asks):
        return None
    if as_asked and all(specs[part.card].memory_mib == largest_mib for part in slices):
        return None
    roles = {ask.container: ask.role for ask in request.asks}
    parts = [(roles[part.container], part) for part in slices]
    vendors = {part.card: specs[part.card].vendor for part in slices}
    charge = charge_with(
        dict(klass.signature.charge), charged(parts, vendors, catalogue, request.selection.vendors), catalogue
    )
    return None if charge == klass.signature.charge else charge
