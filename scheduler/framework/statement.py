"""The door through which a cycle moves tasks, with an undo log (``singles`` is a short cut for many).

Operations take effect at once, so that whatever is asked next sees them; ``commit`` turns them into
decisions, ``rollback`` and ``discard`` play them backwards and leave every byte as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from volcano_py.scheduler.framework.decision import Decision, EvictionCause, bind, eviction, reservation
from volcano_py.scheduler.model.accounts import Batch, Choices
from volcano_py.scheduler.model.cards import CardChoice
from volcano_py.scheduler.model.resources import Rows32
from volcano_py.scheduler.model.tasks import Status

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session


_PLACED: Final = (int(Status.ALLOCATED), int(Status.PIPELINED))


@dataclass(frozen=True, slots=True)
class Operation:
    """One done operation and what undoes it.

    Attributes:
        before: the batch as it stood.
        held: its card choices then.
        status: where it went.
        cause: of an eviction.
    """

    before: Batch
    held: Choices
    status: Status
    nodes: Rows32 | None
    cause: EvictionCause | None = None


class Statement:
    """A sequence of operations of one action for one claimant."""

    def __init__(self, session: Session, action: str) -> None:
        self.session = session
        self.action = action
        self.operations: list[Operation] = []

    def allocate(self, tasks: Rows32, nodes: Rows32, choices: Sequence[CardChoice] | None = None) -> None:
        """Place pending or pipelined *tasks* (k,) of one job and class on *nodes* (k,)."""
        self._move(tasks, Status.ALLOCATED, nodes, choices)

    def pipeline(self, tasks: Rows32, nodes: Rows32, choices: Sequence[CardChoice] | None = None) -> None:
        """Promise pending *tasks* (k,) room that is being released on *nodes* (k,)."""
        self._move(tasks, Status.PIPELINED, nodes, choices)

    def unplace(self, tasks: Rows32) -> None:
        """Take pipelined or allocated *tasks* back to pending."""
        self._move(tasks, Status.PENDING, None, None)

    def evict(self, task: int, cause: EvictionCause) -> None:
        """Let *task* go for the claimant named in *cause*; it stays on its node, releasing."""
        rows = np.array([task], np.int32)
        before = self.session.state.accounts.batch(rows)
        self._move(rows, Status.RELEASING, before.nodes, None, cause)

    def placed(self) -> list[int]:
        """The tasks that it has placed or promised a place, in the order they were."""
        status = self.session.state.tasks.status
        tasks = (task for operation in self.operations for task in operation.before.tasks.tolist())
        return [task for task in dict.fromkeys(tasks) if status[task] in _PLACED]

    def mark(self) -> int:
        """A point to roll back to."""
        return len(self.operations)

    def rollback(self, mark: int = 0) -> None:
        """Undo everything after *mark*, last first."""
        while len(self.operations) > mark:
            self._undo(self.operations.pop())

    def discard(self) -> None:
        """Undo everything."""
        self.rollback(0)

    def undo_eviction(self, task: int) -> bool:
        """Give *task*'s eviction back if this statement has it (out of order; see ``eviction.giveback``)."""
        for position, operation in enumerate(self.operations):
            if operation.cause is not None and int(operation.before.tasks[0]) == task:
                del self.operations[position]
                self._undo(operation)
                return True
        return False

    def commit(self, fits: str = "", waits: str = "") -> list[Decision]:
        """Make the operations final and hand the decisions to the session.

        Args:
            fits: the reason of what is bound.
            waits: the reason of what is promised.

        Binds become ``BINDING``; promises are remembered as nominations; evicted tasks are on
        their way out. A statement is empty afterwards.
        """
        decisions: list[Decision] = []
        state = self.session.state
        told: set[int] = set()
        for operation in self.operations:
            tasks = operation.before.tasks
            standing = tasks[state.tasks.status[tasks] == int(operation.status)]  # NumPy is slow on enums
            if not told.isdisjoint(standing.tolist()):
                standing = np.array([task for task in standing.tolist() if task not in told], np.int32)
            if len(standing) == 0:
                continue
            told.update(standing.tolist())
            if operation.status == Status.ALLOCATED:
                decisions += self._bind(standing, fits)
            elif operation.status == Status.PIPELINED:
                decisions += self._promise(standing, waits)
            elif operation.cause is not None:
                decisions.append(eviction(state, int(standing[0]), self.action, operation.cause))
        self.operations.clear()
        self.session.decided(decisions)
        return decisions

    def _bind(self, tasks: Rows32, reason: str) -> list[Decision]:
        state = self.session.state
        state.accounts.bind(tasks)
        for task in tasks.tolist():
            state.tasks.nominated.pop(task, None)
        return [bind(state, task, self.action, reason) for task in tasks.tolist()]

    def _promise(self, tasks: Rows32, reason: str) -> list[Decision]:
        state = self.session.state
        for task in tasks.tolist():
            state.tasks.nominated[task] = int(state.tasks.node[task])
        return [reservation(state, task, self.action, reason) for task in tasks.tolist()]

    def _move(
        self,
        tasks: Rows32,
        status: Status,
        nodes: Rows32 | None,
        choices: Choices,
        cause: EvictionCause | None = None,
    ) -> None:
        before, held = self.session.state.accounts.move(tasks, status, nodes, choices)
        self.operations.append(Operation(before, held, status, nodes, cause))
        self.session.booked(before, status, nodes)

    def _undo(self, operation: Operation) -> None:
        before = operation.before
        nodes = None if before.status == Status.PENDING else before.nodes
        now, _ = self.session.state.accounts.move(before.tasks, before.status, nodes, operation.held)
        self.session.booked(now, before.status, nodes)
