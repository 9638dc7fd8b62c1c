"""What an ask becomes where the hardware cuts cards into parts of fixed sizes, and what people are told.

Asks for one chip are known before a card is chosen, those for any of several only then. Neighbours:
``backend.Chip``, ``needs``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from volcano_py.plugins.deviceshare.asks import CardRequest, ContainerAsk
from volcano_py.plugins.deviceshare.backend import Chip, Even, Template
from volcano_py.plugins.deviceshare.catalogue import Catalogue
from volcano_py.plugins.deviceshare.needs import part_of
from volcano_py.scheduler.model.cards import CardSpec, Slice
from volcano_py.scheduler.model.kube.errors import Problem

_FIELD = "spec.containers"


def cut_asks(request: CardRequest, catalogue: Catalogue) -> Sequence[ContainerAsk]:
    """The asks of *request* as parts of its chip; as they are where there is none."""
    chip = _chip(request, catalogue)
    if chip is None:
        return request.asks
    cut = []
    for ask in request.asks:
        part = part_of(chip, ask) or chip.whole
        cut.append(replace(ask, memory_mib=part.memory_mib, percent=0, cores=part.cores))
    return cut


def told_rounding(request: CardRequest, catalogue: Catalogue) -> Iterator[Problem]:
    """What is given instead of what was asked."""
    chip = _chip(request, catalogue)
    if chip is None:
        return
    for ask in request.asks:
        part = part_of(chip, ask)
        if part is not None and ask.memory_mib and part.memory_mib != ask.memory_mib:
            yield _told(ask.container, ask.memory_mib, part)


def told_parts(
    request: CardRequest, slices: Sequence[Slice], specs: Sequence[CardSpec], catalogue: Catalogue
) -> Iterator[Problem]:
    """What *slices* of *specs* give instead of what was asked, where only the choice of a card tells."""
    if request.soft or _chip(request, catalogue) is not None:
        return
    asked = {ask.container: ask.memory_mib for ask in request.asks}
    for part in slices:
        cut, wanted = specs[part.card].cut, asked.get(part.container, 0)
        if not wanted or part.memory_mib == wanted:
            continue
        if isinstance(cut, Chip):
            yield _told(part.container, wanted, cut.held(part.memory_mib))
        elif isinstance(cut, Even):
            name = "" if part.memory_mib == cut.sizes[-1][0] else "part"
            yield _told(part.container, wanted, Template(name, part.memory_mib, part.cores), "a")
        elif part.instance:
            name = part.instance.partition("@")[0]
            yield _told(part.container, wanted, Template(name, part.memory_mib, part.cores), "MIG instance")


def _told(container: str, asked_mib: int, part: Template, kind: str = "template") -> Problem:
    given = f"{kind} {part.name} of {part.memory_mib}Mi" if part.name else "a whole card"
    return Problem(_FIELD, f"container {container} asks {asked_mib}Mi and gets {given}")


def _chip(request: CardRequest, catalogue: Catalogue) -> Chip | None:
    """The one chip that *request* asks parts of."""
    vendors = request.selection.vendors
    if request.soft or len(vendors) != 1:
        return None
    return catalogue.backends[vendors[0]].chip
