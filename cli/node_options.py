"""The options that say what pretend nodes have, for the commands that make some."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from volcano_py.simulator.kubelet.nodes import CardShape, NodeShape


class CardFamily(StrEnum):
    """Whose device plugin reports the cards, and so which resource names ask for them."""

    hami = "hami"
    volcano = "volcano"


Cpu = Annotated[str, typer.Option("--cpu", help="CPUs of each node.")]
Memory = Annotated[str, typer.Option("--memory", help="Memory of each node.")]
Gpus = Annotated[int, typer.Option("--gpus", min=0, max=64, help="Cards of each node; 0: none.")]
GpuMemory = Annotated[int, typer.Option("--gpu-memory", min=1, help="Memory of each card, in MiB.")]
GpuSlots = Annotated[int, typer.Option("--gpu-slots", min=1, max=1000, help="Pods that may share a card.")]
GpuModel = Annotated[str, typer.Option("--gpu-model", help="Model of the cards.")]
Family = Annotated[
    CardFamily,
    typer.Option("--gpu-family", help="hami: pods ask for nvidia.com/gpu...; volcano: volcano.sh/vgpu-..."),
]
Zones = Annotated[int, typer.Option("--zones", min=1, max=26, help="Zones to deal the nodes out over.")]


def shape_of(
    cpu: str,
    memory: str,
    gpus: int,
    gpu_memory: int,
    gpu_slots: int,
    gpu_model: str,
    gpu_family: CardFamily,
    zones: int,
) -> NodeShape:
    """The shape that the options describe."""
    cards = CardShape(gpus, gpu_memory, gpu_slots, gpu_model, gpu_family.value)
    return NodeShape(cpu=cpu, memory=memory, cards=cards, zones=zones)
