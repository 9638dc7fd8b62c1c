"""What an eviction leaves on its pod: for whom, by which rule, what is lost, and when it is due.

The marks are written in one patch before the eviction. A scheduler that starts in the middle finds them and
goes on; an eviction that is not carried out takes them off again. The Eviction API later gives the condition
a reason of its own, so annotations hold what people need.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from volcano_py.scheduler.cluster.orders import EvictOrder
from volcano_py.scheduler.model.kube.objects import Pod
from volcano_py.scheduler.model.kube.times import format_time, parse_time

EVICTED_FOR: Final = "volcano-py.io/evicted-for"
BY_RULE: Final = "volcano-py.io/evicted-by-rule"
BY_ACTION: Final = "volcano-py.io/evicted-by-action"
LOST: Final = "volcano-py.io/evicted-lost"
DEADLINE: Final = "volcano-py.io/eviction-deadline"
MARKS: Final = (EVICTED_FOR, BY_RULE, BY_ACTION, LOST, DEADLINE)
DISRUPTION: Final = "DisruptionTarget"
PREEMPTED: Final = "PreemptionByScheduler"
_EVICTION: Final = "eviction"
_PLAIN_DELETE: Final = "delete"


def sentence(order: EvictOrder) -> str:
    """Why the pod of *order* has to go, for people."""
    if order.message:
        return order.message
    words = f"evicted for {order.for_whom}" if order.for_whom else "evicted"
    words += f" by {order.action}" if order.action else ""
    words += f": {order.reason.removeprefix(f'{order.action}: ')}" if order.reason else ""
    return words + (f" (lost: {order.lost})" if order.lost else "")


def marked(order: EvictOrder, deadline: float, now: float) -> dict[str, Any]:
    """The patch (strategic merge, of the status subresource) that marks the pod of *order*."""
    how = f"{order.action}/{_PLAIN_DELETE if order.delete else _EVICTION}"
    values = (order.for_whom, order.reason, how, order.lost, format_time(deadline))
    condition = {
        "type": DISRUPTION,
        "status": "True",
        "reason": PREEMPTED,
        "message": sentence(order),
        "lastTransitionTime": format_time(now),
    }
    return {
        "metadata": {"uid": order.uid, "annotations": dict(zip(MARKS, values, strict=True))},
        "status": {"conditions": [condition]},
    }


def unmarked(order: EvictOrder) -> dict[str, Any]:
    """The patch that takes the marks off."""
    return {
        "metadata": {"uid": order.uid, "annotations": dict.fromkeys(MARKS)},
        "status": {"conditions": [{"$patch": "delete", "type": DISRUPTION}]},
    }


def due_eviction(pod: Pod) -> EvictOrder | None:
    """The eviction that *pod*'s marks tell of, to be gone on with after a restart; None where there is none.

    A pod on its way out, ended, or with a deadline that can't be read has none. The condition has to be there
    too: annotations alone come along where somebody makes a new pod of an old one's YAML.
    """
    said: Mapping[str, str] = pod.metadata.annotations
    over = pod.status.phase in ("Succeeded", "Failed") or pod.metadata.deletion_timestamp is not None
    if DEADLINE not in said or over or not _is_told(pod):
        return None
    try:
        deadline = parse_time(said[DEADLINE])
    except ValueError:
        return None
    action, _, how = said.get(BY_ACTION, "").partition("/")
    return EvictOrder(
        pod.metadata.namespace,
        pod.metadata.name,
        pod.metadata.uid,
        reason=said.get(BY_RULE, ""),
        for_whom=said.get(EVICTED_FOR, ""),
        lost=said.get(LOST, ""),
        action=action,
        delete=how == _PLAIN_DELETE,
        deadline=deadline,
    )


def _is_told(pod: Pod) -> bool:
    """Whether *pod*'s status says that a scheduler evicts it."""
    return any(
        (each.type, each.status, each.reason) == (DISRUPTION, "True", PREEMPTED)
        for each in pod.status.conditions
    )
