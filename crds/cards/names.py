"""Resources by which a container asks for cards, in all spellings that are about.

Memory is in MiB and cores are in percent, both a share. Neighbours: ``register``, ``records``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ResourceNames:
    """Spellings of each meaning; books are kept under the first *booked* of them.

    Attributes:
        count: shares, each of another card.
        memory: MiB of each.
        percent: part of a card's memory, of each.
        cores: percent of a card's computing, of each.
        priority: rank among those who share a card; nothing to hold.
        booked: spellings under which queues and nodes carry a meaning.
    """

    count: tuple[str, ...]
    memory: tuple[str, ...] = ()
    percent: tuple[str, ...] = ()
    cores: tuple[str, ...] = ()
    priority: tuple[str, ...] = ()
    booked: int = 1

    def __iter__(self) -> Iterator[str]:
        for spellings in (self.count, self.memory, self.percent, self.cores, self.priority):
            yield from spellings

    @property
    def books(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """(shares, MiB, percent): the names that books carry each under."""
        return self.count[: self.booked], self.memory[: self.booked], self.cores[: self.booked]

    @property
    def aliases(self) -> dict[str, str]:
        """Further spellings -> the name that stands in the books."""
        return {
            spelling: spellings[0]
            for spellings in (self.count, self.memory, self.cores)
            for spelling in spellings[self.booked :]
        }


ACCELERATOR: Final = "volcano-py.io/accelerator"
"""Shares of any vendor's cards, asked for by one name."""
NVIDIA: Final = ResourceNames(
    count=("nvidia.com/gpu", "volcano.sh/vgpu-number"),
    memory=("nvidia.com/gpumem", "volcano.sh/vgpu-memory", "nvidia.com/gpu-mem"),
    percent=("nvidia.com/gpumem-percentage", "volcano.sh/vgpu-memory-percentage"),
    cores=("nvidia.com/gpucores", "volcano.sh/vgpu-cores", "nvidia.com/gpucompute"),
    priority=("nvidia.com/priority",),
    booked=2,
)
"""HAMi's and Volcano's names of NVIDIA cards; a share in either is one of the same cards."""
