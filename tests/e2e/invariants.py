"""What must always hold, counted from the objects of the API server alone (design: invariants 1 and 2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from tests.e2e.objects import GROUP
from tests.framework.reference.placer import asked, base

Document = dict[str, Any]
Objects = Mapping[str, Document]

FINISHED: Final = ("Succeeded", "Failed")


def too_much(nodes: Objects, queues: Objects, groups: Objects, pods: Objects) -> list[str]:
    """Nodes and queues that hold more than they may, one sentence each."""
    standing = _standing(pods)
    return [*_overfull_nodes(nodes, standing), *_overfull_queues(queues, groups, standing)]


def _standing(pods: Objects) -> dict[str, Document]:
    """Pods that hold room."""
    return {
        key: pod
        for key, pod in pods.items()
        if pod["spec"].get("nodeName") and pod.get("status", {}).get("phase") not in FINISHED
    }


def _overfull_nodes(nodes: Objects, standing: Objects) -> list[str]:
    used: dict[str, Counter[str]] = {}
    for pod in standing.values():
        used.setdefault(pod["spec"]["nodeName"], Counter()).update(asked(pod))
    return [
        f"node {name}: {amount} {resource} given out of {offered}"
        for name, amounts in used.items()
        if name in nodes
        for resource, amount in amounts.items()
        if amount > (offered := base(resource, nodes[name]["status"]["allocatable"].get(resource, "0")))
    ]


def _overfull_queues(queues: Objects, groups: Objects, standing: Objects) -> list[str]:
    used: dict[str, Counter[str]] = {}
    for key, pod in standing.items():
        group = groups.get(_group_of(key, pod))
        queue = "" if group is None else group["spec"].get("queue", "default")
        while queue:
            used.setdefault(queue, Counter()).update(asked(pod))
            queue = queues.get(queue, {}).get("spec", {}).get("parent", "")
    found = []
    for name, queue in queues.items():
        spec = queue.get("spec", {})
        for resource, limit in (spec.get("max") or spec.get("capability") or {}).items():
            amount = used.get(name, Counter())[resource]
            if amount > base(resource, limit):
                found.append(f"queue {name}: {amount} {resource} in use, max {limit}")
    return found


def half_gangs(nodes: Objects, queues: Objects, groups: Objects, pods: Objects) -> list[str]:
    """Gangs that stand with fewer than their minimum, but for members that are on their way out."""
    del nodes, queues
    standing = _standing(pods)
    stands: Counter[str] = Counter(
        _group_of(key, pod) for key, pod in standing.items() if not pod["metadata"].get("deletionTimestamp")
    )
    done: Counter[str] = Counter(
        _group_of(key, pod) for key, pod in pods.items() if pod.get("status", {}).get("phase") == "Succeeded"
    )
    return [
        f"gang {key}: {stands[key]} of {group['spec'].get('minMember', 1)} members stand"
        for key, group in groups.items()
        if stands[key] and stands[key] + done[key] < group["spec"].get("minMember", 1)
    ]


def _group_of(key: str, pod: Document) -> str:
    name = pod["metadata"].get("annotations", {}).get(GROUP, "")
    return f"{key.partition('/')[0]}/{name}" if name else ""
