"""What a predicate or scorer sees of some nodes, as they are or as they would be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volcano_py.scheduler.model.resources import Ints, Rows32

if TYPE_CHECKING:
    from volcano_py.scheduler.model.cluster import ClusterState


class NodeView:
    """*n* node rows; a row may appear more than once, with different hypothetical amounts.

    Amounts are gathered when somebody looks at them: many checks never do. Scorers of scope
    ``CLUSTER`` are given all nodes that passed the checks, and no others, since their scores are
    relative to those.

    Attributes:
        state: the cluster (for labels, cards, coupling); read only.
        rows: (n,) node rows.
        future: asked about the time when releasing pods are gone and promised ones are there. Checks
            of scope ``NODE`` and ``CLUSTER`` must then count neither / both. In a view of now, who is
            promised a place already keeps away whom he would not bear beside him.
        ahead: (n,) pods of the class asked about that are taken there and not booked; None: none.
    """

    __slots__ = ("_allocatable", "_cpu", "_memory", "_used", "ahead", "future", "rows", "state")

    def __init__(
        self,
        state: ClusterState,
        rows: Rows32,
        allocatable: Ints | None = None,
        used: Ints | None = None,
        nonzero_cpu: Ints | None = None,
        nonzero_memory: Ints | None = None,
        *,
        future: bool = False,
        ahead: Ints | None = None,
    ) -> None:
        """Amounts given here are hypothetical; those left out are the nodes' own."""
        self.state, self.rows, self.future, self.ahead = state, rows, future, ahead
        self._allocatable, self._used = allocatable, used
        self._cpu, self._memory = nonzero_cpu, nonzero_memory

    @property
    def allocatable(self) -> Ints:
        """(n, R) int64 base units."""
        if self._allocatable is None:
            self._allocatable = self.state.nodes.allocatable[self.rows]
        return self._allocatable

    @property
    def used(self) -> Ints:
        """(n, R) int64; in a future view without what is releasing and with what is promised."""
        if self._used is None:
            nodes = self.state.nodes
            self._used = nodes.used[self.rows]
            if self.future:
                self._used += nodes.pipelined[self.rows] - nodes.releasing[self.rows]
        return self._used

    @property
    def nonzero_cpu(self) -> Ints:
        """(n,) milli-CPU used, see ``NodeTable``."""
        if self._cpu is None:
            self._cpu = self.state.nodes.nonzero_cpu[self.rows]
        return self._cpu

    @property
    def nonzero_memory(self) -> Ints:
        """(n,) bytes used, see ``NodeTable``."""
        if self._memory is None:
            self._memory = self.state.nodes.nonzero_memory[self.rows]
        return self._memory
