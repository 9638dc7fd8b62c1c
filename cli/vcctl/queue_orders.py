"""What is done to queues, and what is refused with a reason before the server has to."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import ValidationError

from volcano_py.cli.vcctl.cluster import USAGE, Cluster, CommandError, Document
from volcano_py.cli.vcctl.commands import QUEUE_NAMESPACE, order
from volcano_py.cli.vcctl.tables import say
from volcano_py.client.resources import RESOURCES
from volcano_py.crds.messages import validation_messages
from volcano_py.crds.objects import parse_object

ROOT, DEFAULT = "root", "default"
ACTIONS: Final = {"open": "OpenQueue", "close": "CloseQueue"}
REACHED: Final = {"open": ("Open",), "close": ("Closed", "Closing")}
LOOK_S: Final = 0.5
"""Pause between two looks at a queue whose state is waited for."""


def state_of(queue: Document) -> str:
    """State of *queue*; one that nobody has written yet is open."""
    return (queue.get("status") or {}).get("state") or "Open"


def parent_of(queue: Document) -> str:
    """Name of the queue above, "" where none is named."""
    return str((queue.get("spec") or {}).get("parent") or "")


def queue_of(group: Document) -> str:
    """Name of the queue that a PodGroup (or Job) waits in."""
    return str((group.get("spec") or {}).get("queue") or DEFAULT)


def amounts(option: str, given: Iterable[str]) -> dict[str, str]:
    """``cpu=4`` and ``cpu=4,memory=8Gi`` as amounts by resource."""
    found: dict[str, str] = {}
    for text in given:
        for part in text.split(","):
            resource, equals, amount = part.partition("=")
            if not equals or not resource.strip():
                raise CommandError(f"--{option}: {part!r} is no RESOURCE=AMOUNT, such as cpu=4", code=USAGE)
            found[resource.strip()] = amount.strip()
    return found


async def create(
    cluster: Cluster, name: str, weight: int, state: str, parent: str | None, limits: Mapping[str, Any]
) -> None:
    """Make queue *name*; *limits* are lists of ``RESOURCE=AMOUNT`` by field of the spec."""
    spec: Document = {"weight": weight, **({"parent": parent} if parent else {})}
    spec |= {field: amounts(field, given) for field, given in limits.items() if given}
    body = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"state": state},
    }
    _check(body)
    if parent and await cluster.find("Queue", parent) is None:
        raise CommandError(
            f"parent queue {parent} does not exist", f"make it first: vcctl-py queue create {parent}"
        )
    await cluster.create("Queue", body)
    if state != "Open":
        await _set_state(cluster, name, state)
    say(f"queue {name} created")


async def _set_state(cluster: Cluster, name: str, state: str) -> None:
    """The status goes through its own endpoint."""
    path = RESOURCES["Queue"].path(None, name, "status")
    await cluster.api.patch(path, {"status": {"state": state}})


def _check(body: Document) -> None:
    """Refuse what no server would take, in words."""
    try:
        parse_object(body)
    except ValidationError as error:
        faults = "; ".join(f"{path}: {message}" for path, message in validation_messages(error))
        raise CommandError(faults, code=USAGE) from error


async def operate(cluster: Cluster, name: str, action: str | None, weight: int | None, wait_s: float) -> None:
    """Open, close or update queue *name*, and wait up to *wait_s* seconds until it is so."""
    if action is None:
        raise CommandError("say what to do: -a open, -a close or -a update", code=USAGE)
    queue = await cluster.get("Queue", name)
    if action == "update":
        if weight is None:
            raise CommandError("-a update needs the new weight: -w WEIGHT", code=USAGE)
        await cluster.change("Queue", name, {"spec": {"weight": weight}})
        say(f"queue {name} updated: weight {weight}")
        return
    if weight is not None:
        raise CommandError(f"-w goes with -a update, not with -a {action}", code=USAGE)
    if action == "close" and name == ROOT:
        raise CommandError("queue root can't be closed", "close its children one by one")
    made = await order(cluster, queue, ACTIONS[action], QUEUE_NAMESPACE)
    say(f"queue {name}: {ACTIONS[action]} ordered ({made})")
    if wait_s:
        await _wait(cluster, name, REACHED[action], wait_s)


async def _wait(cluster: Cluster, name: str, states: tuple[str, ...], wait_s: float) -> None:
    end = time.monotonic() + wait_s
    while True:
        state = state_of(await cluster.get("Queue", name))
        if state in states:
            say(f"queue {name} is {state}")
            return
        if time.monotonic() > end:
            raise CommandError(
                f"queue {name} is still {state} after {wait_s:g} s",
                "is a queue controller running? (kubectl get pods -n volcano-system)",
            )
        await asyncio.sleep(LOOK_S)


async def delete(cluster: Cluster, name: str) -> None:
    """Delete queue *name* if nothing is in it."""
    if name in (ROOT, DEFAULT):
        raise CommandError(f"queue {name} can't be deleted: every cluster has it")
    queue = await cluster.get("Queue", name)
    queues = await cluster.every("Queue")
    children = sorted(q["metadata"]["name"] for q in queues if parent_of(q) == name)
    if children:
        raise CommandError(
            f"queue {name} has child queues: {', '.join(children)}",
            "delete them first, or give them another parent (spec.parent)",
        )
    phases = Counter(
        (group.get("status") or {}).get("phase") or "Pending"
        for group in await cluster.every("PodGroup")
        if queue_of(group) == name
    )
    if phases:
        told = ", ".join(f"{count} {phase.lower()}" for phase, count in sorted(phases.items()))
        raise CommandError(
            f"queue {name} is not empty: PodGroups {told}",
            f"close it (vcctl-py queue operate {name} -a close), and delete or move what is in it: "
            f"vcctl-py podgroup list -A --queue {name}",
        )
    meta = queue["metadata"]
    preconditions = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    await cluster.remove(
        "Queue", name, {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
    )


async def pause_lending(cluster: Cluster, name: str) -> None:
    """Hold what queue *name* is entitled to for it alone."""
    queue = await cluster.get("Queue", name)
    spec = queue.get("spec") or {}
    held = entitled(spec)
    if not held:
        raise CommandError(
            f"queue {name} states neither deserved nor min, so there is nothing to hold for it",
            f"give it one: kubectl patch queue {name} --type merge -p "
            """'{"spec":{"min":{"cpu":"4"}}}'""",
        )
    if spec.get("lendingPaused"):
        say(f"queue {name} lends nothing already")
        return
    changed = await cluster.change("Queue", name, {"spec": {"lendingPaused": True}})
    if not changed["spec"].get("lendingPaused"):
        raise CommandError(
            "the server's Queue CRD has no field lendingPaused and dropped it",
            "install the CRDs of this version: kubectl apply -f crds/yaml",
        )
    told = ", ".join(f"{amount} {resource}" for resource, amount in sorted(held.items()))
    say(f"queue {name} lends no more; held for it: {told}")


async def resume_lending(cluster: Cluster, name: str) -> None:
    """Let others borrow from queue *name* again."""
    queue = await cluster.get("Queue", name)
    if not (queue.get("spec") or {}).get("lendingPaused"):
        say(f"queue {name} lends already")
        return
    await cluster.change("Queue", name, {"spec": {"lendingPaused": None}})
    say(f"queue {name} lends again")


def entitled(spec: Document) -> dict[str, str]:
    """What a queue states to be owed: deserved, and min where that is not."""
    least = spec.get("min") or (spec.get("guarantee") or {}).get("resource") or {}
    return {**least, **(spec.get("deserved") or {})}
