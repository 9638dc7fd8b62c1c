"""Disruption budgets: how many of their pods may go now."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from volcano_py.simulator.apiserver.pods import FINISHED
from volcano_py.simulator.apiserver.status import Document
from volcano_py.simulator.apiserver.store import Change, Item, Store

BUDGETS: Final = "poddisruptionbudgets.policy"


@dataclass(frozen=True, slots=True)
class Budget:
    """What a budget comes to, counted from the pods that are there.

    Attributes:
        expected: pods that it selects and that are not finished.
        healthy: of these, the ready ones that are not going.
        desired: how many must stay healthy.
        unhealthy_policy: ``unhealthyPodEvictionPolicy``.
    """

    name: str
    expected: int
    healthy: int
    desired: int
    unhealthy_policy: str

    @property
    def allowed(self) -> int:
        """How many healthy pods may go."""
        return max(0, self.healthy - self.desired) if self.expected else 0


def budgets_of(store: Store, pod: Document) -> list[Budget]:
    """The budgets that protect *pod*."""
    namespace = pod["metadata"]["namespace"]
    labels = pod["metadata"].get("labels") or {}
    documents = [item.document() for item in store.items(BUDGETS, namespace)]
    return [
        count(store, document) for document in documents if selects(document["spec"].get("selector"), labels)
    ]


def count(store: Store, document: Document) -> Budget:
    """What the budget in *document* comes to now."""
    spec = document["spec"]
    items = store.items("pods", document["metadata"]["namespace"])
    selected = [item.document() for item in items if selects(spec.get("selector"), item.labels or {})]
    pods = [pod for pod in selected if (pod.get("status") or {}).get("phase") not in FINISHED]
    healthy = [pod for pod in pods if is_ready(pod) and not pod["metadata"].get("deletionTimestamp")]
    return Budget(
        name=document["metadata"]["name"],
        expected=len(pods),
        healthy=len(healthy),
        desired=_desired(spec, len(pods)),
        unhealthy_policy=spec.get("unhealthyPodEvictionPolicy") or "IfHealthyBudget",
    )


def is_ready(pod: Document) -> bool:
    """Whether the pod's Ready condition holds."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector object means *labels*; the empty one means all, none means nothing."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_meets(one, labels) for one in selector.get("matchExpressions") or ())


def _meets(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = expression.get("key", ""), expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels


def _desired(spec: Document, expected: int) -> int:
    if spec.get("maxUnavailable") is not None:
        return max(0, expected - _part(spec["maxUnavailable"], expected))
    return _part(spec.get("minAvailable", 1), expected)


def _part(amount: int | str, whole: int) -> int:
    """A number of pods, or a percentage of them rounded up."""
    if isinstance(amount, int):
        return amount
    return math.ceil(int(amount.rstrip("%")) * whole / 100)


class BudgetKeeper:
    """Keeps the status of budgets true as pods come and go."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.stale: set[str] = {item.namespace for item in store.items(BUDGETS)}

    def heed(self, change: Change) -> bool:
        """Note which namespaces have to be counted again; whether there are any."""
        if change.bucket == BUDGETS or (change.bucket == "pods" and self._store.items(BUDGETS)):
            self.stale.add(change.item.namespace)
        return bool(self.stale)

    def settle(self) -> None:
        """Count again and write what changed."""
        while self.stale:
            for item in self._store.items(BUDGETS, self.stale.pop()):
                self._write(item)

    def _write(self, item: Item) -> None:
        document = item.document()
        budget = count(self._store, document)
        status = {
            **(document.get("status") or {}),
            "observedGeneration": document["metadata"].get("generation", 1),
            "disruptionsAllowed": budget.allowed,
            "currentHealthy": budget.healthy,
            "desiredHealthy": budget.desired,
            "expectedPods": budget.expected,
        }
        if status != document.get("status"):
            document["status"] = status
            self._store.put(BUDGETS, document)
