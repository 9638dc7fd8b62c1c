"""The controllers of queues: their status, and Commands to them.

What they want is decided in ``reconcile.py`` and ``commands.py``; here is what a process keeps for itself:
when counts were last written, and which queue a Command was looked for. Losing it does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from volcano_py.controllers.acts import Act, Delete, Look, Patch, Plan
from volcano_py.controllers.observed import Change, Observed
from volcano_py.controllers.queue import commands, reconcile
from volcano_py.controllers.records import CommandRecord, QueueRecord

__all__ = ["CommandController", "QueueController"]


class QueueController:
    """Keys are names of queues."""

    name: Final = "queue"

    def __init__(self, seen: Observed, clock: Callable[[], float], counts_every_s: float = 1.0) -> None:
        """*clock*: seconds that never go back; *counts_every_s*: between two writes of counts at least."""
        self._seen, self._clock, self._counts_every_s = seen, clock, counts_every_s
        self._written: dict[str, float] = {}

    def affected(self, change: Change) -> Iterable[str]:
        """Queues that *change* is about."""
        if isinstance(change.before, QueueRecord) and change.after is None:
            self._written.pop(change.before.identity.name, None)
        return reconcile.affected(self._seen, change)

    def plan(self, name: str) -> Plan:
        """What is to be done about the queue *name*."""
        due = self._written.get(name, float("-inf")) + self._counts_every_s
        return reconcile.plan(self._seen, name, counts_wait_s=max(0.0, due - self._clock()))

    def carried_out(self, name: str, act: Act) -> None:
        """Remember when the status was written."""
        if isinstance(act, Patch) and act.sub == "status":
            self._written[name] = self._clock()


class CommandController:
    """Keys are names of the queues that Commands are for."""

    name: Final = "command"

    def __init__(self, seen: Observed) -> None:
        self._seen = seen
        self._looked: set[str] = set()

    def affected(self, change: Change) -> Iterable[str]:
        """Queues that were told something."""
        return {record.queue for record in change.records if isinstance(record, CommandRecord)}

    def plan(self, name: str) -> Plan:
        """What the first Command to the queue *name* leads to."""
        return commands.plan(self._seen, name, looked=name in self._looked)

    def carried_out(self, name: str, act: Act) -> None:
        """Remember that the queue was looked for, until the Command is gone."""
        if isinstance(act, Look):
            self._looked.add(name)
        elif isinstance(act, Delete):
            self._looked.discard(name)
