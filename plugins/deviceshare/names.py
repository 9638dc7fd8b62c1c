"""Resource names and annotations of card slices, in both families, with what each means.

``volcano.sh`` is Volcano's device plugin, ``hami.io`` (resources under ``nvidia.com``) is HAMi's. An ask in
either spelling fits a node of either family. Neighbours: ``asks``, ``register`` and ``records``, which read
and write them.
"""

from __future__ import annotations

from typing import Final

from volcano_py.crds.cards.names import NVIDIA

VOLCANO: Final = "volcano.sh"
HAMI: Final = "hami.io"

# Resources of a container.
COUNT: Final = NVIDIA.count
NVIDIA_COUNT: Final = COUNT[0]
MEMORY: Final = NVIDIA.memory
PERCENT: Final = NVIDIA.percent
CORES: Final = NVIDIA.cores
PRIORITY: Final = NVIDIA.priority
"""How a container ranks among those it shares a card with: written as an amount, and nothing to hold."""
ALL: Final = frozenset(NVIDIA)
NOT_OFFERED: Final = frozenset((*PERCENT, *PRIORITY))
"""Asked for, but no amount that a node could have."""
BOOKED: Final = NVIDIA.books
"""(shares, MiB, percent): queues, jobs and totals carry each meaning under both of its names."""
MEASURES: Final = {
    name: measure
    for names, measure in zip(BOOKED, ("slots", "memory", "cores"), strict=True)
    for name in names
}
ALIASES: Final = NVIDIA.aliases

# Annotations of a node.
REGISTER_HAMI: Final = "hami.io/node-nvidia-register"
REGISTER_VOLCANO: Final = "volcano.sh/node-vgpu-register"
CORDON: Final = "hami.io/device-cordon"

HANDSHAKES: Final = ("hami.io/node-handshake", "volcano.sh/node-vgpu-handshake")
"""Beginnings of annotations that device plugins rewrite twice a minute on every node."""

# Wishes of a pod.
USE_TYPE: Final = "nvidia.com/use-gputype"
NOT_TYPE: Final = "nvidia.com/nouse-gputype"
USE_UUID: Final = ("nvidia.com/use-gpuuuid", "volcano.sh/vgpu-use-gpuuuid")
NOT_UUID: Final = ("nvidia.com/nouse-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid")
MODE_WITHIN: Final = "nvidia.com/vgpu-mode"
MODE_EQUAL: Final = "volcano.sh/vgpu-mode"
NUMA_BIND: Final = "nvidia.com/numa-bind"
CARD_POLICY: Final = "hami.io/gpu-scheduler-policy"
NODE_POLICY: Final = "hami.io/node-scheduler-policy"
NOT_HONOURED: Final = ("hami.io/device-scoring-weights", "volcano.sh/vgpu-podgroup-policy")

MIG: Final = "mig"
CARD_WORD: Final = "NVIDIA"
"""The vendor's word in a record."""
WHOLE_CORES: Final = 100
MILLI: Final = 1000
"""Base units of one whole, for every resource above."""
