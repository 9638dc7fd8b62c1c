"""A choice of cards as the model books it: slices a container, holds a card, and the charge."""

from __future__ import annotations

from collections.abc import Sequence

from volcano_py.plugins.deviceshare.asks import CardRequest
from volcano_py.plugins.deviceshare.charges import charge_with, slice_totals, spelled
from volcano_py.plugins.deviceshare.records import holds_of
from volcano_py.scheduler.model.cards import CardChoice, CardHold, CardSpec, Slice
from volcano_py.scheduler.model.classes import TaskClass


def choice_of(
    klass: TaskClass,
    request: CardRequest,
    specs: Sequence[CardSpec],
    chosen: Sequence[Sequence[int]],
    largest_mib: int,
) -> CardChoice:
    """The choice of cards at positions *chosen* (an entry each ask) among a node's *specs*.

    Raises ``ValueError`` where an ask did not get its number of cards: booking less would be a lie.
    """
    slices: list[Slice] = []
    for ask, positions in zip(request.asks, chosen, strict=True):
        if len(positions) != ask.count:
            raise ValueError(f"container {ask.container} asks {ask.count} cards and got {len(positions)}")
        for at in positions:
            spec = specs[at]
            slices.append(Slice(ask.container, at, spec.uuid, ask.memory_on(spec.memory_mib), ask.cores))
    return CardChoice(
        tuple(slices), _holds(request, slices), _charge(klass, request, specs, slices, largest_mib)
    )


def _holds(request: CardRequest, slices: list[Slice]) -> tuple[CardHold, ...]:
    if len(request.asks) == 1:  # one container takes a card once at most
        return tuple(CardHold(part.card, part.memory_mib, part.cores, 1) for part in slices)
    return holds_of(slices, {ask.container: ask.role for ask in request.asks})


def _charge(
    klass: TaskClass, request: CardRequest, specs: Sequence[CardSpec], slices: list[Slice], largest_mib: int
) -> tuple[tuple[str, int], ...] | None:
    """The charge where it differs from the class's, which assumes the largest card."""
    if all(ask.memory_mib for ask in request.asks):
        return None
    if all(specs[part.card].memory_mib == largest_mib for part in slices):
        return None
    roles = {ask.container: ask.role for ask in request.asks}
    totals = slice_totals([(roles[part.container], part) for part in slices])
    charge = charge_with(dict(klass.signature.charge), spelled(totals))
    return None if charge == klass.signature.charge else charge
