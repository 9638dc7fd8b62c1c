"""Words that all vendors' cards share: families, modes, annotations of pods and nodes that HAMi defines.

``volcano.sh`` is Volcano's device plugin, ``hami.io`` is HAMi's. An ask in either spelling fits a node of
either family. What differs between vendors stands in ``backends``.
"""

from __future__ import annotations

from typing import Final

from volcano_py.crds.cards.names import NVIDIA
from volcano_py.crds.cards.register import HAMI_HANDSHAKE, VOLCANO_HANDSHAKE

VOLCANO: Final = "volcano.sh"
HAMI: Final = "hami.io"

BOOKED: Final = NVIDIA.books
"""(shares, MiB, percent): queues, jobs and totals carry each meaning under both of its names."""
MEASURES: Final = {
    name: measure
    for names, measure in zip(BOOKED, ("slots", "memory", "cores"), strict=True)
    for name in names
}

HANDSHAKES: Final = (HAMI_HANDSHAKE, VOLCANO_HANDSHAKE)
"""Beginnings of annotations that device plugins rewrite twice a minute on every node."""
CARD_POLICY: Final = "hami.io/gpu-scheduler-policy"
NODE_POLICY: Final = "hami.io/node-scheduler-policy"
NUMA_BIND: Final = "nvidia.com/numa-bind"
WEIGHTS: Final = "hami.io/device-scoring-weights"
NOT_HONOURED: Final = ("volcano.sh/vgpu-podgroup-policy",)

MIG: Final = "mig"
SOFT: Final = "hami-core"
"""The mode of cards from which any amounts are handed out."""
MINOR: Final = "minor"
"""Among the further numbers of a card's report: the number of its device's file."""
WHOLE_CORES: Final = 100
MILLI: Final = 1000
"""Base units of one whole, for every resource of cards."""
