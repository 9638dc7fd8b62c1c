"""Which cards a node has, read from what its device plugins wrote into its annotations, or from its amounts.

Where a node carries several registers of one vendor, the first in the vendor's declaration is read, which
says most. Neighbours: ``crds.cards.register`` for the forms, ``catalogue`` for the keys, ``records`` for the
pods' side. Source: ``spec/hami-semantics.md`` 1.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from volcano_py.crds.cards.lending import LENDS, lent_percent
from volcano_py.crds.cards.names import ACCELERATOR
from volcano_py.crds.cards.register import AWAY, CORDON, CardReport, WireError
from volcano_py.plugins.deviceshare import names
from volcano_py.plugins.deviceshare.backend import Backend, Chip, PerSlot, Register, Units
from volcano_py.plugins.deviceshare.catalogue import STANDARD, Catalogue
from volcano_py.plugins.deviceshare.counting import counted_cards
from volcano_py.plugins.deviceshare.mig import geometry_of
from volcano_py.scheduler.model.cards import CardSpec
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem, child
from volcano_py.scheduler.model.kube.objects import Node

_NOTES: Final = "metadata.annotations"
_ZONES: Final = ("NetworkID", "LinkZone")
_TEMPLATE: Final = "template"


def cards_of(node: Node, catalogue: Catalogue = STANDARD) -> tuple[CardSpec, ...]:
    """The cards *node* reports, in its order; none without a register annotation.

    A card takes no new slice (``healthy`` false) when it is reported so, when it is cordoned, or when its
    device plugin is away. Raises ``ObjectError`` on garbage.
    """
    notes = node.metadata.annotations
    specs: list[CardSpec] = []
    for backend, register in _registers(notes, catalogue):
        specs += _registered(node, backend, register, catalogue)
    for backend in catalogue.counted:
        specs += counted_cards(node, backend)
    if not specs:
        return ()
    closed = {word.strip() for word in notes.get(CORDON, "").split(",")}
    lent = _lent(notes)
    return tuple(
        replace(spec, healthy=spec.healthy and spec.uuid not in closed, lent=lent)
        if lent != spec.lent or spec.uuid in closed
        else spec
        for spec in specs
    )


def _registers(notes: Mapping[str, str], catalogue: Catalogue) -> Iterator[tuple[Backend, Register]]:
    """The register of each vendor that the node carries."""
    seen: set[str] = set()
    for key, (backend, register) in catalogue.registers.items():
        if key in notes and backend.vendor not in seen:
            seen.add(backend.vendor)
            yield backend, register


def _registered(node: Node, backend: Backend, register: Register, catalogue: Catalogue) -> list[CardSpec]:
    notes = node.metadata.annotations
    try:
        reports = register.read(notes[register.key])
    except WireError as error:
        raise ObjectError(Problem(child(_NOTES, register.key), str(error))) from error
    gone = _plugin_is_away(node, backend, register)
    if register.cut is not None:
        chip = register.cut(notes[register.key])
        name = f"{node.name}-{register.named}"
        parted = [replace(report, uuid=f"{name}-{report.index}", healthy=not gone) for report in reports]
        return [_parted(report, backend, register.family, chip) for report in parted]
    soft = bool(backend.soft_node) and notes.get(backend.soft_node, str(backend.soft_nodes).lower()) == "true"
    return [_spec(report, backend, register.family, catalogue, soft=soft, gone=gone) for report in reports]


def _spec(
    report: CardReport, backend: Backend, family: str, catalogue: Catalogue, *, soft: bool, gone: bool
) -> CardSpec:
    spec = CardSpec(
        uuid=report.uuid,
        memory_mib=report.memory_mib,
        cores=report.cores,
        slots=report.slots,
        type=report.type,
        family=family,
        mode=report.mode,
        healthy=report.healthy and not gone,
        numa=report.numa,
        vendor=backend.vendor,
        index=report.index,
        zone=_zone(report),
    )
    if backend.chip is not None:
        return _cut_by_chip(spec, backend, soft=soft)
    if backend.even is not None:
        return replace(spec, cut=backend.even)
    if backend.core_units:
        return replace(spec, cut=Units(spec.cores), counts_cores=True)
    if not backend.names.memory and report.slots > 1:
        return replace(spec, cut=PerSlot(spec.memory_mib // report.slots))
    if report.mode == names.MIG:
        return replace(spec, cut=geometry_of(report, catalogue.geometries))
    return spec


def _parted(report: CardReport, backend: Backend, family: str, chip: Chip) -> CardSpec:
    """A card of which the register itself says how it is cut."""
    return CardSpec(
        uuid=report.uuid,
        memory_mib=chip.memory_mib,
        cores=chip.cores,
        slots=report.slots,
        type=report.type,
        family=family,
        mode=_TEMPLATE,
        healthy=report.healthy,
        vendor=backend.vendor,
        index=report.index,
        minor=dict(report.custom).get(names.MINOR, report.index),
        cut=chip,
        counts_cores=True,
    )


def _cut_by_chip(spec: CardSpec, backend: Backend, *, soft: bool) -> CardSpec:
    """Of a card in soft mode, parts are of any size, and those who ask for a hardware part get all of it."""
    chip = backend.chip
    if chip is None:
        raise ValueError(f"{backend.vendor} is not cut in hardware")
    if soft:
        whole = replace(chip, templates=(), memory_mib=spec.memory_mib, cores=names.WHOLE_CORES)
        return replace(spec, mode=names.SOFT, cores=names.WHOLE_CORES, cut=whole)
    cut = replace(chip, memory_mib=spec.memory_mib)
    return replace(spec, mode=_TEMPLATE, cores=chip.cores, cut=cut, counts_cores=True)


def _zone(report: CardReport) -> int:
    """Cards of a zone are linked better than others; a link zone 0 is none."""
    custom = dict(report.custom)
    for key in _ZONES:
        if key in custom:
            return custom[key] if key == "NetworkID" or custom[key] else -1
    return -1


def _lent(notes: Mapping[str, str]) -> int:
    """Percent of its cards that the node gives to those who can be interrupted."""
    try:
        return lent_percent(notes)
    except WireError as error:
        raise ObjectError(Problem(child(_NOTES, LENDS), str(error))) from error


def _plugin_is_away(node: Node, backend: Backend, register: Register) -> bool:
    """Nobody would hand out a card: the handshake says so, or the kubelet has no share of any name left.

    A handshake that was not renewed says nothing. HAMi's scheduler then goes by what the kubelet has, too,
    and the kubelet knows within seconds.
    """
    if node.metadata.annotations.get(register.handshake, "").startswith(AWAY):
        return True
    offers: Mapping[str, Any] = node.status.allocatable
    counts = (*backend.names.count, *backend.groups, ACCELERATOR)
    stated = [offers[name] for name in counts if name in offers]
    return bool(stated) and all(str(amount) == "0" for amount in stated)
