"""Pods: what the server adds to them, and what it does not take."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

from volcano_py.crds.quantity import QuantityError, parse_quantity
from volcano_py.simulator.apiserver.metadata import LABEL, LABEL_RULE, invalid_value
from volcano_py.simulator.apiserver.schema.kinds import Cause
from volcano_py.simulator.apiserver.status import Document

_FIXED: Final = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
    "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)
_COUNTED: Final = ("cpu", "memory")
_NATIVE_PREFIX: Final = ("cpu", "memory", "ephemeral-storage", "hugepages-")
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


def check_pod(pod: Document, old: Document | None, subresource: str) -> list[Cause]:
    """What is wrong with a pod, or with a change of one."""
    if old is None:
        return list(_check_spec(pod.get("spec") or {}))
    if subresource == "status":
        return _check_nomination(pod, old)
    if subresource == "":
        return list(_check_unchanged(pod.get("spec") or {}, old.get("spec") or {}))
    return []


def _check_spec(spec: Document) -> Iterator[Cause]:
    containers = spec.get("containers") or []
    if not containers:
        yield Cause("FieldValueRequired", "Required value", "spec.containers")
    seen: set[str] = set()
    for place in ("initContainers", "containers"):
        for number, container in enumerate(spec.get(place) or []):
            yield from _check_container(container, f"spec.{place}[{number}]", seen)
    yield from _check_tolerations(spec.get("tolerations") or [])


def _check_container(container: Document, field: str, seen: set[str]) -> Iterator[Cause]:
    name = container.get("name") or ""
    if not name:
        yield Cause("FieldValueRequired", "Required value", f"{field}.name")
    elif len(name) > 63 or not LABEL.fullmatch(name):
        yield invalid_value(name, LABEL_RULE, f"{field}.name")
    elif name in seen:
        yield Cause("FieldValueDuplicate", f'Duplicate value: "{name}"', f"{field}.name")
    seen.add(name)
    if not container.get("image"):
        yield Cause("FieldValueRequired", "Required value", f"{field}.image")
    resources = container.get("resources") or {}
    yield from _check_amounts(resources, f"{field}.resources")


def _check_amounts(resources: Document, field: str) -> Iterator[Cause]:
    limits: Document = resources.get("limits") or {}
    requests: Document = resources.get("requests") or {}
    for place, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            yield from _check_amount(name, text, f"{field}.{place}")
    for name, text in requests.items():
        yield from _check_within_limit(name, text, limits.get(name), field)


def _check_amount(name: str, text: Any, field: str) -> Iterator[Cause]:
    amount = _amount(text)
    if amount is None:
        return
    if amount < 0:
        yield invalid_value(str(text), "must be greater than or equal to 0", f"{field}[{name}]")
    if _is_extended(name) and amount.denominator != 1:
        yield invalid_value(str(text), "must be an integer", f"{field}[{name}]")


def _check_within_limit(name: str, text: Any, limit: Any, field: str) -> Iterator[Cause]:
    field = f"{field}.requests"
    asked, most = _amount(text), _amount(limit)
    if _is_extended(name) and asked is not None and most is None:
        why = "Required value: Limit must be set for non overcommitable resources"
        yield Cause("FieldValueRequired", why, field.replace("requests", "limits"))
    elif asked is None or most is None:
        return
    elif _is_extended(name) and asked != most:
        yield invalid_value(str(text), f"must be equal to {name} limit of {limit}", field)
    elif asked > most:
        yield invalid_value(str(text), f"must be less than or equal to {name} limit of {limit}", field)


def _is_extended(name: str) -> bool:
    return not name.startswith(_NATIVE_PREFIX)


def _check_tolerations(tolerations: list[Document]) -> Iterator[Cause]:
    for number, toleration in enumerate(tolerations):
        field = f"spec.tolerations[{number}]"
        if toleration.get("operator") == "Exists" and toleration.get("value"):
            why = "value must be empty when `operator` is 'Exists'"
            yield invalid_value(toleration["value"], why, f"{field}.operator")
        if not toleration.get("key") and toleration.get("operator") != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid_value(toleration.get("operator") or "", why, f"{field}.operator")


def _check_nomination(pod: Document, old: Document) -> list[Cause]:
    nominated = (pod.get("status") or {}).get("nominatedNodeName") or ""
    before = (old.get("status") or {}).get("nominatedNodeName") or ""
    if nominated and nominated != before and (old.get("spec") or {}).get("nodeName"):
        why = "Forbidden: may not be set on pods that are already bound to a node"
        return [Cause("FieldValueForbidden", why, "status.nominatedNodeName")]
    return []


def _check_unchanged(spec: Document, old: Document) -> Iterator[Cause]:
    mine, theirs = _fixed_part(spec), _fixed_part(old)
    if old.get("schedulingGates"):
        for name in ("schedulingGates", "nodeSelector", "affinity"):
            mine.pop(name, None)
            theirs.pop(name, None)
    kept = all(one in (spec.get("tolerations") or []) for one in old.get("tolerations") or [])
    if mine != theirs or not kept:
        yield Cause("FieldValueForbidden", _FIXED, "spec")


def _fixed_part(spec: Document) -> Document:
    fixed = copy.copy(spec)
    for name in ("activeDeadlineSeconds", "tolerations"):
        fixed.pop(name, None)
    if fixed.get("terminationGracePeriodSeconds", 0) in (1, *range(-1, 0)):
        fixed.pop("terminationGracePeriodSeconds")
    for place in ("containers", "initContainers"):
        if place in fixed:
            fixed[place] = [{**container, "image": ""} for container in fixed[place] or []]
    return fixed
