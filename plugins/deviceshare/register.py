"""Which cards a node has, read from what its device plugin wrote into the node's annotations.

Three forms: HAMi's JSON, HAMi's older text, Volcano's text. Where a node carries both families, HAMi's is
read, which says more. Neighbours: ``names`` for the keys, ``records`` for the pods' side. Source:
``spec/hami-semantics.md`` 1.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from volcano_py.plugins.deviceshare import names
from volcano_py.plugins.deviceshare.asks import LARGEST_CARD_MIB, WHOLE_PERCENT
from volcano_py.scheduler.model.cards import CardSpec
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem, child
from volcano_py.scheduler.model.kube.objects import Node

_DEFAULT_MODE: Final = "hami-core"
_VOLCANO_FIELDS: Final = "UUID,count,memory,type,health,mode"
_OLD_FIELDS: Final = "id,count,memory,cores,type,numa,health[,index,mode]"


class _Device(msgspec.Struct, frozen=True):
    """An entry of HAMi's JSON; zero values are left out there, a false health among them."""

    id: str = ""
    index: int = 0
    count: int = 0
    devmem: int = 0
    devcore: int = 0
    type: str = ""
    numa: int = 0
    mode: str = ""
    health: bool = False


_decode: Final = msgspec.json.Decoder(list[_Device]).decode


def is_registered(annotations: Mapping[str, str]) -> bool:
    """Whether a device plugin of ours speaks for the node, readable or not."""
    return names.REGISTER_HAMI in annotations or names.REGISTER_VOLCANO in annotations


def cards_of(node: Node) -> tuple[CardSpec, ...]:
    """The cards *node* reports, in its order; none without a register annotation.

    A card takes no new slice (``healthy`` false) when it is reported so, when it is cordoned, or when the
    node says that its device plugin offers nothing. Raises ``ObjectError`` on garbage.
    """
    notes = node.metadata.annotations
    key = names.REGISTER_HAMI if names.REGISTER_HAMI in notes else names.REGISTER_VOLCANO
    if key not in notes:
        return ()
    field = child("metadata.annotations", key)
    specs = _read(key, notes[key].strip(), field)
    _check_identities(specs, field)
    closed = {word.strip() for word in notes.get(names.CORDON, "").split(",")}
    if _plugin_is_gone(node):
        closed |= {spec.uuid for spec in specs}
    return tuple(replace(spec, healthy=False) if spec.uuid in closed else spec for spec in specs)


def _read(key: str, text: str, field: str) -> list[CardSpec]:
    if key == names.REGISTER_VOLCANO:
        return [_from_volcano(row, field) for row in _rows(text)]
    if text.startswith("["):
        return _from_json(text, field)
    return [_from_old_text(row, field) for row in _rows(text)]


def _plugin_is_gone(node: Node) -> bool:
    """The kubelet lists the shares as a resource and has none of them: nobody would hand out a card."""
    offers: Mapping[str, Any] = node.status.allocatable
    stated = [offers[name] for name in names.COUNT if name in offers]
    return bool(stated) and all(str(amount) == "0" for amount in stated)


def _rows(text: str) -> list[str]:
    return [row.strip() for row in text.split(":") if row.strip()]


def _from_json(text: str, field: str) -> list[CardSpec]:
    try:
        devices = _decode(text)
    except (msgspec.DecodeError, ValueError) as error:
        raise ObjectError(Problem(field, f"not a list of cards: {error}")) from error
    return [
        _spec(
            field,
            uuid=device.id,
            family=names.HAMI,
            memory_mib=device.devmem,
            slots=device.count,
            cores=device.devcore,
            type=device.type,
            mode=device.mode,
            healthy=device.health,
            numa=device.numa,
        )
        for device in devices
    ]


def _from_volcano(row: str, field: str) -> CardSpec:
    parts = row.split(",")
    if len(parts) != 6:
        raise ObjectError(Problem(field, f"{row!r} has {len(parts)} fields, {_VOLCANO_FIELDS} were expected"))
    uuid, count, memory, model, health, mode = (part.strip() for part in parts)
    return _spec(
        field,
        uuid=uuid,
        family=names.VOLCANO,
        memory_mib=_number(memory, field, row),
        slots=_number(count, field, row),
        cores=WHOLE_PERCENT,
        type=model,
        mode=mode,
        healthy=health.lower() == "true",
        numa=-1,
    )


def _from_old_text(row: str, field: str) -> CardSpec:
    parts = [part.strip() for part in row.split(",")]
    if len(parts) not in (7, 9):
        raise ObjectError(Problem(field, f"{row!r} has {len(parts)} fields, {_OLD_FIELDS} were expected"))
    return _spec(
        field,
        uuid=parts[0],
        family=names.HAMI,
        memory_mib=_number(parts[2], field, row),
        slots=_number(parts[1], field, row),
        cores=_number(parts[3], field, row),
        type=parts[4],
        mode=parts[8] if len(parts) == 9 else "",
        healthy=parts[6].lower() == "true",
        numa=_number(parts[5], field, row),
    )


def _spec(field: str, **given: Any) -> CardSpec:
    """A checked spec; cores that are not stated are the whole card's, an empty mode is the usual one."""
    spec = CardSpec(
        **{**given, "cores": given["cores"] or WHOLE_PERCENT, "mode": given["mode"] or _DEFAULT_MODE}
    )
    if not spec.uuid:
        raise ObjectError(Problem(field, "a card has no id"))
    for what, value in (("memory", spec.memory_mib), ("count", spec.slots), ("cores", spec.cores)):
        if not 0 < value <= LARGEST_CARD_MIB:
            raise ObjectError(Problem(field, f"card {spec.uuid}: {what} must be above 0, not {value}"))
    return spec


def _number(text: str, field: str, row: str) -> int:
    if not text.lstrip("-").isdecimal() or len(text) > 18:
        raise ObjectError(Problem(field, f"{row!r}: {text!r} is not a number"))
    return int(text)


def _check_identities(specs: Iterable[CardSpec], field: str) -> None:
    seen: set[str] = set()
    for spec in specs:
        if spec.uuid in seen:
            raise ObjectError(Problem(field, f"card {spec.uuid} is listed twice"))
        seen.add(spec.uuid)
