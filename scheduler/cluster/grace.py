"""Events about groups that are still being made: held back, and not told if that is over soon.

Whoever makes a gang makes its PodGroup and its pods one after another, and in between the group lacks pods
and pods lack their group. Conditions say so at once; an event would stay for an hour.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from volcano_py.scheduler.cluster.orders import GroupOrder, Note, RefusalOrder, Subject

GRACE_S: Final = 5.0
BEING_MADE: Final = frozenset({"NoPodGroup", "NotEnoughPodsOfTask", "NotEnoughTasks"})
"""Reasons of refusals that end by themselves when all is made."""


class Grace:
    """Passes notes on, some of them later.

    Args:
        note: writes an event.
    """

    def __init__(self, note: Callable[[Subject, Note], None]) -> None:
        self._note = note
        self._waiting: dict[tuple[str, str], asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        """Notes that are held back."""
        return len(self._waiting)

    def tell(self, order: RefusalOrder | GroupOrder, *notes: Note) -> None:
        """Write *notes* on what *order* is about, later if it is said to be still in the making.

        What it said before is dropped where it is not any more.
        """
        subject = order.subject
        at = (subject.kind, subject.key)
        if not is_being_made(order):
            self.forget(*at)
            for note in notes:
                self._note(subject, note)
        elif notes and at not in self._waiting:
            loop = asyncio.get_running_loop()
            self._waiting[at] = loop.call_later(GRACE_S, self._tell_late, at, subject, notes)

    def forget(self, kind: str, key: str) -> None:
        """Nothing is to be told of the object any more."""
        timer = self._waiting.pop((kind, key), None)
        if timer is not None:
            timer.cancel()

    def forget_all(self) -> None:
        """Nothing is to be told any more."""
        for at in list(self._waiting):
            self.forget(*at)

    def _tell_late(self, at: tuple[str, str], subject: Subject, notes: tuple[Note, ...]) -> None:
        del self._waiting[at]
        for note in notes:
            self._note(subject, note)


def is_being_made(order: RefusalOrder | GroupOrder) -> bool:
    """Whether *order* says of a pod or group that it lacks what may be about to come."""
    if isinstance(order, RefusalOrder):
        return order.reason in BEING_MADE
    told = order.status.get("conditions", ())
    return any(one["status"] == "True" and one["reason"] in BEING_MADE for one in told)
