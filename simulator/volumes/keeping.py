"""Follows the claims, volumes and storage classes of one server and carries out what ``plan`` says.

One request at a time: so no two claims take one volume, and what the server answers is known before anything
else is decided.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Final

import msgspec
import structlog

from volcano_py.client.api import RESOURCES, Api, ApiError, Unreachable
from volcano_py.scheduler.cluster import reflector
from volcano_py.scheduler.model.storage import SELECTED_NODE
from volcano_py.simulator.following import Followed, follow, run_listed
from volcano_py.simulator.telling import event_about
from volcano_py.simulator.volumes.known import CLAIM, KINDS, VOLUME, Document, Key, Known
from volcano_py.simulator.volumes.plan import (
    Change,
    Provision,
    Remove,
    Step,
    Told,
    next_step,
    on_node,
    why_waiting,
)

_decode: Final = msgspec.json.Decoder(dict).decode
_RETRY_S: Final = (1.0, 5.0)
_log = structlog.get_logger("volumes")


async def keep_volumes(api: Api, *, tells: bool = True) -> None:
    """Make volumes for claims of our provisioner, and bind claims and volumes, until cancelled.

    Claims of other provisioners are left alone. Where there is a volume controller, both write the same.

    Args:
        api: the server.
        tells: say on claims why they wait; not where a volume controller does.
    """
    volumes = Volumes(api, tells=tells)
    async with asyncio.TaskGroup() as group:
        # Nobody's claim and nobody's volume is missing when the first step is decided.
        await run_listed(
            group,
            [follow(api, Followed(RESOURCES[kind], _decode, {}), _teller(volumes, kind)) for kind in KINDS],
        )
        group.create_task(volumes.run())


class Volumes:
    """The claims and volumes that are known, and those that have to be looked at."""

    def __init__(self, api: Api, *, tells: bool) -> None:
        self._api, self._tells = api, tells
        self._known = Known()
        self._waiting: dict[Key, None] = {}
        self._told: dict[str, Told] = {}
        self._changed = asyncio.Event()

    def put(self, kind: str, document: Document) -> None:
        """*document* is new or changed."""
        # Items of a list don't repeat what the list says of them.
        named = {**document, "apiVersion": RESOURCES[kind].api_version, "kind": kind}
        self._look_at(self._known.put(named))

    def drop(self, kind: str, key: str) -> None:
        """The object is gone."""
        if kind == CLAIM and (claim := self._known.claims.get(key)):
            self._told.pop(claim["metadata"]["uid"], None)
        self._look_at(self._known.drop(kind, key))

    async def run(self) -> None:
        """Carry out steps, until cancelled."""
        while True:
            while self._waiting:
                key = next(iter(self._waiting))
                del self._waiting[key]
                await self._try(key)
            self._changed.clear()
            await self._changed.wait()

    def _look_at(self, keys: Iterable[Key]) -> None:
        self._waiting.update(dict.fromkeys(keys))
        self._changed.set()

    async def _try(self, key: Key) -> None:
        step = next_step(self._known, key)
        try:
            if step is None:
                if self._tells:
                    await self._tell(key)
                return
            if isinstance(step, Change) and step.ask is not None:
                await self._read(step.ask)
                if next_step(self._known, key) != step:
                    self._look_at([key])
                    return
            await self._carry_out(step)
        except (ApiError, Unreachable) as error:
            if not (isinstance(error, ApiError) and (error.is_conflict or error.is_missing)):
                _log.warning("a claim or volume can't be served", object="/".join(key), why=str(error))
            asyncio.get_running_loop().call_later(random.uniform(*_RETRY_S), self._look_at, [key])

    async def _carry_out(self, step: Step) -> None:
        match step:
            case Change(document, patch, sub):
                kind, meta = document["kind"], document["metadata"]
                same = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
                body = {**patch, "metadata": {**patch.get("metadata", {}), **same}}
                path = RESOURCES[kind].path(meta.get("namespace"), meta["name"], sub or None)
                self.put(kind, await self._api.patch(path, body))
            case Provision():
                await self._provision(step)
            case Remove(volume):
                path = RESOURCES[VOLUME].path(None, volume["metadata"]["name"])
                await self._api.delete(path, {"preconditions": {"uid": volume["metadata"]["uid"]}})

    async def _tell(self, key: Key) -> None:
        """Say on a claim why it waits, once; who starts anew finds it said."""
        claim = self._known.claims.get(key[1]) if key[0] == CLAIM else None
        told = why_waiting(self._known, claim) if claim is not None else None
        if claim is None or told is None or self._told.get(uid := claim["metadata"]["uid"]) == told:
            return
        event = event_about(claim, *told, by="volcano-py-volumes")
        event["metadata"] = {
            "name": f"{uid}.{told.reason.lower()}",
            "namespace": claim["metadata"]["namespace"],
        }
        try:
            await self._api.post(RESOURCES["Event"].path(claim["metadata"]["namespace"]), event)
        except ApiError as error:
            if not error.is_exists:
                raise
        self._told[uid] = told

    async def _provision(self, step: Provision) -> None:
        """Make the volume. Where its node is gone the wish is taken back, and the scheduler chooses anew."""
        volume = step.volume
        if step.node:
            node = await self._get(RESOURCES["Node"].path(None, step.node))
            if node is None:
                await self._carry_out(
                    Change(step.claim, {"metadata": {"annotations": {SELECTED_NODE: None}}})
                )
                return
            volume = on_node(volume, node)
        try:
            self.put(VOLUME, await self._api.post(RESOURCES[VOLUME].path(), volume))
        except ApiError as error:
            if not error.is_exists:
                raise
            await self._read((VOLUME, volume["metadata"]["name"]))

    async def _read(self, key: Key) -> None:
        """Ask the server how *key* is now."""
        kind, name = key
        space, _, plain = name.rpartition("/")
        # A reference may name nothing.
        found = await self._get(RESOURCES[kind].path(space or None, plain)) if plain else None
        if found is None:
            self.drop(kind, name)
        else:
            self.put(kind, found)

    async def _get(self, path: str) -> Document | None:
        try:
            found: Document = await self._api.get(path)
        except ApiError as error:
            if error.is_missing:
                return None
            raise
        return found


def _teller(volumes: Volumes, kind: str) -> Callable[[reflector.Change], None]:
    def tell(change: reflector.Change) -> None:
        if change.item is not None:
            volumes.put(kind, change.item)
        elif change.is_deletion:
            volumes.drop(kind, change.key)

    return tell
