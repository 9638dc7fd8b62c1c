"""Scores of one task class over all nodes, kept up to date row by row.

A ladder holds, for every node, the score of placing the next pod of its class there, and the scores of
the ones after that: its rungs. Taking a node climbs one rung, so placing k equal pods one after
another costs k times "find the largest head", without asking a plugin again. That is exact because
scorers of scope ``AMOUNTS`` see nothing of a node but its amounts, and the rungs were computed with the
amounts as they will be. Whatever changes a node otherwise changes its ``version``; its row is then
computed anew.

Classes that a scorer or check of scope ``NODE`` looks at have one rung: their row is computed again
after each placement. Only a check that counts what is taken ahead itself leaves them all (``foresees``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.points import Check, Scope, Scorer
from volcano_py.scheduler.framework.view import NodeView
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.resources import Ints, Mask, Rows32, Scores

UNFIT: Final = -np.inf
RUNGS: Final = 8
_WIDE: Final = 1024
"""Of more rows than this only the first two rungs are computed at once: most of them are never climbed."""
_WIDE_LOCAL: Final = 32
"""The same where checks look at more than amounts: their rungs cost more."""
_NEXT: Final = 64
"""Rows of which the other rungs are computed together with those of one that is out of them."""
_MANY: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Rules:
    """The checks and scorers that a class cares about, by what they depend on.

    Attributes:
        foreseen: the local checks count what is taken ahead.
    """

    static: tuple[Check, ...]
    local: tuple[Check, ...]
    cluster: tuple[Check, ...]
    scorers: tuple[Scorer, ...]
    relative: tuple[Scorer, ...]
    foreseen: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """What decides a row, by name."""
        checks = (check.name for check in (*self.static, *self.local))
        return (*checks, *(scorer.name for scorer in self.scorers))

    @property
    def rungs(self) -> int:
        """How many pods ahead a row can be known."""
        by_amounts = self.foreseen and all(s.scope <= Scope.AMOUNTS for s in self.scorers)
        return RUNGS if by_amounts else 1


def rules_for(klass: TaskClass, checks: list[Check], scorers: list[Scorer]) -> Rules:
    """Those of *checks* and *scorers* that apply to *klass*."""
    mine = [check for check in checks if check.applies(klass)]
    opinions = [scorer for scorer in scorers if scorer.applies(klass)]
    local = tuple(c for c in mine if c.scope in (Scope.AMOUNTS, Scope.NODE))
    return Rules(
        tuple(c for c in mine if c.scope == Scope.STATIC),
        local,
        tuple(c for c in mine if c.scope == Scope.CLUSTER),
        tuple(s for s in opinions if s.scope != Scope.CLUSTER),
        tuple(s for s in opinions if s.scope == Scope.CLUSTER),
        all(check.foresees is not None and check.foresees(klass) for check in local),
    )


def free_amounts(state: ClusterState, rows: Rows32) -> Ints:
    """(n, R) what a pod may take now: idle, less what is promised beyond what is being released."""
    nodes = state.nodes
    late = np.minimum(nodes.releasing[rows] - nodes.pipelined[rows], 0)
    free: Ints = nodes.allocatable[rows] - nodes.used[rows] + late
    return free


def capacity(free: Ints, request: Ints) -> Ints:
    """(n,) how many pods asking *request* (R,) fit into *free* (n, R); columns not asked don't matter."""
    asked = np.flatnonzero(request)
    if len(asked) == 0:
        return np.full(len(free), _MANY, np.int64)
    fits: Ints = (free[:, asked] // request[asked]).min(axis=1)
    return np.maximum(fits, 0)


class Ladder:
    """See the module; positions are indices into ``order``.

    Attributes:
        order: (n,) live node rows in tie order.
        rules: what is asked, as of the session it was asked in last.
        asked_in: number of that session.
        head: (n,) score of the next pod, ``UNFIT`` where it doesn't fit.
        rung: (n,) rungs climbed since the row was computed.
    """

    def __init__(self, klass: TaskClass) -> None:
        self.klass = klass
        self.rules = Rules((), (), (), (), ())
        self.order: Rows32 = np.zeros(0, np.int32)
        self.head: Scores = np.zeros(0)
        self.rung: NDArray[np.int64] = np.zeros(0, np.int64)
        self._seen: Ints = np.zeros(0, np.int64)
        self._ahead: Ints = np.zeros(0, np.int64)
        self._rungs: Scores = np.zeros((0, 1))
        self._last: NDArray[np.int64] = np.zeros(0, np.int64)
        self._static: Mask = np.zeros(0, np.bool_)
        self._position: Rows32 = np.zeros(0, np.int32)
        self._epochs: tuple[int, int] = (-1, -1)
        self._generation = -1
        self.asked_in = -1

    @property
    def rungs(self) -> int:
        """Pods ahead that a row is known for; 1 means: book each pod before taking the next."""
        return int(self._rungs.shape[1])

    @property
    def cells(self) -> int:
        """Size, for bounding what is kept."""
        return self._rungs.size + 4 * len(self.order)

    def is_current(self, state: ClusterState, generation: int) -> bool:
        """Nothing on any node, and none of the rules, has changed since the last ``refresh``."""
        nodes = state.nodes
        return self._epochs == (nodes.static_epoch, nodes.epoch) and self._generation == generation

    def refresh(self, state: ClusterState, rules: Rules, generation: int) -> None:
        """Bring every row up to date; *generation* changes when *rules* may have."""
        nodes = state.nodes
        changed = self._generation != generation or rules.names != self.rules.names
        self.rules, self._generation = rules, generation
        if changed or self._epochs[0] != nodes.static_epoch:
            self._rebuild(state)
        elif self._epochs[1] != nodes.epoch:
            stale = np.flatnonzero(nodes.version[self.order] != self._seen)
            if len(stale):
                self._compute(state, stale)
        self._epochs = (nodes.static_epoch, nodes.epoch)

    @property
    def is_full(self) -> bool:
        """No node takes another pod."""
        return not (len(self.head) and self.head.max() > UNFIT)

    def take(self, state: ClusterState, count: int) -> list[int]:
        """Positions of the nodes for the next *count* pods, best first at each step; fewer if full.

        Nothing is booked: ``applied`` says that the caller has done so.
        """
        taken: list[int] = []
        head, rung, rungs, last = self.head, self.rung, self._rungs, self._last
        for _ in range(count if len(head) else 0):
            best = int(head.argmax())
            if head[best] == UNFIT:
                break
            taken.append(best)
            self._ahead[best] += 1
            if rung[best] == last[best]:
                self._extend(state, best)
                continue
            rung[best] += 1
            head[best] = rungs[best, rung[best]]
        return taken

    def applied(self, state: ClusterState, positions: list[int]) -> None:
        """The pods taken at *positions* are in the books now, and nothing else has changed there.

        With one rung there is nothing to climb: the rows are stale until the next ``refresh``, which
        computes them together with what other classes have changed by then.
        """
        rows = np.array(positions, np.int64)
        self._ahead[rows] = 0
        if self.rungs == 1:
            return
        self._seen[rows] = state.nodes.version[self.order[rows]]
        self._epochs = (state.nodes.static_epoch, state.nodes.epoch)

    def position(self, row: int) -> int:
        """Where node *row* stands in ``order``, -1 if it is not live."""
        return int(self._position[row]) if row < len(self._position) else -1

    def _rebuild(self, state: ClusterState) -> None:
        nodes, rules = state.nodes, self.rules
        self.order = nodes.order
        count = len(self.order)
        self._position = np.full(len(nodes.version), -1, np.int32)
        self._position[self.order] = np.arange(count, dtype=np.int32)
        self.head = np.full(count, UNFIT)
        self.rung = np.zeros(count, np.int64)
        self._ahead = np.zeros(count, np.int64)
        self._seen = np.zeros(count, np.int64)
        self._rungs = np.full((count, rules.rungs), UNFIT)
        self._last = np.zeros(count, np.int64)
        view = NodeView(state, self.order)
        self._static = np.ones(count, np.bool_)
        for check in rules.static:
            self._static &= check.mask(self.klass, view)
        if count:
            self._compute(state, np.arange(count))

    def _extend(self, state: ClusterState, position: int) -> None:
        """Row *position* is out of rungs: compute more, also for rows that soon will be."""
        if self._rungs.shape[1] == 1:
            self.head[position] = UNFIT
            return
        low = self.rung > self._last // 2
        shallow = np.flatnonzero(~low & (self._last < self._rungs.shape[1] - 1))
        if len(shallow):  # those that are climbed next, if the best are filled one after another
            low[shallow[np.argsort(-self.head[shallow], kind="stable")[:_NEXT]]] = True
        self._compute(state, np.flatnonzero(low), keep_ahead=True)

    def _compute(
        self, state: ClusterState, positions: NDArray[np.int64], *, keep_ahead: bool = False
    ) -> None:
        """Scores of the next rungs at *positions*, from the books and what is taken but not booked."""
        rows = self.order[positions]
        if not keep_ahead:
            self._ahead[positions] = 0
        ahead = self._ahead[positions]
        self._seen[positions] = state.nodes.version[rows]
        self.rung[positions] = 0
        request = self.klass.request
        fits = capacity(free_amounts(state, rows), request) - ahead
        fits[~self._static[positions]] = 0
        depth = self._rungs.shape[1]
        wide = _WIDE_LOCAL if self.rules.local else _WIDE
        depth = min(depth, 2) if len(positions) > wide and not keep_ahead else depth
        scores = np.full((len(positions), depth), UNFIT)
        open_rows = np.flatnonzero(fits > 0)
        if len(open_rows):
            self._score(state, rows[open_rows], ahead[open_rows], fits[open_rows], scores, open_rows)
        self._rungs[positions, :depth] = scores
        self._last[positions] = depth - 1
        self.head[positions] = scores[:, 0]

    def _score(
        self,
        state: ClusterState,
        rows: Rows32,
        ahead: Ints,
        fits: Ints,
        scores: Scores,
        where: NDArray[np.int64],
    ) -> None:
        """Fill ``scores[where]`` (rungs) for node *rows* that take *fits* more pods."""
        rungs = scores.shape[1]
        if rungs == 1:
            view, passed = NodeView(state, rows), fits > 0
        else:
            view = self._view_ahead(state, rows, ahead, rungs)
            passed = np.repeat(fits, rungs) > np.tile(np.arange(rungs), len(rows))
        total = np.zeros(len(view.rows))
        for scorer in self.rules.scorers:
            total += scorer.score(self.klass, view)
        for check in self.rules.local:
            passed &= check.mask(self.klass, view)
        scores[where] = np.where(passed, total, UNFIT).reshape(len(rows), rungs)

    def _view_ahead(self, state: ClusterState, rows: Rows32, ahead: Ints, rungs: int) -> NodeView:
        """Each of *rows* *rungs* times, with *ahead* and then one more pod at each rung."""
        repeated = np.repeat(rows, rungs)
        times = (ahead[:, None] + np.arange(rungs)).ravel()
        nodes, (cpu, memory) = state.nodes, self.klass.signature.nonzero
        used = nodes.used[repeated]
        for column in np.flatnonzero(self.klass.request).tolist():
            used[:, column] += times * self.klass.request[column]
        return NodeView(
            state,
            repeated,
            used=used,
            nonzero_cpu=nodes.nonzero_cpu[repeated] + times * cpu,
            nonzero_memory=nodes.nonzero_memory[repeated] + times * memory,
            ahead=times,
        )
