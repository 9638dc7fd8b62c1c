"""A cluster of cards and jobs of slices: every node registers cards, every job asks for one of a few parts.

Neighbours: ``course``, which measures it; ``simulator.card_shorthand`` for how cards are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from volcano_py.simulator.bench.manifests import Document, amounts, group, nodes, pod
from volcano_py.simulator.bench.shapes import Shape
from volcano_py.simulator.card_shorthand import asked, node_cards

CARD_MIB: Final = 24576
ASKS: Final = (
    {"memory": 4096, "cores": 10},
    {"memory": 8192, "cores": 25},
    {"memory": 2048},
    {"memory": 12288, "cores": 40},
    {"percent": 20, "cores": 20},
    {"memory": 6144, "cores": 30},
    {"memory": 3072, "cores": 5},
    {"memory": 20480, "cores": 60},
)
"""What a share of the first job asks, of the second, and so on round."""


def card_nodes(shape: Shape) -> Iterator[Document]:
    """The nodes of *shape*, each with its cards registered."""
    for document in nodes(shape):
        cards = {"count": shape.node_gpus, "memory": CARD_MIB}
        notes, offered = node_cards(document["metadata"]["name"], cards)
        document["metadata"]["annotations"] = notes
        status = {name: {**given, **offered} for name, given in document["status"].items()}
        yield {**document, "status": status}


def slice_job(shape: Shape, index: int, in_queue: str) -> Iterator[Document]:
    """Job *index* of *shape*: a gang of slices."""
    name, ask = f"job-{index:05}", ASKS[index % len(ASKS)]
    request = {**amounts(shape.pod_cpu_milli, shape.pod_mem_mib, 0), **asked(ask)}
    yield group(name, shape.min_available, in_queue=in_queue)
    for number in range(shape.pods_per_job):
        yield pod(name, number, request)
