"""The options that say what pretend nodes have, for the commands that make some."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from volcano_py.simulator.kubelet.nodes import CardShape, NodeShape


class CardFamily(StrEnum):
    """Whose device plugin reports the cards, and so which resource names ask for them."""

    hami = "hami"
    volcano = "volcano"


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """What every node has."""

    gpus: Annotated[int, typer.Option("--gpus", min=0, max=64, help="Cards of each node; 0: none.")] = 8
    cpu: Annotated[str, typer.Option("--cpu", help="CPUs of each node.")] = "64"
    memory: Annotated[str, typer.Option("--memory", help="Memory of each node.")] = "512Gi"
    gpu_memory: Annotated[int, typer.Option("--gpu-memory", min=1, help="Memory of each card, in MiB.")] = (
        81920
    )
    gpu_slots: Annotated[
        int, typer.Option("--gpu-slots", min=1, max=1000, help="Pods that may share a card.")
    ] = 10
    gpu_model: Annotated[str, typer.Option("--gpu-model", help="Model of the cards.")] = (
        "NVIDIA-A100-SXM4-80GB"
    )
    gpu_family: Annotated[
        CardFamily,
        typer.Option(
            "--gpu-family", help="hami: pods ask for nvidia.com/gpu...; volcano: volcano.sh/vgpu-..."
        ),
    ] = CardFamily.hami
    zones: Annotated[
        int, typer.Option("--zones", min=1, max=26, help="Zones to deal the nodes out over.")
    ] = 1

    def shape(self) -> NodeShape:
        """The shape that the options describe."""
        family = self.gpu_family.value
        cards = CardShape(self.gpus, self.gpu_memory, self.gpu_slots, self.gpu_model, family)
        return NodeShape(cpu=self.cpu, memory=self.memory, cards=cards, zones=self.zones)
