"""Short forms for cards in scenarios: what a node has, what a pod asks, and what it sits on.

Turned into the annotations and resource names of the chosen family, so that nothing behind them knows
of short forms. Card *i* of node n1 is called ``n1-i``.
"""

from __future__ import annotations

import json
from typing import Any, Final

Object = dict[str, Any]

CARD_KEYS: Final = {"count", "memory", "slots", "type", "mode", "family", "sick"}
ASK_KEYS: Final = {"count", "memory", "percent", "cores", "family"}
FAMILIES: Final = ("hami", "volcano")
ASK_NAMES: Final = {
    "hami": {
        "count": "nvidia.com/gpu",
        "memory": "nvidia.com/gpumem",
        "percent": "nvidia.com/gpumem-percentage",
        "cores": "nvidia.com/gpucores",
    },
    "volcano": {
        "count": "volcano.sh/vgpu-number",
        "memory": "volcano.sh/vgpu-memory",
        "percent": "volcano.sh/vgpu-memory-percentage",
        "cores": "volcano.sh/vgpu-cores",
    },
}


class ShorthandError(ValueError):
    """A short form with a key or value that means nothing."""


def node_cards(node: str, cards: Object) -> tuple[Object, Object]:
    """Annotations and allocatable amounts of *node* with *cards*.

    ``count`` cards (1) of ``memory`` MiB (16384), each for ``slots`` pods (10), of model ``type``
    (NVIDIA-A100), cut in ``mode`` (hami-core), reported in ``family`` (hami); those at the positions in
    ``sick`` are unhealthy.
    """
    family = _checked(f"cards of node {node}", cards, CARD_KEYS)
    count, memory, slots = (int(cards.get(k, d)) for k, d in (("count", 1), ("memory", 16384), ("slots", 10)))
    model, mode = cards.get("type", "NVIDIA-A100"), cards.get("mode", "hami-core")
    well = [position not in cards.get("sick", []) for position in range(count)]
    if family == "volcano":
        rows = [f"{node}-{i},{slots},{memory},{model},{str(well[i]).lower()},{mode}:" for i in range(count)]
        amounts = {"number": count * slots, "memory": count * memory, "cores": count * 100}
        allocatable = {f"volcano.sh/vgpu-{name}": str(amount) for name, amount in amounts.items()}
        return {"volcano.sh/node-vgpu-register": "".join(rows)}, allocatable
    devices = [
        {"id": f"{node}-{i}", "index": i, "count": slots, "devmem": memory, "devcore": 100, "type": model}
        | {"mode": mode, "health": well[i]}
        for i in range(count)
    ]
    return {"hami.io/node-nvidia-register": json.dumps(devices)}, {"nvidia.com/gpu": str(count * slots)}


def asked(ask: Object) -> dict[str, str]:
    """Resource names and amounts of what a container asks, each of its ``count`` shares (1) alike."""
    names = ASK_NAMES[_checked("cards of a job", ask, ASK_KEYS)]
    return {names[key]: str(amount) for key, amount in {"count": 1, **ask}.items() if key != "family"}


def record(node: str, held: list[str], family: str) -> Object:
    """Annotations of a pod that runs on *node* and holds *held*, each "card/MiB/cores"."""
    if family not in FAMILIES:
        raise ShorthandError(f"holds: unknown family {family!r}; known: {', '.join(FAMILIES)}")
    slices = "".join(f"{uuid},NVIDIA,{memory},{cores}:" for uuid, memory, cores in map(_slice, held))
    hami = family == "hami"
    prefix, key = ("hami.io", "vgpu-devices-allocated") if hami else ("volcano.sh", "vgpu-ids-new")
    return {
        f"{prefix}/vgpu-node": node,
        f"{prefix}/vgpu-time": "1767139200",
        f"{prefix}/bind-phase": "success",
        f"{prefix}/{key}": f"{slices};" if hami else slices,
    }


def _slice(text: str) -> list[str]:
    parts = str(text).split("/")
    if len(parts) != 3:
        raise ShorthandError(f"holds: {text!r} is not card/MiB/cores")
    return parts


def _checked(where: str, given: Object, known: set[str]) -> str:
    """The family, when all keys are *known*."""
    unknown = sorted(set(given) - known)
    family = str(given.get("family", "hami"))
    if unknown:
        raise ShorthandError(f"{where}: unknown key {unknown[0]!r}; known keys: {', '.join(sorted(known))}")
    if family not in FAMILIES:
        raise ShorthandError(f"{where}: unknown family {family!r}; known: {', '.join(FAMILIES)}")
    return family
