"""What queues and jobs are charged for cards: shares, memory x cards, cores x cards (decisions.md 10).

The same numbers serve before cards are chosen (a percentage is then one of the largest card) and
after. Init containers run one after another, so the largest moment counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from volcano_py.plugins.deviceshare import names
from volcano_py.plugins.deviceshare.asks import CardRequest, ContainerAsk, Role, peak
from volcano_py.plugins.deviceshare.catalogue import Books, Catalogue
from volcano_py.scheduler.model.cards import Slice
from volcano_py.scheduler.model.resources import POD_UNIT

Totals = tuple[int, int, int]
"""Shares, MiB, percent."""


def ask_totals(asks: Iterable[ContainerAsk], card_mib: int) -> Totals:
    """What *asks* come to on cards of *card_mib*."""
    parts = [(ask.role, ask.count, ask.memory_on(card_mib), ask.cores) for ask in asks]
    return (
        peak((role, count) for role, count, _, _ in parts),
        peak((role, count * memory) for role, count, memory, _ in parts),
        peak((role, count * cores) for role, count, _, cores in parts),
    )


def slice_totals(slices: Sequence[tuple[Role, Slice]]) -> Totals:
    """What *slices*, in the order in which their containers start, come to."""
    by_container: dict[str, tuple[Role, int, int, int]] = {}
    for role, part in slices:
        _, count, memory, cores = by_container.get(part.container, (role, 0, 0, 0))
        by_container[part.container] = (role, count + 1, memory + part.memory_mib, cores + part.cores)
    parts = list(by_container.values())
    return (
        peak((role, count) for role, count, _, _ in parts),
        peak((role, memory) for role, _, memory, _ in parts),
        peak((role, cores) for role, _, _, cores in parts),
    )


def charged(
    slices: Sequence[tuple[Role, Slice]],
    vendors: Mapping[int, str],
    catalogue: Catalogue,
    asked: Sequence[str] = (),
) -> dict[str, int]:
    """What *slices* come to under the names of the *vendors* of their cards, and of the group *asked* for."""
    found = sorted({vendors[part.card] for _, part in slices})
    charge: dict[str, int] = {}
    for vendor in found:
        own = [(role, part) for role, part in slices if vendors[part.card] == vendor]
        for name, amount in spelled(slice_totals(own), catalogue.books(vendor)).items():
            charge[name] = charge.get(name, 0) + amount
    if len(asked) > 1:
        charge = spelled(slice_totals(slices), catalogue.shared_books(asked)) | charge
    return charge


def spelled(totals: Totals, books: Books) -> dict[str, int]:
    """*totals* under all names of *books*, in base units; zeros left out."""
    return {
        name: total * names.MILLI
        for spellings, total in zip(books, totals, strict=True)
        for name in spellings
        if total
    }


def bare_charge(request: CardRequest) -> dict[str, int]:
    """Whole cards of a node that registers none: their number, as the counted resource."""
    return {request.bare: peak((ask.role, ask.count) for ask in request.asks) * names.MILLI}


def charge_with(
    base: Mapping[str, int], cards: Mapping[str, int], catalogue: Catalogue
) -> tuple[tuple[str, int], ...]:
    """A pod's whole charge: *base* without card names, *cards*, and the pod itself; sorted."""
    rest = {name: amount for name, amount in base.items() if name not in catalogue.resources and amount}
    return tuple(sorted({**rest, **cards, "pods": POD_UNIT}.items()))
