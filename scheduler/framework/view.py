"""What a predicate or scorer sees of some nodes, as they are or as they would be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from volcano_py.scheduler.model.resources import Ints, Rows32

if TYPE_CHECKING:
    from volcano_py.scheduler.model.cluster import ClusterState


@dataclass(frozen=True, slots=True, eq=False)
class NodeView:
    """*n* node rows; a row may appear more than once, with different hypothetical amounts.

    Attributes:
        state: the cluster (for labels, cards, coupling); read only.
        rows: (n,) node rows.
        allocatable: (n, R) int64.
        used: (n, R) int64; in a future view without what is releasing and with what is promised.
        nonzero_cpu, nonzero_memory: (n,) int64, see ``NodeTable``.
        future: asked about the time when releasing pods are gone and promised ones are there. Checks
            of scope ``NODE`` and ``CLUSTER`` must then count neither / both.

    Scorers of scope ``CLUSTER`` are given all nodes that passed the checks, and no others, since their
    scores are relative to those.
    """

    state: ClusterState
    rows: Rows32
    allocatable: Ints
    used: Ints
    nonzero_cpu: Ints
    nonzero_memory: Ints
    future: bool = False


def view_of(state: ClusterState, rows: Rows32, *, future: bool = False) -> NodeView:
    """The nodes *rows* as they stand (or, *future*, will stand)."""
    nodes = state.nodes
    used = nodes.used[rows]
    if future:
        used = used - nodes.releasing[rows] + nodes.pipelined[rows]
    return NodeView(
        state,
        rows,
        nodes.allocatable[rows],
        used,
        nodes.nonzero_cpu[rows],
        nodes.nonzero_memory[rows],
        future,
    )
