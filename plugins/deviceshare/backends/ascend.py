"""Huawei Ascend: one backend a chip, from a table in HAMi's form (``vnpus`` of its device configuration).

Without a soft mode cards are cut into templates. Records stand under HAMi's keys and, for the container
runtime, as JSON under ``huawei.com/<chip>``. The names ``huawei.com/Ascend910`` and ``huawei.com/Ascend910B``
ask for any chip whose own name begins so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from volcano_py.crds.cards.names import ResourceNames
from volcano_py.crds.cards.register import HAMI_HANDSHAKE, decode_hami
from volcano_py.plugins.deviceshare.backend import (
    Backend,
    Chip,
    Extra,
    Held,
    Register,
    Template,
    Wishes,
    hami_family,
)
from volcano_py.plugins.deviceshare.names import HAMI, SOFT
from volcano_py.scheduler.model.kube.objects import Pod

SOFT_POD: Final = "huawei.com/vnpu-mode"
SOFT_NODE: Final = "hami-vnpu-core"
_FAMILIES: Final = ("Ascend910", "Ascend910B")


class _Given(msgspec.Struct, frozen=True, omit_defaults=True):
    """A share as the container runtime's plugin reads it."""

    uuid: str = msgspec.field(default="", name="UUID")
    temp: str = ""
    memory: int = 0
    core: int = 0


def read_chips(document: Any) -> tuple[Backend, ...]:
    """The chips of ``vnpus``: a list, or a mapping with ``configs``; raises ``ValueError``."""
    soft = isinstance(document, Mapping) and bool(document.get("hamiVnpuCore"))
    entries = document.get("configs", ()) if isinstance(document, Mapping) else document
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise ValueError(f"must be a list of chips, not {document!r}")
    return tuple(_backend(entry, soft=soft) for entry in entries)


def _backend(entry: Any, *, soft: bool) -> Backend:
    try:
        word = str(entry["commonWord"])
        count = str(entry["resourceName"])
        memory = str(entry.get("resourceMemoryName") or f"{count}-memory")
        cores = str(entry.get("resourceCoreName") or f"{count}-core")
        chip = _chip(entry)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        needed = "commonWord, resourceName and memoryAllocatable"
        raise ValueError(f"{entry!r} is no chip with {needed}") from error
    return Backend(
        vendor=word,
        word=word,
        names=ResourceNames((count,), (memory,), cores=(cores,)),
        registers=(Register(f"hami.io/node-register-{word}", HAMI, decode_hami, f"{HAMI_HANDSHAKE}-{word}"),),
        families=hami_family(word, extra=_runtime_record(word, chip)),
        wishes=Wishes(use_uuid=(f"hami.io/use-{word}-uuid",), not_uuid=(f"hami.io/no-use-{word}-uuid",)),
        unit_mib=int(entry.get("memoryFactor") or 1),
        chip=chip,
        soft_pod=SOFT_POD,
        soft_node=SOFT_NODE,
        soft_nodes=soft,
        groups=tuple(f"huawei.com/{family}" for family in _FAMILIES if word.startswith(family)),
    )


def _chip(entry: Mapping[str, Any]) -> Chip:
    memory = int(entry["memoryAllocatable"])
    templates = [
        Template(str(part["name"]), int(part["memory"]), int(part.get("aiCore") or 0))
        for part in entry.get("templates") or ()
    ]
    return Chip(
        memory_mib=memory,
        capacity_mib=int(entry.get("memoryCapacity") or memory),
        cores=int(entry.get("aiCore") or 100),
        templates=tuple(sorted(templates, key=lambda part: part.memory_mib)),
        paired=bool(entry.get("superPod")),
    )


def _runtime_record(word: str, chip: Chip) -> Extra:
    def write(pod: Pod, held: Held, now: float) -> Mapping[str, str]:
        soft = pod.metadata.annotations.get(SOFT_POD) == SOFT
        given = []
        for segment in held:
            for part, _ in segment:
                if soft:
                    given.append(_Given(part.uuid, memory=part.memory_mib, core=part.cores))
                else:
                    template = chip.held(part.memory_mib).name
                    given.append(_Given(part.uuid, template, part.memory_mib))
        record = msgspec.json.encode(given).decode()
        return {f"huawei.com/{word}": record, "predicate-time": str(int(now))}

    return write


def _entry(
    word: str, memory: int, cores: int, *templates: tuple[str, int, int], **more: Any
) -> dict[str, Any]:
    parts = [{"name": name, "memory": mib, "aiCore": ai} for name, mib, ai in templates]
    named = {"commonWord": word, "resourceName": f"huawei.com/{word}", "templates": parts}
    return {**named, "memoryAllocatable": memory, "aiCore": cores, **more}


_HALVES: Final = (("vir05_1c_16g", 16384, 5), ("vir10_3c_32g", 32768, 10))
ASCEND: Final = read_chips(
    [
        _entry(
            "Ascend910A",
            32768,
            30,
            ("vir02", 2184, 2),
            ("vir04", 4369, 4),
            ("vir08", 8738, 8),
            ("vir16", 17476, 16),
        ),
        _entry(
            "Ascend910B2",
            65536,
            24,
            ("vir03_1c_8g", 8192, 3),
            ("vir06_1c_16g", 16384, 6),
            ("vir12_3c_32g", 32768, 12),
        ),
        _entry("Ascend910B3", 65536, 20, *_HALVES),
        _entry("Ascend910B4-1", 65536, 20, *_HALVES),
        _entry("Ascend910B4", 32768, 20, ("vir05_1c_8g", 8192, 5), ("vir10_3c_16g", 16384, 10)),
        _entry(
            "Ascend310P",
            21527,
            8,
            ("vir01", 3072, 1),
            ("vir02", 6144, 2),
            ("vir04", 12288, 4),
            memoryCapacity=24576,
        ),
        _entry("Ascend910C", 65536, 20, *_HALVES, superPod=True),
    ]
)
"""What HAMi knows without a ConfigMap."""
