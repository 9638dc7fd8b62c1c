"""PodGroup statuses that wait for binds of their members, so that nobody reads "Running" too early."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from volcano_py.scheduler.cluster.orders import GroupOrder

Conditions = list[dict[str, Any]]


class GroupBinds:
    """See the module.

    A failed bind holds the status too, until the engine has heard of it and answered with its next orders.
    """

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._unanswered: Counter[str] = Counter()
        self._heard: Counter[str] = Counter()
        self._held: dict[str, GroupOrder] = {}

    def __len__(self) -> int:
        return len(self._open) + len(self._unanswered) + len(self._heard) + len(self._held)

    def began(self, group: str) -> None:
        """A member is being bound."""
        if group:
            self._open[group] += 1

    def ended(self, group: str, *, failed: bool) -> None:
        """A member's bind is over."""
        if not group:
            return
        _take(self._open, group, 1)
        if failed:
            self._unanswered[group] += 1

    def heard(self, groups: Iterable[str]) -> None:
        """The engine knows of these failed members: what it orders next is its answer."""
        self._heard.update(group for group in groups if group)

    def answered(self) -> None:
        """The engine has given its orders."""
        for group, count in self._heard.items():
            _take(self._unanswered, group, count)
        self._heard.clear()

    def hold(self, order: GroupOrder) -> bool:
        """Keep *order* if its group waits for binds or for an answer."""
        if order.key not in self._open and order.key not in self._unanswered:
            return False
        self._held[order.key] = order
        return True

    def amend(self, key: str, change: Callable[[Conditions], Conditions]) -> None:
        """The status kept of PodGroup *key* names its conditions as a whole: let *change* add to them."""
        order = self._held.get(key)
        if order is not None and "conditions" in order.status:
            status = {**order.status, "conditions": change(order.status["conditions"])}
            self._held[key] = replace(order, status=status)

    def drop_held(self) -> None:
        """What waits is of an earlier lead, and not true any more."""
        self._held.clear()

    def let_go(self) -> list[GroupOrder]:
        """Statuses that need not wait any more."""
        free = [key for key in self._held if key not in self._open and key not in self._unanswered]
        return [self._held.pop(key) for key in free]

    def free(self, group: str) -> GroupOrder | None:
        """The status of *group*, if it need not wait any more."""
        waits = group in self._open or group in self._unanswered
        return None if waits else self._held.pop(group, None)


def _take(counts: Counter[str], key: str, number: int) -> None:
    """Count *key* down; nothing is kept of those at zero."""
    counts[key] -= number
    if counts[key] <= 0:
        del counts[key]
