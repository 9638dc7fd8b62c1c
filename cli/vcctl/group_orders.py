"""What is done to PodGroups. A change names the version it was decided on, so none comes too late."""

from __future__ import annotations

from typing import Final

from volcano_py.cli.vcctl.cluster import Cluster, CommandError, Document
from volcano_py.cli.vcctl.queue_orders import parent_of, queue_of, state_of
from volcano_py.cli.vcctl.tables import say
from volcano_py.crds.annotations import BOOST, GROUP, HOLD
from volcano_py.scheduler.model.notes import as_flag

WAITING: Final = ("Pending", "Inqueue")
"""Phases in which nothing of a group runs."""


def phase(group: Document) -> str:
    """Phase of *group*; Pending before anybody has looked at it."""
    return (group.get("status") or {}).get("phase") or "Pending"


def is_held(group: Document) -> bool:
    """Whether somebody holds *group*."""
    return bool(as_flag(_annotation(group, HOLD)))


def boost_of(group: Document) -> str:
    """Its boost as written, "" where it has none."""
    return _annotation(group, BOOST) or ""


def _annotation(group: Document, key: str) -> str | None:
    return (group["metadata"].get("annotations") or {}).get(key)


async def members(cluster: Cluster, group: Document) -> list[Document]:
    """Pods of *group*."""
    meta = group["metadata"]
    pods = await cluster.every("Pod", meta["namespace"])
    return [pod for pod in pods if _annotation(pod, GROUP) == meta["name"]]


async def move(cluster: Cluster, name: str, queue: str) -> None:
    """Let PodGroup *name* wait in *queue* instead; its Job, if it has one, is told too."""
    group = await cluster.get("PodGroup", name)
    if queue_of(group) == queue:
        say(f"podgroup {name} is in queue {queue} already")
        return
    running = [p["metadata"]["name"] for p in await members(cluster, group) if p["spec"].get("nodeName")]
    if phase(group) not in WAITING or running:
        told = f"{len(running)} of its pods have a node" if running else f"it is {phase(group)}"
        raise CommandError(
            f"podgroup {name} can't be moved: {told}",
            "only groups of which nothing runs can be moved; suspend its job first (vcctl-py job suspend)",
        )
    await _check_target(cluster, queue)
    await _job(cluster, group, queue)
    await _patch(cluster, group, {"spec": {"queue": queue}, "status": {"phase": "Pending"}})
    say(f"podgroup {name} moved from queue {queue_of(group)} to {queue}")


async def _check_target(cluster: Cluster, queue: str) -> None:
    target = await cluster.get("Queue", queue)
    if state_of(target) != "Open":
        raise CommandError(
            f"queue {queue} is {state_of(target)} and takes no jobs",
            f"open it: vcctl-py queue operate {queue} -a open",
        )
    children = [q["metadata"]["name"] for q in await cluster.every("Queue") if parent_of(q) == queue]
    if children:
        raise CommandError(
            f"queue {queue} has child queues and takes no jobs itself",
            f"name one of {', '.join(sorted(children))}",
        )


async def _job(cluster: Cluster, group: Document, queue: str) -> None:
    """The Job that made *group* would set its queue back, so it is changed with it."""
    for owner in group["metadata"].get("ownerReferences") or []:
        if owner.get("kind") == "Job" and str(owner.get("apiVersion", "")).startswith("batch.volcano.sh/"):
            patch = {"metadata": {"uid": owner["uid"]}, "spec": {"queue": queue}}
            await cluster.change("Job", owner["name"], patch)


async def hold(cluster: Cluster, name: str) -> None:
    """Hold PodGroup *name*."""
    group = await cluster.get("PodGroup", name)
    if is_held(group):
        say(f"podgroup {name} is held already")
        return
    await _annotate(cluster, group, HOLD, "true")
    say(f"podgroup {name} is held; what runs of it goes on")


async def release(cluster: Cluster, name: str) -> None:
    """Release PodGroup *name*."""
    group = await cluster.get("PodGroup", name)
    if not is_held(group):
        say(f"podgroup {name} is not held")
        return
    await _annotate(cluster, group, HOLD, None)
    say(f"podgroup {name} is released")


async def boost(cluster: Cluster, name: str, by: int) -> None:
    """Give PodGroup *name* the boost *by*; 0 takes it away."""
    group = await cluster.get("PodGroup", name)
    await _annotate(cluster, group, BOOST, str(by) if by else None)
    say(f"podgroup {name} goes {'by its priority again' if not by else f'with boost {by}'}")


async def _annotate(cluster: Cluster, group: Document, key: str, value: str | None) -> None:
    await _patch(cluster, group, {"metadata": {"annotations": {key: value}}})


async def _patch(cluster: Cluster, group: Document, patch: Document) -> None:
    meta = group["metadata"]
    version = {"resourceVersion": meta["resourceVersion"], "uid": meta["uid"]}
    await cluster.change(
        "PodGroup", meta["name"], {**patch, "metadata": {**version, **patch.get("metadata", {})}}
    )
