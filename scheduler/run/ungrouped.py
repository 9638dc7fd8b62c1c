"""Pods that wait without a PodGroup: no cycle looks at them, so they are told here.

A controller puts plain pods into groups, mostly within milliseconds. Where it does not run, or the server
refuses the group, such a pod would wait for ever and nobody would say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from volcano_py.crds.annotations import GROUP
from volcano_py.scheduler.cluster import sayings
from volcano_py.scheduler.cluster.orders import RefusalOrder
from volcano_py.scheduler.cluster.reflector import Change
from volcano_py.scheduler.model.kube.objects import Pod
from volcano_py.scheduler.run.triggers import NEVER

PATIENCE_S: Final = 10.0
"""How long a pod may be without a group before it is told."""
MESSAGE: Final = (
    "the pod is in no PodGroup. `volcano-py controller` makes one: does it run? If it does, "
    "an event of the pod says why it could not"
)


class Ungrouped:
    """See the module. Used in the engine's thread alone."""

    def __init__(self) -> None:
        # Longest known first. Who was told stays, so that the echo of the telling is no news.
        self._waiting: dict[str, tuple[float, Pod]] = {}
        self._told: dict[str, str] = {}

    def take(self, changes: Iterable[Change], is_ours: Callable[[Pod], bool], now: float) -> None:
        """Note which pods have no group (any more).

        Args:
            changes: of all kinds.
            is_ours: whether a pod names one of our schedulers.
            now: epoch seconds.
        """
        for change in changes:
            if change.kind != "Pod":
                continue
            pod, key = change.item, change.key
            if not isinstance(pod, Pod) or not _waits_alone(pod) or not is_ours(pod):
                self._waiting.pop(key, None)
                self._told.pop(key, None)
            elif self._told.get(key) != pod.uid:
                since, known = self._waiting.get(key, (now, pod))
                self._told.pop(key, None)
                if known.uid != pod.uid:
                    del self._waiting[key]
                    since = now
                self._waiting[key] = since, pod

    def begin(self, changes: Iterable[Change], is_ours: Callable[[Pod], bool], now: float) -> None:
        """We lead from now on: what was told stands on the pods, whoever told it."""
        self._waiting, self._told = {}, {}
        self.take(changes, is_ours, now)

    def orders(self, now: float) -> list[RefusalOrder]:
        """What to tell at *now*, epoch seconds; after a step back of the clock that is all."""
        orders = []
        for key, (since, pod) in list(self._waiting.items()):
            if 0 <= now - since < PATIENCE_S:
                break
            del self._waiting[key]
            self._told[key] = pod.uid
            order = sayings.refusal(pod, MESSAGE, "NoPodGroup")
            if order is not None:
                orders.append(order)
        return orders

    def due_at(self) -> float:
        """When there is something to tell, epoch seconds; ``NEVER`` unless pods come."""
        for since, _ in self._waiting.values():
            return since + PATIENCE_S
        return NEVER


def _waits_alone(pod: Pod) -> bool:
    return not (
        pod.spec.node_name
        or pod.metadata.annotations.get(GROUP)
        or pod.spec.scheduling_gates
        or pod.metadata.deletion_timestamp
        or pod.status.phase not in ("", "Pending")
    )
