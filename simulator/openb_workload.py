"""The published OpenB experiment's input: nodes, pods, and the workload that a seed makes of them.

Follows Weng et al., "Beware of Fragmentation", USENIX ATC 2023, as its simulator ran it: shuffle the
pods, tune their summed request to a ratio of the cluster's cards, and order the nodes at random, with
the same random numbers, so that seed 42 here is seed 42 there. Decides no placement. Neighbours:
``go_random`` for the numbers, ``openb_reference``, which plays a workload.
"""

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from volcano_py.plugins.deviceshare.placement.state import WHOLE_CARD, CardAsk, CardNodes
from volcano_py.simulator.go_random import GoRandom

Ints: TypeAlias = NDArray[np.int64]

MIB = 1 << 20
SIZE_CLASSES = ("gangs", "cards", "large-slices", "small-slices", "cpu-only")
_GANG_CARDS, _LARGE_SLICE = 4, 810
# Between pods and nodes the published run's scheduler starts ten watches, each of which draws one
# number. Found by trying 0 to 25 on three runs; with 10, all runs of the deterministic policies agree.
_WATCH_DRAWS = 10


@dataclass(frozen=True)
class Trace:
    """A cluster and a pod list.

    Attributes:
        nodes: empty, in the order of the file; ``row`` counts from 0.
        node_names: (N,) names.
        pod_names: (P,) names.
        asks: (P,) what each pod asks.
        models: names of the card models; a model's id is its place here.
    """

    nodes: CardNodes
    node_names: tuple[str, ...]
    pod_names: tuple[str, ...]
    asks: tuple[CardAsk, ...]
    models: tuple[str, ...]

    @property
    def total_milli(self) -> int:
        """Cards of the cluster, milli of a card."""
        return int(np.maximum(self.nodes.free, 0).sum())

    @property
    def cards(self) -> dict[int, int]:
        """Number of cards by model id."""
        per_node = (self.nodes.free >= 0).sum(axis=1)
        return {int(m): int(per_node[self.nodes.model == m].sum()) for m in np.unique(self.nodes.model)}

    def counts(self) -> list[tuple[CardAsk, int]]:
        """Distinct asks with the number of pods in the list, which is what a policy may expect."""
        return list(Counter(self.asks).items())


@dataclass(frozen=True)
class Workload:
    """What a seed makes of a trace.

    Attributes:
        arrivals: (A,) places in the pod list, in order of arrival; a pod may come more than once.
        node_order: (N,) node rows; of equally good nodes the earliest is taken.
        seed: that made it.
    """

    arrivals: Ints
    node_order: Ints
    seed: int


def read_trace(nodes: Path, pods: Path) -> Trace:
    """The cluster in *nodes* and the pod list in *pods*, two CSV files with the published columns.

    Raises:
        OSError: a file cannot be read.
        ValueError: a column is missing or a number is none; the message names file and line.
    """
    node_rows, pod_rows = _read_csv(nodes), _read_csv(pods)
    specs = [_Row(pods, i, row).text("gpu_spec", "") for i, row in enumerate(pod_rows)]
    hosted = [_Row(nodes, i, row).text("model") for i, row in enumerate(node_rows)]
    models = tuple(sorted({name for name in hosted if name} | {m for s in specs for m in s.split("|") if m}))
    ids = {name: i for i, name in enumerate(models)}
    asks = tuple(_ask(_Row(pods, i, row), ids) for i, row in enumerate(pod_rows))
    return Trace(
        _nodes([_Row(nodes, i, row) for i, row in enumerate(node_rows)], ids),
        tuple(row["sn"] for row in node_rows),
        tuple(row["name"] for row in pod_rows),
        asks,
        models,
    )


def tuned_workload(trace: Trace, seed: int, ratio: float = 1.3) -> Workload:
    """All pods shuffled, then topped up or thinned out until they ask for *ratio* of the cluster's cards.

    Extra pods are drawn with replacement from the list, up to the first one whose request *per card*
    would pass the limit; a list above the limit loses random pods until it is not.

    Raises:
        ValueError: pods are to be added, but none in the list asks for a card.
    """
    random = GoRandom(seed)
    random.int63()  # the published run logs one number first
    arrivals = sorted(range(len(trace.asks)), key=lambda pod: trace.pod_names[pod])
    by_name = list(arrivals)
    random.shuffle(arrivals)
    limit, asked = ratio * trace.total_milli, sum(ask.total_milli for ask in trace.asks)
    if asked > limit:
        _thin_out(arrivals, trace, asked - limit, random)
    elif asked < limit:
        arrivals += _extra(by_name, trace, limit - asked, random)
    return Workload(np.array(arrivals, dtype=np.int64), _node_order(trace.node_names, random), seed)


def size_class(ask: CardAsk) -> str:
    """The class in ``SIZE_CLASSES`` under which a pod is counted."""
    if ask.count == 0:
        return "cpu-only"
    if ask.count >= _GANG_CARDS:
        return "gangs"
    if ask.milli >= WHOLE_CARD:
        return "cards"
    return "large-slices" if ask.milli >= _LARGE_SLICE else "small-slices"


def _thin_out(arrivals: list[int], trace: Trace, excess: float, random: GoRandom) -> None:
    while excess > 0:
        excess -= trace.asks[arrivals.pop(random.intn(len(arrivals)))].total_milli


def _extra(pods: Sequence[int], trace: Trace, missing: float, random: GoRandom) -> list[int]:
    if not any(ask.milli for ask in trace.asks):
        raise ValueError("no pod of the list asks for a card: nothing to reach the ratio with")
    extra: list[int] = []
    while True:
        pod = pods[random.intn(len(pods))]
        if trace.asks[pod].milli > missing:
            return extra
        missing -= trace.asks[pod].total_milli
        extra.append(pod)


def _node_order(names: Sequence[str], random: GoRandom) -> Ints:
    for _ in range(_WATCH_DRAWS):
        random.int63()
    by_name = sorted(range(len(names)), key=lambda row: names[row])
    return np.array(by_name, dtype=np.int64)[np.argsort(random.permutation(len(names)))]


def _read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@dataclass(frozen=True)
class _Row:
    """A CSV row that can say where it is."""

    path: Path
    index: int
    values: dict[str, str]

    def text(self, column: str, default: str | None = None) -> str:
        value = self.values.get(column, default)
        if value is None:
            raise ValueError(f"{self._place}: no column {column!r}")
        return value

    def number(self, column: str) -> int:
        try:
            return int(self.text(column))
        except ValueError as error:
            raise ValueError(f"{self._place}: {column}: {error}") from error

    @property
    def _place(self) -> str:
        return f"{self.path}, line {self.index + 2}"


def _ask(row: _Row, ids: dict[str, int]) -> CardAsk:
    named = frozenset(ids[name] for name in row.text("gpu_spec", "").split("|") if name)
    count = row.number("num_gpu")
    return CardAsk(
        row.number("cpu_milli"),
        row.number("memory_mib") * MIB,
        row.number("gpu_milli") if count else 0,
        count,
        named or None,
    )


def _nodes(rows: Sequence[_Row], ids: dict[str, int]) -> CardNodes:
    cards = [row.number("gpu") for row in rows]
    free = np.full((len(rows), max([*cards, 1])), -1, dtype=np.int32)
    for i, count in enumerate(cards):
        free[i, :count] = WHOLE_CARD
    return CardNodes(
        np.arange(len(rows), dtype=np.int64),
        np.array([row.number("cpu_milli") for row in rows], dtype=np.int64),
        np.array([row.number("memory_mib") * MIB for row in rows], dtype=np.int64),
        free,
        np.array([ids.get(row.text("model"), -1) for row in rows], dtype=np.int32),
        np.zeros(len(rows), dtype=np.int64),
    )
