"""Which state a queue should have, seen its parent, its groups, and what it was told.

A queue is judged by its own record and its parent's state, so a change travels down the tree queue by queue.
What people ordered lasts: only a queue that was closed with its parent (marked) opens with it. A queue whose
way to the root is broken is Unknown, which the scheduler treats as not open, until the way is mended; queues
that are closed stay so. The root is always open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from volcano_py.controllers import keys
from volcano_py.controllers.observed import Observed
from volcano_py.controllers.records import QueueRecord

__all__ = ["CLOSED", "CLOSING", "OPEN", "UNKNOWN", "Verdict", "closing_state", "fault", "judge"]

State = Literal["Open", "Closed", "Closing", "Unknown"]

OPEN: Final = "Open"
CLOSED: Final = "Closed"
CLOSING: Final = "Closing"
UNKNOWN: Final = "Unknown"

SHUT: Final = frozenset({CLOSED, CLOSING})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a queue should be.

    Attributes:
        marked: it was closed with its parent and opens with it.
        why: for people, where it is Unknown or changes with its parent; else empty.
    """

    state: State
    marked: bool
    why: str = ""


def judge(seen: Observed, queue: QueueRecord) -> Verdict:
    """What *queue* should be, nobody having ordered anything new."""
    if queue.identity.name == keys.ROOT:
        return Verdict(OPEN, marked=False)
    if queue.state in SHUT and not queue.closed_by_parent:
        return _shut(seen, queue, marked=False)
    broken = fault(seen, queue)
    if broken:  # whatever was seen of the parent before, so that the order of events makes no difference
        return Verdict(UNKNOWN, marked=False, why=broken)
    if _parent_state(seen, queue) not in SHUT:
        reopened = f'its parent "{queue.parent}" is open again' if queue.state in SHUT else ""
        return Verdict(OPEN, marked=False, why=reopened)
    if queue.state in SHUT:
        return _shut(seen, queue, marked=True)
    return Verdict(closing_state(seen, queue), marked=True, why=f'its parent "{queue.parent}" is closed')


def _shut(seen: Observed, queue: QueueRecord, *, marked: bool) -> Verdict:
    state = CLOSED if queue.state == CLOSED else closing_state(seen, queue)
    return Verdict(state, marked=marked)


def closing_state(seen: Observed, queue: QueueRecord) -> Literal["Closed", "Closing"]:
    """Closing while any PodGroup is left in the queue, then Closed."""
    return CLOSING if any(seen.phases(queue.identity.name).values()) else CLOSED


def fault(seen: Observed, queue: QueueRecord) -> str:
    """What is wrong with the queue's way to the root; empty: nothing.

    That a queue further up has a fault shows in the parent's state, so each queue names its own neighbour.
    """
    if queue.parent == keys.ROOT:
        return ""
    parent = seen.queue(queue.parent)
    if parent is None:
        return f'its parent queue "{queue.parent}" does not exist'
    if _is_on_a_cycle(seen, queue):
        return f'its parent "{queue.parent}" is also below it'
    if parent.state == UNKNOWN:
        return f'its parent queue "{queue.parent}" has no way to the root'
    return ""


def _is_on_a_cycle(seen: Observed, queue: QueueRecord) -> bool:
    passed: set[str] = set()
    above: QueueRecord | None = queue
    while above is not None and above.identity.name not in passed:
        passed.add(above.identity.name)
        above = seen.queue(above.parent)
    return above is not None and above.identity.name == queue.identity.name != keys.ROOT


def _parent_state(seen: Observed, queue: QueueRecord) -> str:
    """The parent's state; one that nobody has judged yet counts as open. The root always is."""
    parent = None if queue.parent == keys.ROOT else seen.queue(queue.parent)
    return (parent.state if parent is not None else "") or OPEN
