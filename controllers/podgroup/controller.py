"""The controller that makes PodGroups for plain pods; what it wants is decided in ``reconcile.py``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from volcano_py.controllers.acts import Act, Plan
from volcano_py.controllers.observed import Change, Observed
from volcano_py.controllers.podgroup import reconcile

__all__ = ["PodGroupController"]


class PodGroupController:
    """Keys are PodGroups as ``namespace/name``."""

    name: Final = "podgroup"

    def __init__(self, seen: Observed, *, inherit_owner_annotations: bool = True) -> None:
        """*inherit_owner_annotations*: whether ReplicaSets and the like say things for their pods."""
        self._seen, self._inherit = seen, inherit_owner_annotations

    def affected(self, change: Change) -> Iterable[str]:
        """PodGroups that *change* is about."""
        return reconcile.affected(change)

    def plan(self, name: str) -> Plan:
        """What is to be done about the PodGroup *name*."""
        return reconcile.plan(self._seen, name, inherit=self._inherit)

    def carried_out(self, name: str, act: Act) -> None:
        """Nothing is to be learned."""
