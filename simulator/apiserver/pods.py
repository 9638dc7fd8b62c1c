"""Pods: the status that a new one gets, and what a status may not say."""

from __future__ import annotations

from typing import Any, Final

from volcano_py.crds.quantity import QuantityError, parse_quantity
from volcano_py.simulator.apiserver.schema.kinds import Cause
from volcano_py.simulator.apiserver.status import Document

_COUNTED: Final = ("cpu", "memory")
FINISHED: Final = frozenset(["Succeeded", "Failed"])


def finish_new_pod(pod: Document) -> None:
    """Give a new pod its first status."""
    spec = pod.get("spec") or {}
    status: Document = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": pod["metadata"]["creationTimestamp"],
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]
    pod["status"] = status


def qos_class(spec: Document) -> str:
    """How firmly the pod's containers hold what they use."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    resources = [container.get("resources") or {} for container in containers]
    asked = [_counted(one.get("requests")) for one in resources]
    capped = [_counted(one.get("limits")) for one in resources]
    if not any(asked) and not any(capped):
        return "BestEffort"
    if all(
        len(limits) == len(_COUNTED) and limits == requests
        for requests, limits in zip(asked, capped, strict=True)
    ):
        return "Guaranteed"
    return "Burstable"


def _counted(amounts: Document | None) -> dict[str, Any]:
    return {
        name: amount
        for name in _COUNTED
        if (amount := _amount((amounts or {}).get(name))) is not None and amount != 0
    }


def _amount(text: Any) -> Any:
    if text is None:
        return None
    try:
        return parse_quantity(text)
    except QuantityError:
        return None


def check_nomination(pod: Document, old: Document) -> list[Cause]:
    """A pod that has its node is not promised another."""
    nominated = (pod.get("status") or {}).get("nominatedNodeName") or ""
    before = (old.get("status") or {}).get("nominatedNodeName") or ""
    if nominated and nominated != before and (old.get("spec") or {}).get("nodeName"):
        why = "Forbidden: may not be set on pods that are already bound to a node"
        return [Cause("FieldValueForbidden", why, "status.nominatedNodeName")]
    return []
