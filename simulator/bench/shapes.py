"""Benchmark shapes and what is expected of them, out of ``benchmarks/*.csv``."""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

BENCHMARKS: Final = Path(__file__).resolve().parents[2] / "benchmarks"
"""Where the project keeps them; an installed package has none and is given a folder."""

GROWTH_NODES: Final = (1_000, 2_000, 5_000, 10_000)
GROWTH_PODS: Final = (2_000, 4_000, 8_000, 16_000)


@dataclass(frozen=True)
class Shape:
    """A cluster and what comes to it: the columns of ``shapes.csv``.

    Attributes:
        node_gpus, pod_gpus: whole cards, as ``nvidia.com/gpu``; 0: none.
        jobs, pods_per_job, min_available: equal PodGroups; a minimum of 0 is no gang.
        note: what is special; ``course`` knows such shapes by name.
    """

    name: str
    nodes: int
    node_cpu_milli: int
    node_mem_mib: int
    node_gpus: int
    queues: int
    jobs: int
    pods_per_job: int
    min_available: int
    pod_cpu_milli: int
    pod_mem_mib: int
    pod_gpus: int
    note: str = ""

    @property
    def pods(self) -> int:
        """Pods of all jobs."""
        return self.jobs * self.pods_per_job


@dataclass(frozen=True)
class Target:
    """What a shape is held against.

    Attributes:
        cpu_s: CPU seconds it may take.
        volcano_cpu_s: what Volcano's own scheduler code took (August 2026, 2-core machine, looking at
            a sample of 420 to 500 nodes); of a range, the lower end. None where it was not measured.
        note: more about that figure.
    """

    cpu_s: float
    volcano_cpu_s: float | None
    note: str


def read_shapes(folder: Path = BENCHMARKS) -> dict[str, Shape]:
    """Every shape by name, in file order; raises ``OSError`` or ``ValueError`` on a bad file."""
    return {shape.name: shape for shape in map(shape_of, _rows(folder / "shapes.csv"))}


def read_targets(folder: Path = BENCHMARKS) -> dict[str, Target]:
    """What is expected, by shape name."""
    return {
        row["shape"]: Target(
            float(row["target_cpu_s"]),
            float(row["volcano_cpu_s"]) if row["volcano_cpu_s"] else None,
            row["volcano_note"],
        )
        for row in _rows(folder / "targets.csv")
    }


def shape_of(row: dict[str, Any]) -> Shape:
    """The shape in a row of the file (or of JSON)."""
    values: dict[str, Any] = {}
    for column in fields(Shape):
        value = row[column.name]
        values[column.name] = value if column.name in ("name", "note") else int(value)
    return Shape(**values)


def growth_in_nodes(shapes: dict[str, Shape]) -> list[Shape]:
    """20 gangs of 500 on ever more nodes."""
    base = shapes["ksp-s7"]
    return [replace(base, name=f"20x500 on {count} nodes", nodes=count) for count in GROWTH_NODES]


def growth_in_pods(shapes: dict[str, Shape]) -> list[Shape]:
    """Ever more gangs of 20 on 1,000 nodes."""
    base = shapes["ksp-s6"]
    return [
        replace(base, name=f"{count} pods in gangs of 20", jobs=count // base.pods_per_job)
        for count in GROWTH_PODS
    ]


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
