"""Cards of nodes that state amounts only: as many as the amounts say, called by their number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from volcano_py.crds.quantity import QuantityError, to_base
from volcano_py.plugins.deviceshare.backend import Backend
from volcano_py.plugins.deviceshare.mig import core_geometry
from volcano_py.plugins.deviceshare.names import HAMI, MILLI, WHOLE_CORES
from volcano_py.plugins.deviceshare.reading import words_of
from volcano_py.scheduler.model.cards import CardSpec
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem, child
from volcano_py.scheduler.model.kube.objects import Node

_MOST_CARDS = 64


def counted_cards(node: Node, backend: Backend) -> list[CardSpec]:
    """The cards of *backend* that *node*'s amounts stand for; raises ``ObjectError`` on absurd ones."""
    counted = backend.counted
    if counted is None or counted.resource not in node.status.allocatable:
        return []
    amounts: Mapping[str, Any] = node.status.allocatable
    cards = _amount(amounts, counted.resource) // counted.each
    if cards > _MOST_CARDS:
        field = child("status.allocatable", counted.resource)
        raise ObjectError(Problem(field, f"means {cards} cards, but a node has at most {_MOST_CARDS}"))
    memory = counted.memory_mib
    if counted.cores and cards:
        memory = _amount(amounts, counted.cores) // cards
    if counted.memory and cards:
        memory = _amount(amounts, counted.memory) * backend.unit_mib // cards
    unwell = set(words_of(node.metadata.annotations.get(counted.unwell, "")))
    if not memory:
        return []
    by_core = bool(counted.cores)
    return [
        CardSpec(
            uuid=f"{node.name}-{counted.name}-{at}",
            memory_mib=memory,
            cores=memory if by_core else backend.whole_cores,
            slots=memory if by_core else counted.slots,
            type=backend.word,
            family=HAMI,
            healthy=str(at) not in unwell,
            numa=int(counted.two_numa and at >= cards // 2),
            vendor=backend.vendor,
            index=at,
            cut=core_geometry(memory) if by_core else None,
            counts_cores=by_core or backend.whole_cores != WHOLE_CORES,
        )
        for at in range(cards)
    ]


def _amount(amounts: Mapping[str, Any], name: str) -> int:
    try:
        return to_base(name, amounts[name]) // MILLI if name in amounts else 0
    except QuantityError as error:
        raise ObjectError(Problem(child("status.allocatable", name), str(error))) from error
