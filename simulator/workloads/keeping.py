"""Follows owners and their children on one server and keeps them, until cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from volcano_py.scheduler.cluster.api import Api
from volcano_py.scheduler.cluster.reflector import Change
from volcano_py.simulator.following import Followed, follow
from volcano_py.simulator.workloads.owners import KINDS, Owners

_decode: Final = msgspec.json.Decoder(dict).decode


async def keep_workloads(api: Api) -> None:
    """Be the controller of Jobs, ReplicaSets and Deployments on *api*, until cancelled.

    Not for a server whose controller manager keeps them already.
    """
    owners = Owners(api)
    async with asyncio.TaskGroup() as group:
        reflectors = [
            follow(api, Followed(resource, _decode, {}), _teller(owners, kind))
            for kind, resource in KINDS.items()
        ]
        for one in reflectors:
            group.create_task(one.run())
        for one in reflectors:  # nobody's children are missing when the first plan is made
            await one.listed.wait()
        group.create_task(owners.run())


def _teller(owners: Owners, kind: str) -> Callable[[Change], None]:
    uids: dict[str, str] = {}

    def tell(change: Change) -> None:
        if change.item is not None:
            uids[change.key] = change.item["metadata"]["uid"]
            owners.put(kind, change.item)
        elif change.key in uids:
            owners.drop(kind, uids.pop(change.key))

    return tell
