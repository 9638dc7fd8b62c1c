"""What a Command to a queue leads to. A pure function of what was observed.

A Command is carried out and then deleted: an end between the two carries it out again, which changes nothing
the second time. Commands to one queue are carried out in the order in which they were given, and before
anything else is decided about it.
"""

from __future__ import annotations

from collections.abc import Iterator

from volcano_py.controllers import keys
from volcano_py.controllers.acts import Act, Delete, Look, Plan, Say
from volcano_py.controllers.observed import Observed
from volcano_py.controllers.queue.reconcile import counted, unmark, with_state
from volcano_py.controllers.queue.tree import OPEN, SHUT, closing_state, fault
from volcano_py.controllers.records import CommandRecord, QueueRecord

__all__ = ["plan"]

OPEN_QUEUE = "OpenQueue"
CLOSE_QUEUE = "CloseQueue"


def plan(seen: Observed, name: str, *, looked: bool) -> Plan:
    """What the first Command to the queue *name* leads to; nothing where there is none.

    Args:
        seen: the cluster.
        name: of the queue.
        looked: the server was asked for the queue, if it isn't seen.
    """
    commands = seen.commands(name)
    queue = seen.queue(name)
    if not commands:
        return Plan()
    if queue is None and not looked:
        return Plan((Look("Queue", "", name),))
    return Plan((*_obey(seen, queue, commands[0]), Delete(commands[0].identity)))


def _obey(seen: Observed, queue: QueueRecord | None, command: CommandRecord) -> tuple[Act, ...]:
    if queue is None or queue.identity.terminating:
        return (Say(command.identity, "NoQueue", f'queue "{command.queue}" does not exist', warning=True),)
    if command.queue_uid and command.queue_uid != queue.identity.uid:
        text = f'it was meant for an earlier queue "{command.queue}"'
        return (Say(command.identity, "NoQueue", text, warning=True),)
    if command.action == OPEN_QUEUE:
        return tuple(_open(seen, queue, command))
    if command.action == CLOSE_QUEUE:
        return tuple(_close(seen, queue, command))
    text = f'a queue can be told {OPEN_QUEUE} or {CLOSE_QUEUE}, not "{command.action}"'
    return (Say(queue.identity, "UnknownAction", text, warning=True),)


def _open(seen: Observed, queue: QueueRecord, command: CommandRecord) -> Iterator[Act]:
    """Open the queue, unless there is no open way from the root to it."""
    broken = fault(seen, queue)
    parent = seen.queue(queue.parent)
    if not broken and queue.parent != keys.ROOT and parent is not None and parent.state in SHUT:
        broken = f'its parent "{queue.parent}" is closed; open that first'
    if broken:
        yield Say(queue.identity, OPEN_QUEUE, f"stays {queue.state or OPEN}: {broken}", warning=True)
        return
    if queue.state != OPEN:
        yield with_state(queue, OPEN, counted(seen, queue.identity.name))
        yield Say(queue.identity, OPEN_QUEUE, _told("opened", command))
    if queue.closed_by_parent:
        yield unmark(queue)


def _close(seen: Observed, queue: QueueRecord, command: CommandRecord) -> Iterator[Act]:
    """Close the queue for itself: it stays closed when its parent opens."""
    if queue.identity.name == keys.ROOT:
        yield Say(queue.identity, CLOSE_QUEUE, "the root queue can't be closed", warning=True)
        return
    if queue.state not in SHUT:
        yield with_state(queue, closing_state(seen, queue), counted(seen, queue.identity.name))
        yield Say(queue.identity, CLOSE_QUEUE, _told("closed", command))
    if queue.closed_by_parent:
        yield unmark(queue)


def _told(what: str, command: CommandRecord) -> str:
    return f"{what} by command{f': {command.message}' if command.message else ''}"
