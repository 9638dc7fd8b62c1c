"""The controller that makes PodGroups for plain pods; what it wants is decided in ``reconcile.py``.

Here is what a process keeps for itself: when it last made which group. A group that is deleted as fast as it
is made, as by a garbage collector that finds no owner, is made anew with pauses only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

from volcano_py.controllers.acts import Act, Create, Plan
from volcano_py.controllers.observed import Change, Observed
from volcano_py.controllers.podgroup import reconcile
from volcano_py.controllers.podgroup.build import Rules

__all__ = ["PodGroupController"]

_MOST_REMEMBERED: Final = 1024


class PodGroupController:
    """Keys are PodGroups as ``namespace/name``."""

    name: Final = "podgroup"

    def __init__(
        self,
        seen: Observed,
        clock: Callable[[], float],
        *,
        rules: Rules | None = None,
        remake_after_s: float = 5.0,
    ) -> None:
        """Set it up.

        Args:
            seen: the cluster.
            clock: seconds that never go back.
            rules: how pods become PodGroups.
            remake_after_s: shortest time between two times that one group is made.
        """
        self._seen, self._clock = seen, clock
        self._rules, self._remake_after_s = rules or Rules(), remake_after_s
        self._made: OrderedDict[str, float] = OrderedDict()

    def affected(self, change: Change) -> Iterable[str]:
        """PodGroups that *change* is about."""
        return reconcile.affected(change)

    def plan(self, name: str) -> Plan:
        """What is to be done about the PodGroup *name*."""
        plan = reconcile.plan(self._seen, name, self._rules)
        wait_s = self._made.get(name, float("-inf")) + self._remake_after_s - self._clock()
        makes = any(isinstance(act, Create) for act in plan.acts)
        return Plan(again_s=wait_s) if makes and wait_s > 0 else plan

    def carried_out(self, name: str, act: Act) -> None:
        """Remember when the group was made."""
        if isinstance(act, Create):
            self._made[name] = self._clock()
            self._made.move_to_end(name)
            if len(self._made) > _MOST_REMEMBERED:
                self._made.popitem(last=False)
