"""Which acts bring one queue's status to what it should be. A pure function of what was observed.

One write at a time, then the plan is made anew. Closing with the parent writes the mark before the state,
opening the state before the mark is taken off: an end between the two is mended by the same rules. A state is
written only over the state that it was decided from. Counts ride on a change of state; alone they are written
at most once a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from volcano_py.controllers import keys
from volcano_py.controllers.acts import Act, Create, Patch, Plan, Say
from volcano_py.controllers.observed import Change, Observed
from volcano_py.controllers.queue.tree import CLOSED, CLOSING, OPEN, UNKNOWN, Verdict, judge
from volcano_py.controllers.records import PHASES, CommandRecord, GroupRecord, QueueRecord

__all__ = ["Specs", "affected", "always_there", "counted", "make", "mark", "plan", "unmark", "with_state"]

_PHASES: Final[Mapping[str, str]] = {
    "": "pending",
    "Pending": "pending",
    "Running": "running",
    "Inqueue": "inqueue",
    "Unknown": "unknown",
    "Completed": "completed",
}
_SPOKEN: Final[Mapping[str, tuple[str, bool]]] = {
    OPEN: ("OpenQueue", False),
    CLOSED: ("CloseQueue", False),
    CLOSING: ("CloseQueue", False),
    UNKNOWN: ("UnknownQueue", True),
}
"""State -> reason of the event that tells of it, and whether it is a warning."""

Specs = Mapping[str, Mapping[str, Any]]
"""Name of a queue -> its spec."""


def always_there(default_queue: str = keys.DEFAULT_QUEUE) -> Specs:
    """Queues that are made when they are missing."""
    return {
        keys.ROOT: {"weight": 1, "reclaimable": False},
        default_queue: {"weight": 1, "reclaimable": True},
    }


def affected(seen: Observed, change: Change) -> set[str]:
    """Names of the queues to look at after *change*."""
    names: set[str] = set()
    for record in change.records:
        if isinstance(record, QueueRecord):
            names |= _below(seen, record.identity.name)
        elif isinstance(record, GroupRecord | CommandRecord):
            names.add(record.queue)
    return names


def _below(seen: Observed, name: str) -> set[str]:
    """The queue and all below it, since each may have lost or found its way to the root."""
    found, open_ends = {name}, [name]
    while open_ends:
        for child in seen.children(open_ends.pop()):
            if child not in found:
                found.add(child)
                open_ends.append(child)
    return found


def counted(seen: Observed, name: str) -> dict[str, int]:
    """PodGroups of the queue by the field of its status; a phase not written yet counts as pending."""
    counts = dict.fromkeys(PHASES, 0)
    for phase, number in seen.phases(name).items():
        counts[_PHASES.get(phase, "unknown")] += number
    return counts


def plan(seen: Observed, name: str, *, counts_wait_s: float) -> Plan:
    """What is to be done about the queue *name*; *counts_wait_s*: until its counts may be written again."""
    queue = seen.queue(name)
    if queue is None:
        return Plan()
    if queue.identity.terminating:
        return Plan()
    verdict = judge(seen, queue)
    counts = counted(seen, name)
    acts = tuple(_acts(queue, verdict, counts, write_counts=counts_wait_s <= 0))
    waits = not acts and counts != queue.counts
    return Plan(acts, again_s=counts_wait_s if waits else None)


def make(name: str, spec: Mapping[str, Any]) -> Plan:
    """Make the queue *name*."""
    document = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": dict(spec),
    }
    return Plan((Create("Queue", "", document),))


def _acts(
    queue: QueueRecord, verdict: Verdict, counts: Mapping[str, int], *, write_counts: bool
) -> Iterator[Act]:
    if verdict.marked and not queue.closed_by_parent:
        yield mark(queue)
    elif verdict.state != queue.state:
        yield with_state(queue, verdict.state, counts)
        if verdict.why:
            reason, warning = _SPOKEN[verdict.state]
            yield Say(queue.identity, reason, f"{verdict.state}: {verdict.why}", warning)
    elif queue.closed_by_parent and not verdict.marked:
        yield unmark(queue)
    elif write_counts and counts != queue.counts:
        yield Patch(queue.identity, {"status": {**counts}}, sub="status", exact=True)


def mark(queue: QueueRecord) -> Patch:
    """Note that the queue is closed with its parent."""
    return Patch(queue.identity, {"metadata": {"annotations": {keys.CLOSED_BY_PARENT: "true"}}})


def unmark(queue: QueueRecord) -> Patch:
    """Forget that the queue was closed with its parent."""
    return Patch(queue.identity, {"metadata": {"annotations": {keys.CLOSED_BY_PARENT: None}}})


def with_state(queue: QueueRecord, state: str, counts: Mapping[str, int]) -> Patch:
    """Write state and counts, if nobody has written since; what others keep in the status stays."""
    return Patch(queue.identity, {"status": {"state": state, **counts}}, sub="status", exact=True)
