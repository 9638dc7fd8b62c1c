"""The controller of queues: Commands to them first, then their status.

What it wants is decided in ``commands.py`` and ``reconcile.py``. Both go by one key, so that an order and a
state that was decided before it never cross. Here is what a process keeps for itself: when counts were last
written, and which queues Commands were looked for. Losing it does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from volcano_py.controllers.acts import Act, Delete, Look, Patch, Plan
from volcano_py.controllers.observed import Change, Observed
from volcano_py.controllers.queue import commands, reconcile
from volcano_py.controllers.records import QueueRecord

__all__ = ["QueueController"]


class QueueController:
    """Keys are names of queues."""

    name: Final = "queue"

    def __init__(
        self,
        seen: Observed,
        clock: Callable[[], float],
        counts_every_s: float = 1.0,
        always_there: reconcile.Specs | None = None,
    ) -> None:
        """Set it up.

        Args:
            seen: the cluster.
            clock: seconds that never go back.
            counts_every_s: between two writes of counts at least.
            always_there: queues that are made where they are missing.
        """
        self._seen, self._clock, self._counts_every_s = seen, clock, counts_every_s
        self._always_there = reconcile.always_there() if always_there is None else always_there
        self._written: dict[str, float] = {}
        self._looked: set[str] = set()

    def affected(self, change: Change) -> Iterable[str]:
        """Queues that *change* is about."""
        if isinstance(change.before, QueueRecord) and change.after is None:
            self._written.pop(change.before.identity.name, None)
        return reconcile.affected(self._seen, change)

    def plan(self, name: str) -> Plan:
        """What is to be done about the queue *name*."""
        if self._seen.queue(name) is None and name in self._always_there:
            return reconcile.make(name, self._always_there[name])
        ordered = commands.plan(self._seen, name, looked=name in self._looked)
        if ordered.acts:
            return ordered
        due = self._written.get(name, float("-inf")) + self._counts_every_s
        return reconcile.plan(self._seen, name, counts_wait_s=max(0.0, due - self._clock()))

    def carried_out(self, name: str, act: Act) -> None:
        """Remember when the status was written, and what was looked for until the Command is gone."""
        if isinstance(act, Patch) and act.sub == "status":
            self._written[name] = self._clock()
        elif isinstance(act, Look):
            self._looked.add(name)
        elif isinstance(act, Delete):
            self._looked.discard(name)
