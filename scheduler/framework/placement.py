"""Placing pods of a class: which nodes pass, which is best, and why none does.

``Placer`` lives as long as the engine; it keeps a ladder a class, so that what was computed for one
job serves the next one and the next cycle. Batches equal one-by-one placement (``tests/framework``
compares with a slow placer).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import numpy as np

from volcano_py.scheduler.framework.explain import explain_nodes
from volcano_py.scheduler.framework.ladder import UNFIT, Ladder, capacity, rules_for
from volcano_py.scheduler.framework.points import Scope
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.framework.view import NodeView
from volcano_py.scheduler.model.cards import CardChoice
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.resources import Mask, Rows32, Scores

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session
    from volcano_py.scheduler.framework.statement import Statement

_KEPT_CELLS: Final = 8_000_000
"""Rungs kept over all ladders (8 bytes each); the least recently used go first."""


class Placer:
    """Ladders by class, and placement through them."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self._ladders: OrderedDict[int, Ladder] = OrderedDict()
        self._generation = 0
        self._sessions = 0
        self._signature: tuple[object, ...] = ()
        self._refusals: dict[int, tuple[TaskClass, int, Refusal]] = {}
        self._cells = 0
        self._leaving_at = -1
        self._leaving_mask: Mask = np.zeros(0, np.bool_)

    def begin(self, session: Session) -> None:
        """A new cycle's functions: the ladders stay valid unless other checks or scorers are hung."""
        points = session.points
        self._checks = [entry.call for entry in points.predicate]
        self._scorers = [entry.call for entry in points.node_order]
        self._session = session
        self._sessions += 1
        names = tuple((e.plugin, e.call.name) for e in (*points.predicate, *points.node_order))
        if names != self._signature:
            self._signature = names
            self.invalidate()

    def invalidate(self) -> None:
        """Everything a plugin said of nodes may have changed (new arguments, new measurements)."""
        self._generation += 1
        self._refusals.clear()

    def ladder(self, klass: TaskClass) -> Ladder:
        """The ladder of *klass*, up to date."""
        found = self._ladders.get(klass.row)
        if found is None or found.klass is not klass:
            self._cells -= 0 if found is None else found.cells
            found = self._ladders[klass.row] = Ladder(klass)
        self._ladders.move_to_end(klass.row)
        if found.asked_in != self._sessions or not found.is_current(self.state, self._generation):
            # A new session's functions take the place of the old ones, whose sessions are over.
            found.asked_in = self._sessions
            self._cells -= found.cells
            found.refresh(self.state, rules_for(klass, self._checks, self._scorers), self._generation)
            self._cells += found.cells
            self._trim()
        return found

    def climbable(self, klass: TaskClass) -> Ladder | None:
        """The ladder of *klass* if its pods can be placed ahead of the books; else None."""
        if klass.cards is not None:
            return None
        ladder = self.ladder(klass)
        rules = ladder.rules
        return ladder if ladder.rungs > 1 and not (rules.cluster or rules.relative) else None

    def fill(
        self, statement: Statement, klass: TaskClass, tasks: Rows32, *, within: Mask | None = None
    ) -> int:
        """Allocate the first of *tasks* (k,), of one job, to the best nodes one after another.

        Args:
            statement: takes the placements.
            klass: their class.
            tasks: (k,) pending tasks in placement order.
            within: (capacity of node rows,) True where they may go; None for anywhere.

        Returns:
            How many were placed; the rest finds no node with idle room.
        """
        ladder = self.ladder(klass)
        rules = ladder.rules
        if not rules.cluster and not rules.relative and within is None and not self._session.points.best_node:
            if ladder.rungs > 1:
                return self._fill_batch(statement, ladder, tasks)
            return self._fill_single(statement, ladder, tasks)
        return self._fill_coupled(statement, ladder, tasks, within)

    def place_on(self, statement: Statement, klass: TaskClass, task: int, row: int) -> bool:
        """Allocate *task* to node *row* if it fits there now."""
        position = self.ladder(klass).position(row)
        if position < 0:
            return False
        within = np.zeros(len(self.state.nodes.version), np.bool_)
        within[row] = True
        return self.fill(statement, klass, np.array([task], np.int32), within=within) == 1

    def fill_future(
        self, statement: Statement, klass: TaskClass, tasks: Rows32, *, anywhere: bool = False
    ) -> int:
        """Promise *tasks* (k,), one after another, the best nodes where they fit once pods are gone.

        Only nodes with pods on their way out are looked at, or, *anywhere*, all (where it is the
        queue's limit and not the nodes that asks for waiting).
        """
        for placed in range(len(tasks)):
            rows = self.future_rows(klass, anywhere=anywhere)
            if len(rows) == 0:
                return placed
            row = self._best_future(klass, rows)
            statement.pipeline(
                tasks[placed : placed + 1], np.array([row], np.int32), self.cards(klass, row, future=True)
            )
        return len(tasks)

    def future_rows(self, klass: TaskClass, *, anywhere: bool = False) -> Rows32:
        """(m,) rows, in tie order, where a pod of *klass* fits once releasing pods are gone."""
        nodes = self.state.nodes
        rows = nodes.order if anywhere else nodes.order[self._leaving()]
        if len(rows) == 0:
            return rows
        return rows[self.fits_future(klass, rows)]

    def fits_future(self, klass: TaskClass, rows: Rows32) -> Mask:
        """(n,) which of *rows* pass every check, resources included, once releasing pods are gone."""
        view = NodeView(self.state, rows, future=True)
        return self._checked(klass, view, capacity(view.allocatable - view.used, klass.request) > 0)

    def passes_future(self, klass: TaskClass, rows: Rows32) -> Mask:
        """(n,) which of *rows* lack nothing but amounts, if anything, once releasing pods are gone."""
        return self._checked(klass, NodeView(self.state, rows, future=True), np.ones(len(rows), np.bool_))

    def _checked(self, klass: TaskClass, view: NodeView, mask: Mask) -> Mask:
        """*mask* (n,) without the nodes of *view* that fail a check."""
        for check in self._checks:
            if mask.any() and check.applies(klass):
                mask &= check.mask(klass, view)
        return mask

    def looks_around(self, klass: TaskClass) -> bool:
        """Whether pods placed elsewhere decide where a pod of *klass* may go."""
        return any(check.scope == Scope.CLUSTER and check.applies(klass) for check in self._checks)

    def kept_off(self, klass: TaskClass) -> dict[str, int]:
        """What pods that may be anywhere keep *klass* from, once releasing pods are gone: reason -> nodes."""
        view = NodeView(self.state, self.state.nodes.order, future=True)
        found: dict[str, int] = {}
        for check in self._checks:
            if check.scope == Scope.CLUSTER and check.resolvable and check.applies(klass):
                refused = ~check.mask(klass, view)
                if refused.any():
                    there = NodeView(self.state, view.rows[refused], future=True)
                    found[check.explain(klass, there)] = int(np.count_nonzero(refused))
        return found

    def unresolvable(self, klass: TaskClass, rows: Rows32) -> Mask:
        """(n,) which of *rows* fail a check that no eviction can help."""
        view = NodeView(self.state, rows, future=True)
        mask = np.zeros(len(rows), np.bool_)
        for check in self._checks:
            if not check.resolvable and check.applies(klass):
                mask |= ~check.mask(klass, view)
        return mask

    def cards(self, klass: TaskClass, row: int, *, future: bool) -> list[CardChoice] | None:
        """The cards a pod of *klass* gets on node *row*, as a one-pod batch; None without cards."""
        if klass.cards is None:
            return None
        for entry in self._session.points.choose_cards:
            return [entry.call(klass, row, future)]
        return None

    def _cards_in_turn(self, klass: TaskClass, rows: Rows32) -> list[CardChoice] | None:
        """The cards that pods of *klass* get which go to *rows* (k,), one after another."""
        if klass.cards is None:
            return None
        for entry in self._session.points.choose_cards_in_turn:
            return entry.call(klass, rows)
        return None

    def refusal(self, klass: TaskClass) -> Refusal:
        """Why no node takes a pod of *klass* now; the same object until a node changes."""
        known = self._refusals.get(klass.row)
        if known is not None and known[0] is klass and known[1] == self.state.nodes.epoch:
            return known[2]
        checks = [check for check in self._checks if check.applies(klass)]
        refusal = explain_nodes(self.state, klass, checks)
        self._refusals[klass.row] = (klass, self.state.nodes.epoch, refusal)
        return refusal

    def _fill_batch(self, statement: Statement, ladder: Ladder, tasks: Rows32) -> int:
        positions = ladder.take(self.state, len(tasks))
        if positions:
            rows = ladder.order[np.array(positions, np.int64)]
            statement.allocate(tasks[: len(positions)], rows, self._cards_in_turn(ladder.klass, rows))
            ladder.applied(self.state, positions)
        return len(positions)

    def _fill_single(self, statement: Statement, ladder: Ladder, tasks: Rows32) -> int:
        for placed in range(len(tasks)):
            if placed:
                ladder.refresh(self.state, ladder.rules, self._generation)
            positions = ladder.take(self.state, 1)
            if not positions:
                return placed
            row = int(ladder.order[positions[0]])
            choices = self.cards(ladder.klass, row, future=False)
            statement.allocate(tasks[placed : placed + 1], np.array([row], np.int32), choices)
            ladder.applied(self.state, positions)
        return len(tasks)

    def _fill_coupled(self, statement: Statement, ladder: Ladder, tasks: Rows32, within: Mask | None) -> int:
        """One pod at a time, with everything that looks beyond a node asked anew."""
        klass = ladder.klass
        for placed in range(len(tasks)):
            if placed:
                ladder.refresh(self.state, ladder.rules, self._generation)
            positions = np.flatnonzero(ladder.head > UNFIT)
            if within is not None:
                positions = positions[within[ladder.order[positions]]]
            rows = ladder.order[positions]
            view = NodeView(self.state, rows)
            if ladder.rules.cluster:
                mask = np.logical_and.reduce([check.mask(klass, view) for check in ladder.rules.cluster])
                rows, positions = rows[mask], positions[mask]
                view = NodeView(self.state, rows)
            if len(rows) == 0:
                return placed
            row = self._pick(klass, rows, ladder.head[positions], view)
            choices = self.cards(klass, row, future=False)
            statement.allocate(tasks[placed : placed + 1], np.array([row], np.int32), choices)
        return len(tasks)

    def _leaving(self) -> Mask:
        """(n,) in tie order: something is being released there."""
        nodes = self.state.nodes
        if self._leaving_at != nodes.epoch:
            self._leaving_at = nodes.epoch
            self._leaving_mask = np.any(nodes.releasing[nodes.order] > 0, axis=1)
        return self._leaving_mask

    def _pick(self, klass: TaskClass, rows: Rows32, scores: Scores, view: NodeView) -> int:
        total = scores.copy()
        for scorer in self._scorers:
            if scorer.scope == Scope.CLUSTER and scorer.applies(klass):
                total += scorer.score(klass, view)
        for entry in self._session.points.best_node:
            chosen = entry.call(klass, rows, total)
            if chosen is not None:
                return int(chosen)
        return int(rows[int(total.argmax())])

    def _best_future(self, klass: TaskClass, rows: Rows32) -> int:
        """The best of *rows* (tie order) for a pod of *klass*, as amounts will be."""
        view = NodeView(self.state, rows, future=True)
        local = np.zeros(len(rows))
        for scorer in self._scorers:
            if scorer.scope != Scope.CLUSTER and scorer.applies(klass):
                local += scorer.score(klass, view)
        return self._pick(klass, rows, local, view)

    def _trim(self) -> None:
        while self._cells > _KEPT_CELLS and len(self._ladders) > 1:
            _, gone = self._ladders.popitem(last=False)
            self._cells -= gone.cells
