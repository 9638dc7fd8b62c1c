"""Short forms for cards in scenarios: what a node has, what a pod asks, and what it sits on.

Turned into the annotations and resource names of the chosen family, so that nothing behind them knows
of short forms. Card *i* of node n1 is called ``n1-i``.
"""

from __future__ import annotations

from typing import Any, Final

from volcano_py.crds.cards.register import (
    HAMI_REGISTER,
    VOLCANO_REGISTER,
    CardReport,
    MigProfile,
    encode_hami,
    encode_volcano,
)
from volcano_py.crds.cards.scores import SCORES, encode_scores
from volcano_py.plugins.deviceshare.catalogue import STANDARD

Object = dict[str, Any]

CARD_KEYS: Final = {
    "count", "memory", "slots", "type", "mode", "family", "sick",
    "vendor", "cores", "zones", "numa", "links", "instances",
}  # fmt: skip
A100: Final = (
    MigProfile("1g.10gb", 9728, 15, 1, tuple((start, 1) for start in range(7))),
    MigProfile("2g.20gb", 19968, 29, 2, ((0, 2), (2, 2), (4, 2))),
    MigProfile("3g.40gb", 40192, 43, 4, ((0, 4), (4, 4))),
    MigProfile("7g.80gb", 80896, 100, 8, ((0, 8),)),
)
"""What an A100 of 80 GB can be cut into."""
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
    ``sick`` are unhealthy. ``vendor`` names another backend than NVIDIA's, ``cores`` (100) what a card has of
    them. ``zones`` and ``numa`` have an entry for each card, ``links`` one for each pair ("0-1": 50), and
    ``instances: a100`` lets cards report what an A100 of 80 GB can be cut into.
    """
    family = _checked(f"cards of node {node}", cards, CARD_KEYS)
    reports = [_report(node, cards, at) for at in range(int(cards.get("count", 1)))]
    shares = sum(report.slots for report in reports)
    notes = _links(node, cards)
    if "vendor" in cards:
        backend = STANDARD.backends.get(cards["vendor"])
        if backend is None or not backend.registers:
            raise ShorthandError(f"cards of node {node}: unknown vendor {cards['vendor']!r}")
        register = encode_hami(reports)
        return {backend.registers[0].key: register, **notes}, {backend.names.count[0]: str(shares)}
    if family == "volcano":
        amounts = {"number": shares, "memory": sum(report.memory_mib for report in reports)}
        amounts["cores"] = len(reports) * 100
        allocatable = {f"volcano.sh/vgpu-{name}": str(amount) for name, amount in amounts.items()}
        return {VOLCANO_REGISTER: encode_volcano(reports), **notes}, allocatable
    return {HAMI_REGISTER: encode_hami(reports), **notes}, {"nvidia.com/gpu": str(shares)}


def _report(node: str, cards: Object, at: int) -> CardReport:
    zones, numa = cards.get("zones"), cards.get("numa")
    return CardReport(
        uuid=f"{node}-{at}",
        index=at,
        slots=int(cards.get("slots", 10)),
        memory_mib=int(cards.get("memory", 16384)),
        cores=int(cards.get("cores", 100)),
        type=str(cards.get("type", cards.get("vendor", "NVIDIA-A100"))),
        numa=numa[at] if numa else 0,
        mode=cards.get("mode", "hami-core"),
        healthy=at not in cards.get("sick", []),
        mig=A100 if cards.get("instances") == "a100" else (),
        custom=(("NetworkID", int(zones[at])),) if zones else (),
    )


def _links(node: str, cards: Object) -> Object:
    """The annotation that tells how well cards are linked."""
    links = cards.get("links")
    if not links:
        return {}
    pairs = {tuple(pair.split("-")): int(score) for pair, score in links.items()}
    scores = {(f"{node}-{one}", f"{node}-{other}"): score for (one, other), score in pairs.items()}
    return {SCORES: encode_scores(scores)}


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
