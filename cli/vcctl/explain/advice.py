"""What would have to change for a refusal to fall away, with the command where there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from volcano_py.cli.vcctl.capacity import pods_on_empty_nodes
from volcano_py.crds.messages import did_you_mean
from volcano_py.crds.quantity import format_base
from volcano_py.scheduler.framework.refusal import ENDLESS, Refusal
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.wording import amounts_text


@dataclass(frozen=True, slots=True)
class Case:
    """A refusal of *job*, in the cluster that it was made in."""

    state: ClusterState
    job: Job
    refusal: Refusal

    @property
    def group(self) -> str:
        """The PodGroup as commands name it."""
        return f"{self.job.name} -n {self.job.namespace}"

    @property
    def missing(self) -> str:
        """The amounts that are short."""
        return amounts_text(self.state, self.refusal.missing)


def changes(state: ClusterState, job: Job, refusal: Refusal) -> list[str]:
    """Ways out of *refusal*; none where nobody can do anything but wait."""
    case = Case(state, job, refusal)
    known = _BY_CODE.get(refusal.reason)
    ways = known(case) if known else []
    return [*_never_whole(case), *ways] if refusal.reason in _ROOM else ways


def _never_whole(case: Case) -> list[str]:
    """That all nodes together hold fewer pods like its than the gang needs, if nothing else ran."""
    state, job = case.state, case.job
    if job.min_member < 2 or not job.pending:
        return []
    # The smallest of everything its pods ask: whoever needs more fits even less often.
    rows = {int(state.tasks.klass[task]) for task in job.pending}
    charge = np.min([state.classes[row].charge for row in rows], axis=0)
    request = np.min([state.classes[row].request for row in rows], axis=0)
    total = state.nodes.allocatable[state.nodes.live].sum(axis=0)
    columns = np.flatnonzero((charge > 0) & (total > 0))
    # Cards are charged in sums; all else has to fit on some node.
    in_sum = int((total[columns] // charge[columns]).min(initial=ENDLESS))
    fits = min(in_sum, pods_on_empty_nodes(state, np.where(total > 0, request, 0)))
    if fits >= job.min_member:
        return []
    return [
        f"more nodes: the gang needs {job.min_member} pods at once, the empty cluster holds {fits} of them"
    ]


def _held(case: Case) -> list[str]:
    return [f"release it: vcctl-py podgroup release {case.group}"]


def _closed(case: Case) -> list[str]:
    return [
        f"open the queue: vcctl-py queue operate {case.job.queue_name} -a open",
        f"move the group: vcctl-py podgroup move {case.group} --to QUEUE",
    ]


def _no_queue(case: Case) -> list[str]:
    name = case.job.queue_name
    known = [queue.name for queue in case.state.queues.live()]
    return [
        f"make the queue: vcctl-py queue create {name}",
        f"name another one{did_you_mean(name, known)}: vcctl-py podgroup move {case.group} --to QUEUE",
    ]


def _queue_limit(case: Case) -> list[str]:
    if not case.missing:
        return []
    return [f"a limit that is higher by {case.missing}, or that much less in use and asked below it"]


def _entitlement(case: Case) -> list[str]:
    return [
        f"{case.missing} less of the queue's work that may not be interrupted",
        f"let it be interrupted, then it may borrow: kubectl annotate podgroup {case.group} "
        "volcano.sh/preemptable=true --overwrite",
    ]


def _nodes(case: Case) -> list[str]:
    refusal, ways = case.refusal, []
    if refusal.missing and refusal.nearest:
        ways.append(f"{case.missing} more free on node {refusal.nearest}, or that much less asked")
    ways += [_largest(name, most) for name, most in _never(case).items()]
    return [*ways, *(_BY_CHECK[check] for check in refusal.failed if check in _BY_CHECK)]


def _largest(name: str, most: str) -> str:
    return (
        f"no node has any {name}" if most == "0" else f"no node has that much {name}: the largest has {most}"
    )


def _never(case: Case) -> dict[str, str]:
    """Resources of which one pod asks more than any node has, and the most that one has."""
    state, most = case.state, {}
    allocatable = state.nodes.allocatable[state.nodes.live]
    for row in {int(state.tasks.klass[task]) for task in case.job.pending}:
        request = state.classes[row].request
        for column, name in enumerate(state.vocabulary.names):
            largest = int(allocatable[:, column].max(initial=0))
            if request[column] > largest:
                most[name] = format_base(name, largest)
    return most


def _gang(case: Case) -> list[str]:
    ways = _nodes(case) or _queue_limit(case)
    if case.job.min_member > 1:
        ways.append(f"a smaller gang: spec.minMember of PodGroup {case.job.key} is {case.job.min_member}")
    return ways


def _few_pods(case: Case) -> list[str]:
    lacks = case.job.min_member - len(case.job.tasks)
    return [
        f"{lacks} more pod{'s' if lacks != 1 else ''} in the group, or a smaller spec.minMember: "
        f"kubectl patch podgroup {case.group} --type merge "
        f"""-p '{{"spec":{{"minMember":{max(len(case.job.tasks), 1)}}}}}'"""
    ]


def _no_group(case: Case) -> list[str]:
    return [f"make PodGroup {case.job.key}, or drop the annotation that names it"]


def _full(case: Case) -> list[str]:
    return (
        [f"{case.missing} less waiting and running in the cluster, or that much more of it"]
        if (case.missing)
        else []
    )


def _not_offered(case: Case) -> list[str]:
    name = next(iter(case.refusal.missing))
    return [
        f"the name of the resource, if {name} is not what was meant",
        f"a node that offers {name}: does its device plugin run?",
    ]


def _gated(_case: Case) -> list[str]:
    return ["whoever set the scheduling gates has to take them away"]


def _nothing_but_time(_case: Case) -> list[str]:
    return ["nothing: it starts when the pods that are leaving are gone"]


def _mend(_case: Case) -> list[str]:
    return ["mend the field that is named"]


_ROOM: Final = frozenset({"NodesUnfit", "GangIncomplete", "ClusterFull"})
"""Refusals for want of room in the cluster."""

_BY_CHECK: Final = {
    "CardRoom": "a card with that much free (vcctl-py top cards), or a smaller slice asked",
    "CardSelection": "a node with such cards (vcctl-py top cards), or less or other cards asked",
    "NodeUnschedulable": "a node that is opened again: kubectl uncordon NODE",
    "NodeAffinity": "a node with the labels that the pod wants, or other ones wanted",
    "TaintToleration": "a toleration in the pod, or the taint taken off a node",
    "NodePorts": "a node where the host port is free, or another port",
    "PodTopologySpread": "a wider maxSkew, or room where fewer such pods are",
    "InterPodAffinity": "a node near the pods that it wants to be with, or a weaker rule",
    "InterPodAntiAffinity": "a node without the pods that it avoids, or a weaker rule",
    "ExistingPodsAntiAffinity": "a node without the pods that avoid it",
    "NodeVolumeLimits": "a node that may attach more volumes",
    "VolumeZone": "a node in the zone of its volumes",
    "VolumeBinding": "a volume that fits its claims on one of the nodes: kubectl describe pvc",
}
"""What would help where nodes fail a check."""

_BY_CODE: Final[dict[str, Callable[[Case], list[str]]]] = {
    "Held": _held,
    "QueueClosed": _closed,
    "NoQueue": _no_queue,
    "QueueInvalid": _mend,
    "InvalidObject": _mend,
    "QueueLimit": _queue_limit,
    "QueueEntitlement": _entitlement,
    "NodesUnfit": _nodes,
    "GangIncomplete": _gang,
    "NotEnoughTasks": _few_pods,
    "NotEnoughPodsOfTask": _mend,
    "NoPodGroup": _no_group,
    "ClusterFull": _full,
    "NotOffered": _not_offered,
    "SchedulingGated": _gated,
    "Reserved": _nothing_but_time,
    "Waiting": _nothing_but_time,
}
