"""What is wrong between objects: names that lead nowhere, gangs that can't be whole.

Each object may be sound by itself. Looked at once, after everything was taken in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from volcano_py.crds.annotations import GROUP
from volcano_py.crds.podgroup import PodGroup
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.groups import COMPLETED
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.kube.errors import Problem
from volcano_py.scheduler.model.pods import CRITICAL_CLASSES
from volcano_py.scheduler.model.tasks import NOWHERE, Status

Finding = tuple[str, str, Problem]
"""Kind, "namespace/name", and what is wrong."""

_SHOWN: Final = 8


def broken_links(state: ClusterState) -> list[Finding]:
    """What keeps objects of *state* from ever being served until somebody mends them."""
    found = [
        ("Queue", q.name, Problem("spec.parent", q.spec_problem))
        for q in state.queues.live()
        if q.spec_problem
    ]
    for job in state.jobs.live():
        if job.group is None:
            found += _no_group(state, job)
        elif job.phase != COMPLETED:
            found += [("PodGroup", job.key, problem) for problem in _of_group(state, job, job.group)]
    return found


def doubts(state: ClusterState) -> list[Finding]:
    """What could be read some way but deserves a look."""
    found: list[Finding] = []
    for name, problems in sorted(state.doubts.items()):
        kind, _, key = name.partition(" ")
        found += [(kind, key, problem) for problem in problems]
    return [*found, *_unknown_priorities(state), *_without_pods(state), *_without_node(state)]


def _no_group(state: ClusterState, job: Job) -> Iterator[Finding]:
    """Told of the first of its pods: there is no other object to mend."""
    if f"PodGroup {job.key}" not in state.problems and job.tasks:
        first = min(state.tasks.keys[task] for task in job.tasks)
        others = _others(len(job.tasks) - 1)
        said = f", and {others} name{'' if len(job.tasks) > 2 else 's'} it" if others else ""
        message = f"PodGroup {job.key} does not exist{said}; add it, or drop the annotation"
        yield "Pod", first, Problem(f"metadata.annotations[{GROUP}]", message)


def _of_group(state: ClusterState, job: Job, group: PodGroup) -> Iterator[Problem]:
    queue = None if job.queue < 0 else state.queues[job.queue]
    if queue is None:
        yield Problem("spec.queue", _no_queue(state, job.queue_name))
    elif not queue.leaf:
        yield Problem(
            "spec.queue", f"queue {queue.name} has child queues and takes no jobs; name one of those"
        )
    if job.tasks and len(job.tasks) < job.min_member and not _of_a_job(group):
        yield Problem(
            "spec.minMember",
            f"the gang needs {job.min_member} pods and has {len(job.tasks)}, so it can't start; "
            "add pods or lower this",
        )


def _of_a_job(group: PodGroup) -> bool:
    """A controller counts its pods: those that are missing will come, or have an error of their own."""
    return any(owner.kind == "Job" for owner in group.metadata.owner_references)


def _no_queue(state: ClusterState, name: str) -> str:
    if f"Queue {name}" in state.problems:
        return f"queue {name} can't be used, since its object is not valid"
    known = [queue.name for queue in state.queues.live()]
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"queue {name} does not exist; there are {', '.join(known[:_SHOWN])}{more}"


def _others(count: int) -> str:
    """*count* further pods in words; "" for none."""
    return f"{count} more pod{'s' if count > 1 else ''}" if count > 0 else ""


def _unknown_priorities(state: ClusterState) -> Iterator[Finding]:
    known = {*state.priority_classes, *CRITICAL_CLASSES, ""}
    named: list[tuple[str, str, str]] = [
        ("PodGroup", job.key, job.priority_class) for job in state.jobs.live() if job.group is not None
    ]
    for key, task in state.tasks.index.items():
        pod = state.tasks.pods[task]
        if pod is not None and pod.spec.priority is None:
            named.append(("Pod", key, pod.spec.priority_class_name))
    for kind, key, name in sorted(named):
        if name not in known:
            problem = Problem("spec.priorityClassName", f"priority class {name} does not exist; counts as 0")
            yield kind, key, problem


def _without_pods(state: ClusterState) -> Iterable[Finding]:
    """Groups that nobody is in; one made for a pod that is wrong waits for the pod to be mended."""
    for job in state.jobs.live():
        if job.group is None or job.tasks or not job.min_member or job.phase == COMPLETED:
            continue
        owners = [
            f"{o.kind} {job.key.partition('/')[0]}/{o.name}" for o in job.group.metadata.owner_references
        ]
        if not any(owner in state.problems for owner in owners):
            yield "PodGroup", job.key, Problem("", "has no pods; it may pass the gate, but nothing starts")


def _without_node(state: ClusterState) -> Iterator[Finding]:
    """Pods that are somewhere nobody knows, told once for every such place."""
    lost: dict[str, list[str]] = {}
    for key, task in state.tasks.index.items():
        pod, status = state.tasks.pods[task], state.tasks.status[task]
        over = status in (Status.SUCCEEDED, Status.FAILED)
        if pod is not None and pod.spec.node_name and not over and not _is_there(state, pod.spec.node_name):
            lost.setdefault(pod.spec.node_name, []).append(key)
    for node, keys in sorted(lost.items()):
        who = f"this and {_others(len(keys) - 1)} run" if len(keys) > 1 else "this pod runs"
        problem = Problem("spec.nodeName", f"node {node}, where {who}, does not exist in the input")
        yield "Pod", min(keys), problem


def _is_there(state: ClusterState, node: str) -> bool:
    """There is a *node*, or an object of that name whose own faults are told."""
    row = state.nodes.index.get(node, NOWHERE)
    return (row != NOWHERE and bool(state.nodes.live[row])) or f"Node {node}" in state.problems
