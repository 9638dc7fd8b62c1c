"""The device configuration that HAMi and Volcano share: resource names, chips and MIG geometries.

``device-config.yaml`` in a ConfigMap, or the same inside the plugin's arguments. What it does not say stays
as it is by default. Neighbours: ``catalogue`` for what comes of it, ``arguments`` for which ConfigMap it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import yaml

from volcano_py.plugins.deviceshare.asks import LARGEST_CARD_MIB
from volcano_py.plugins.deviceshare.backend import Backend
from volcano_py.plugins.deviceshare.backends.ascend import read_chips
from volcano_py.plugins.deviceshare.backends.iluvatar import read_chips as read_iluvatar
from volcano_py.plugins.deviceshare.catalogue import Catalogue
from volcano_py.plugins.deviceshare.mig import DEFAULTS, KnownGeometry, in_units, read_geometries

KEY: Final = "device-config.yaml"
_WITH_FACTOR: Final = ("nvidia", "hygon")
_WITH_DEFAULTS: Final = "nvidia"
_NAMES: Final = {
    "count": "resourceCountName",
    "memory": "resourceMemoryName",
    "percent": "resourceMemoryPercentageName",
    "cores": "resourceCoreName",
    "priority": "resourcePriorityName",
}
_SHARED: Final = {
    "count": "resourceVCountName",
    "memory": "resourceVMemoryName",
    "cores": "resourceVCoreName",
}
_PARTS: Final = {
    "count": "resourceNameDRSGCU",
    "memory": "resourceNameGCUMemory",
    "cores": "resourceNameGCUCore",
}
_SECTIONS: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    **{vendor: {vendor: _NAMES} for vendor in ("nvidia", "hygon", "cambricon", "mthreads", "amd")},
    **{vendor: {vendor: _NAMES} for vendor in ("vastai", "biren")},
    "metax": {"metax": _NAMES, "metax-shared": _SHARED},
    "kunlun": {"kunlun": _NAMES, "kunlun-shared": _SHARED},
    "enflame": {"enflame": {"count": "resourceNameGCU"}, "enflame-shared": _PARTS},
}
"""Section of the file -> backends whose resource names stand there -> the key of each meaning."""


def parse(text: str) -> Mapping[str, Any]:
    """The file's document; raises ``ValueError`` if it is no mapping."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"is not YAML: {error}") from error
    if not isinstance(document, Mapping):
        raise ValueError("is not a mapping")
    return document


def configured(backends: Iterable[Backend], document: Mapping[str, Any], *, ascend: bool) -> Catalogue:
    """*backends* as *document* names and cuts them; raises ``ValueError`` naming the part that is wrong."""
    given = {backend.vendor: backend for backend in backends}
    for section, vendors in _SECTIONS.items():
        if not isinstance(document.get(section), Mapping):
            continue
        for vendor, keys in vendors.items():
            if vendor in given:
                named = _named(given[vendor], document[section], keys)
                given[vendor] = _read(section, partial(_measured, named), document[section])
    if document.get("iluvatars") is not None:
        given |= {chip.vendor: chip for chip in _read("iluvatars", read_iluvatar, document["iluvatars"])}
    chips: tuple[Backend, ...] = ()
    if ascend and document.get("vnpus") is not None:
        chips = _read("vnpus", read_chips, document["vnpus"])
        given = {vendor: backend for vendor, backend in given.items() if backend.chip is None}
    nvidia = document.get("nvidia")
    geometries = _read("nvidia", _geometries, nvidia) if isinstance(nvidia, Mapping) else DEFAULTS
    return Catalogue((*given.values(), *chips), geometries)


def _geometries(section: Mapping[str, Any]) -> tuple[KnownGeometry, ...]:
    """How *section* cuts cards, in the units of Volcano's plugin; raises ``ValueError``."""
    known = section.get("knownMigGeometries")
    geometries = DEFAULTS if known is None else _read("knownMigGeometries", read_geometries, known)
    return in_units(geometries, max(_amount(section, "gpuMemoryFactor"), 1))


def _read(where: str, read: Any, value: Any) -> Any:
    try:
        return read(value)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _amount(section: Mapping[str, Any], key: str) -> int:
    """The whole number under *key*, 0 without one; raises ``ValueError``."""
    value = section.get(key) or 0
    if type(value) is not int or not 0 <= value <= LARGEST_CARD_MIB:
        raise ValueError(f"{key} must be a whole number from 0 to {LARGEST_CARD_MIB}, not {value!r}")
    return value


def _measured(backend: Backend, section: Mapping[str, Any]) -> Backend:
    """*backend* with what HAMi lets *section* say of amounts; raises ``ValueError``.

    Its memory factor and defaults are those of the vendors whose section knows them.
    """
    if backend.vendor not in _WITH_FACTOR:
        return backend
    backend = replace(backend, unit_mib=max(_amount(section, "memoryFactor"), 1))
    if backend.vendor != _WITH_DEFAULTS:
        return backend
    cores = min(_amount(section, "defaultCores"), backend.whole_cores)
    return replace(backend, default_mib=_amount(section, "defaultMemory"), default_cores=cores)


def _named(backend: Backend, section: Mapping[str, Any], keys: Mapping[str, str]) -> Backend:
    """*backend* with the names in *section* under *keys*, each before those that are known anyway.

    A name that is not among them takes the first place, which is that of the kubelet's resource.
    """
    names, changed = backend.names, {}
    for meaning, key in keys.items():
        name, known = section.get(key), getattr(names, meaning)
        if name and name not in known:
            changed[meaning] = (str(name), *known)
    if not changed:
        return backend
    counted = backend.counted
    if counted is not None:
        now = {getattr(names, meaning)[0]: spellings[0] for meaning, spellings in changed.items()}
        resource, memory = (now.get(name, name) for name in (counted.resource, counted.memory))
        counted = replace(counted, resource=resource, memory=memory)
    names = replace(names, **changed, booked=names.booked + 1)
    return replace(backend, names=names, counted=counted)
