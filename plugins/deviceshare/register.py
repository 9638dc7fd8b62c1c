"""Which cards a node has, read from what its device plugin wrote into the node's annotations.

Where a node carries both families, HAMi's is read, which says more. Neighbours: ``crds.cards.register`` for
the forms, ``names`` for the keys, ``records`` for the pods' side. Source: ``spec/hami-semantics.md`` 1.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from volcano_py.crds.cards.register import CardReport, WireError, decode_hami, decode_volcano
from volcano_py.plugins.deviceshare import names
from volcano_py.scheduler.model.cards import CardSpec
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem, child
from volcano_py.scheduler.model.kube.objects import Node


def is_registered(annotations: Mapping[str, str]) -> bool:
    """Whether a device plugin of ours speaks for the node, readable or not."""
    return names.REGISTER_HAMI in annotations or names.REGISTER_VOLCANO in annotations


def cards_of(node: Node) -> tuple[CardSpec, ...]:
    """The cards *node* reports, in its order; none without a register annotation.

    A card takes no new slice (``healthy`` false) when it is reported so, when it is cordoned, or when the
    node says that its device plugin offers nothing. Raises ``ObjectError`` on garbage.
    """
    notes = node.metadata.annotations
    family = names.HAMI if names.REGISTER_HAMI in notes else names.VOLCANO
    key = names.REGISTER_HAMI if family == names.HAMI else names.REGISTER_VOLCANO
    if key not in notes:
        return ()
    try:
        reports = decode_hami(notes[key]) if family == names.HAMI else decode_volcano(notes[key])
    except WireError as error:
        raise ObjectError(Problem(child("metadata.annotations", key), str(error))) from error
    closed = {word.strip() for word in notes.get(names.CORDON, "").split(",")}
    if _plugin_is_gone(node):
        closed |= {report.uuid for report in reports}
    return tuple(_spec(report, family, closed) for report in reports)


def _spec(report: CardReport, family: str, closed: set[str]) -> CardSpec:
    return CardSpec(
        uuid=report.uuid,
        memory_mib=report.memory_mib,
        cores=report.cores,
        slots=report.slots,
        type=report.type,
        family=family,
        mode=report.mode,
        healthy=report.healthy and report.uuid not in closed,
        numa=report.numa,
    )


def _plugin_is_gone(node: Node) -> bool:
    """The kubelet lists the shares as a resource and has none of them: nobody would hand out a card."""
    offers: Mapping[str, Any] = node.status.allocatable
    stated = [offers[name] for name in names.COUNT if name in offers]
    return bool(stated) and all(str(amount) == "0" for amount in stated)
