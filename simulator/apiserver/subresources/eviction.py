"""``pods/eviction``: a delete that asks the pod's disruption budget first."""

from __future__ import annotations

from typing import Final

from volcano_py.simulator.apiserver import metadata as meta
from volcano_py.simulator.apiserver.deleting import Deleting
from volcano_py.simulator.apiserver.disruption import Budget, budgets_of, is_ready
from volcano_py.simulator.apiserver.objects import Objects
from volcano_py.simulator.apiserver.requests import Target, delete_options
from volcano_py.simulator.apiserver.status import Document, Refused, bad_request
from volcano_py.simulator.apiserver.subresources.binding import DONE, set_condition

_UNPROTECTED: Final = frozenset(["Pending", "Succeeded", "Failed"])
_CONDITION: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


def evict(objects: Objects, deleting: Deleting, target: Target, eviction: Document) -> Document:
    """Delete the pod, if its budget lets it go.

    Raises:
        Refused: 404; 409 for a precondition; 429 where the budget is used up; 500 for several budgets.
    """
    name = (eviction.get("metadata") or {}).get("name")
    if name and name != target.name:
        raise bad_request("name in URL does not match name in Eviction object: mismatched")
    deletion, dry_run = delete_options({}, eviction.get("deleteOptions"))
    pod = objects.read(Target(target.kind, target.namespace, target.name))
    if _is_protected(pod):
        _ask_budget(objects, pod)
    whole = Target(target.kind, target.namespace, target.name)
    if not dry_run:
        _mark(objects, whole, deletion.uid)
    deleting.delete(whole, deletion, dry_run=dry_run)
    return DONE


def _is_protected(pod: Document) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase not in _UNPROTECTED and not pod["metadata"].get("deletionTimestamp")


def _ask_budget(objects: Objects, pod: Document) -> None:
    budgets = budgets_of(objects.store, pod)
    if len(budgets) > 1:
        raise Refused(
            500,
            "InternalError",
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
            "support.",
        )
    if budgets and not _lets_go(budgets[0], pod):
        raise _too_many(budgets[0])


def _lets_go(budget: Budget, pod: Document) -> bool:
    if not is_ready(pod):
        always = budget.unhealthy_policy == "AlwaysAllow"
        if always or (budget.desired > 0 and budget.healthy >= budget.desired):
            return True
    return budget.allowed > 0


def _too_many(budget: Budget) -> Refused:
    told = (
        f"The disruption budget {budget.name} needs {budget.desired} healthy pods and has {budget.healthy} "
        "currently"
    )
    return Refused(
        429,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
        details={"causes": [{"reason": "DisruptionBudget", "message": told}]},
    )


def _mark(objects: Objects, target: Target, uid: str) -> None:
    """Say on the pod why it is going."""
    item = objects.item(target)
    pod = item.document()
    if (uid and uid != item.uid) or item.ending:
        return
    set_condition(pod.setdefault("status", {}), dict(_CONDITION), meta.timestamp(objects.clock()))
    objects.store.put("pods", pod)
