"""What is to be said on an object, seen against what it says already: an order, or None where nothing is new.

Pure functions. Since they start from the object, a scheduler that starts again repeats nothing. A sentence
that differs in figures alone ("0/1523 nodes", "0/1524 nodes") makes a minor order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from volcano_py.crds.podgroup import PodGroup, PodGroupCondition
from volcano_py.crds.queue import Queue
from volcano_py.scheduler.cluster.events import same_words
from volcano_py.scheduler.cluster.orders import GroupOrder, NominateOrder, Note, QueueOrder, RefusalOrder
from volcano_py.scheduler.model.kube.objects import Pod
from volcano_py.scheduler.model.kube.times import format_time

SCHEDULED: Final = "PodScheduled"
UNSCHEDULABLE: Final = "Unschedulable"
"""Reason of the pod condition for which cluster autoscalers (Cluster Autoscaler, Karpenter) add nodes."""
GROUP_SCHEDULED: Final = "Scheduled"
GROUP_UNSCHEDULABLE: Final = "Unschedulable"
GANG_INCOMPLETE: Final = "GangIncomplete"
_OPPOSITE: Final = {GROUP_SCHEDULED: GROUP_UNSCHEDULABLE, GROUP_UNSCHEDULABLE: GROUP_SCHEDULED}
NO_NODE_HELPS: Final = frozenset(
    {
        "NoPodGroup",
        "NoQueue",
        "NotEnoughPodsOfTask",
        "NotEnoughTasks",
        "QueueClosed",
        "QueueEntitlement",
        "QueueInvalid",
        "QueueLimit",
        "SchedulingGated",
        "VolumeClaims",
        "BindFailed",
    }
)
"""Reasons of refusals that another node would not change: no autoscaler is to buy one for them."""

MOST_EVENTS: Final = 10
"""Members of one gang with the same refusal that get an event of their own; all get the condition."""


class Said(NamedTuple):
    """A condition of a PodGroup as it should be."""

    type: str
    status: str
    reason: str
    message: str


def refusal(
    pod: Pod,
    message: str,
    reason: str = UNSCHEDULABLE,
    *,
    nodes: int = 1,
    event: bool = True,
    told: tuple[str, str] | None = None,
) -> RefusalOrder | None:
    """Say on *pod* that it waits.

    Args:
        pod: as the server has it.
        message: the refusal's sentence.
        reason: the refusal's reason; one that more nodes may change becomes ``Unschedulable``.
        nodes: how many nodes were looked at for it; 0 of a gang that something else stops.
        event: whether an event is wanted.
        told: reason (``waits_for``) and message of what was ordered last, which *pod* may not show yet; None
            where that is all that counts.
    """
    reason = waits_for(reason, nodes)
    minor = False
    for last_reason, last_message in _shown(pod) if told is None else [told]:
        if last_reason == reason:
            if last_message == message:
                return None
            minor = same_words(last_message, message)
    return RefusalOrder(
        pod.namespace, pod.name, pod.uid, message, reason, minor=minor, event=event and not minor
    )


def waits_for(reason: str, nodes: int) -> str:
    """The condition's reason of a pod that is refused for *reason* after *nodes* were looked at."""
    elsewhere = reason in NO_NODE_HELPS or (reason == GANG_INCOMPLETE and not nodes)
    return reason if elsewhere else UNSCHEDULABLE


def _shown(pod: Pod) -> Iterator[tuple[str, str]]:
    """Reason and message of why *pod* waits, as it says itself."""
    for condition in pod.status.conditions:
        if condition.type == SCHEDULED and condition.status == "False":
            yield condition.reason, condition.message


def nomination(pod: Pod, node: str, told: str | None = None) -> NominateOrder | None:
    """Write *node* (or "") as the node where room is kept for *pod*.

    *told* was ordered last, which *pod* may not show yet; None where what it shows is all that counts.
    """
    last = pod.status.nominated_node_name if told is None else told
    if last == node or pod.spec.node_name:
        return None
    return NominateOrder(pod.namespace, pod.name, pod.uid, node)


def group_status(
    group: PodGroup,
    phase: str,
    counts: tuple[int, int, int],
    conditions: Sequence[Said],
    transition: str,
    now: float,
) -> GroupOrder | None:
    """Write the status of *group*.

    Args:
        group: as the server has it.
        phase: the phase.
        counts: members that run, succeeded and failed.
        conditions: what holds now; others on the object stay, but for the opposite of one of these.
        transition: identity of the cycle, for conditions that change.
        now: epoch seconds.
    """
    before = group.status
    old = [] if before is None else before.conditions
    merged = _merged(old, conditions, transition, now)
    status: dict[str, Any] = {"phase": phase}
    status.update(zip(("running", "succeeded", "failed"), counts, strict=True))
    was = ("", 0, 0, 0) if before is None else (before.phase, before.running, before.succeeded, before.failed)
    told = _notes(old, conditions)
    same_counts = was == (phase, *counts)
    if same_counts and merged == [_written(each) for each in old]:
        return None
    status["conditions"] = merged
    meta = group.metadata
    namespace = meta.namespace or "default"
    minor = same_counts and not told and _same_states(old, merged)
    blank_at = meta.resource_version if before is None else ""
    return GroupOrder(namespace, meta.name, meta.uid, status, told, minor, blank_at)


def queue_status(queue: Queue, allocated: Mapping[str, str]) -> QueueOrder | None:
    """Write what the pods of *queue* hold."""
    before = {} if queue.status is None else queue.status.allocated
    if dict(before) == dict(allocated):
        return None
    meta = queue.metadata
    blank_at = meta.resource_version if queue.status is None else ""
    return QueueOrder(meta.name, meta.uid, {"allocated": dict(allocated)}, blank_at)


def _merged(
    old: Iterable[PodGroupCondition], new: Sequence[Said], transition: str, now: float
) -> list[dict[str, str]]:
    """*new* among *old*; the time and the cycle stay where status and reason do."""
    known = {each.type: _written(each) for each in old}
    for said in new:
        before = known.get(said.type)
        entry = {"type": said.type, "status": said.status, "reason": said.reason, "message": said.message}
        if before is not None and (before["status"], before["reason"]) == (said.status, said.reason):
            known[said.type] = {**before, "message": said.message}
        else:
            known[said.type] = {**entry, "transitionID": transition, "lastTransitionTime": format_time(now)}
        opposite = known.get(_OPPOSITE.get(said.type, ""))
        if said.status == "True" and opposite is not None and opposite["status"] == "True":
            changed = {"status": "False", "transitionID": transition, "lastTransitionTime": format_time(now)}
            known[opposite["type"]] = {**opposite, **changed}
    return list(known.values())


def _written(condition: PodGroupCondition) -> dict[str, str]:
    entry = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "transitionID": condition.transition_id,
    }
    if condition.last_transition_time is not None:
        entry["lastTransitionTime"] = str(condition.last_transition_time)
    return entry


def _notes(old: Iterable[PodGroupCondition], new: Sequence[Said]) -> tuple[Note, ...]:
    """Events for what is new in words."""
    held = {each.type: each for each in old if each.status == "True"}
    notes = []
    for said in new:
        before = held.get(said.type)
        if said.status != "True" or (before is not None and _says(before, said)):
            continue
        if said.type == GROUP_SCHEDULED:
            notes.append(Note("Scheduled", said.message or said.reason, action="Binding"))
        elif said.type == GROUP_UNSCHEDULABLE:
            notes.append(Note("Unschedulable", said.message, warning=True))
    return tuple(notes)


def _says(before: PodGroupCondition, said: Said) -> bool:
    return before.reason == said.reason and same_words(before.message, said.message)


def _same_states(old: Iterable[PodGroupCondition], merged: Sequence[Mapping[str, str]]) -> bool:
    """Only messages differ."""
    states = {each.type: (each.status, each.reason) for each in old}
    return states == {each["type"]: (each["status"], each["reason"]) for each in merged}
