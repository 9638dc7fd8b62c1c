"""A small controller manager: follows owners, pods and nodes of one server and keeps them in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from volcano_py.client.api import RESOURCES, Api
from volcano_py.scheduler.cluster.reflector import Change
from volcano_py.simulator.following import Followed, follow, run_listed
from volcano_py.simulator.workloads.orphans import QUARANTINE_S, Orphans
from volcano_py.simulator.workloads.owners import KINDS, Owners

_decode: Final = msgspec.json.Decoder(dict).decode


async def keep_workloads(api: Api, *, quarantine_s: float = QUARANTINE_S) -> None:
    """Be the controller manager of *api*, as far as trying needs one, until cancelled.

    Makes the pods of Jobs, ReplicaSets and Deployments and deletes those whose node is gone for longer than
    *quarantine_s*. Not for a server that has a controller manager.
    """
    owners, orphans = Owners(api), Orphans(api, quarantine_s=quarantine_s)
    tellers = {kind: _teller(owners, kind) for kind in KINDS}
    tellers["Pod"] = _both(tellers["Pod"], orphans.on_pod)
    followed = {**KINDS, "Node": RESOURCES["Node"]}
    tellers["Node"] = orphans.on_node
    async with asyncio.TaskGroup() as group:
        reflectors = [
            follow(api, Followed(followed[kind], _decode, {}), tell) for kind, tell in tellers.items()
        ]
        await run_listed(group, reflectors)  # no child and no node is missing when the first plan is made
        group.create_task(owners.run())
        group.create_task(orphans.run())


def _both(first: Callable[[Change], None], second: Callable[[Change], None]) -> Callable[[Change], None]:
    def tell(change: Change) -> None:
        first(change)
        second(change)

    return tell


def _teller(owners: Owners, kind: str) -> Callable[[Change], None]:
    uids: dict[str, str] = {}

    def tell(change: Change) -> None:
        if change.item is not None:
            uids[change.key] = change.item["metadata"]["uid"]
            owners.put(kind, change.item)
        elif change.key in uids:
            owners.drop(kind, uids.pop(change.key))

    return tell
