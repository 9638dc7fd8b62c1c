"""Keeps the Jobs, ReplicaSets and Deployments of one API server: carries out what ``plan`` says.

Level-triggered: whatever changes, the owner is planned anew from what is known now. What the server answers
to a change of ours counts as known at once, so nothing is made twice while the watch is late.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from volcano_py.client.api import RESOURCES, Api, ApiError, Resource, Unreachable
from volcano_py.scheduler.model.kube.times import format_time
from volcano_py.simulator.telling import WARNING, event_about
from volcano_py.simulator.workloads.plan import (
    Document,
    Plan,
    plan_deployment,
    plan_job,
    plan_replicas,
)

Planner = Callable[[Document, Sequence[Document], str], Plan]
JOB: Final = Resource("batch", "v1", "jobs", "Job")
_CHILDREN: Final = {"Deployment": "ReplicaSet"}
"""What an owner owns, where that is not pods."""
OWNERS: Final[dict[str, tuple[Resource, Planner]]] = {
    "Job": (JOB, plan_job),
    "ReplicaSet": (RESOURCES["ReplicaSet"], plan_replicas),
    "Deployment": (RESOURCES["Deployment"], plan_deployment),
}
KINDS: Final = {**{kind: resource for kind, (resource, _) in OWNERS.items()}, "Pod": RESOURCES["Pod"]}
"""What is followed, by kind."""
_RETRY_S: Final = (0.5, 5.0)
_REFUSED_S: Final = (10.0, 30.0)
"""What the server refused once it refuses again, until somebody changes something."""


class Owners:
    """All owners and children that are known, by kind and uid."""

    def __init__(self, api: Api, *, in_flight: int = 4) -> None:
        self._api = api
        self._in_flight = in_flight
        self._known: dict[str, dict[str, Document]] = {kind: {} for kind in KINDS}
        self._children: dict[str, set[tuple[str, str]]] = {}
        self._waiting: dict[tuple[str, str], None] = {}
        self._busy: set[tuple[str, str]] = set()
        self._said: dict[str, str] = {}
        self._changed = asyncio.Event()

    def put(self, kind: str, document: Document) -> None:
        """*document* is new or changed; older states than the one known are dropped."""
        uid = document["metadata"]["uid"]
        known = self._known[kind].get(uid)
        if known is not None and _version(document) < _version(known):
            return
        resource = KINDS[kind]
        # Items of a list don't repeat what the list says of them.
        document = {**document, "apiVersion": resource.api_version, "kind": resource.kind}
        self._known[kind][uid] = document
        owner = _owner_of(document)
        if owner is not None:
            self._children.setdefault(owner[1], set()).add((kind, uid))
            self._ask_for(*owner)
        if kind in OWNERS:
            self._ask_for(kind, uid)

    def drop(self, kind: str, uid: str) -> None:
        """The object is gone."""
        document = self._known[kind].pop(uid, None)
        self._said.pop(uid, None)
        if kind in OWNERS:
            self._children.pop(uid, None)
        owner = None if document is None else _owner_of(document)
        if owner is not None:
            self._children.get(owner[1], set()).discard((kind, uid))
            self._ask_for(*owner)

    async def run(self) -> None:
        """Carry out plans, until cancelled."""
        async with asyncio.TaskGroup() as workers:
            for _ in range(self._in_flight):
                workers.create_task(self._work())

    def _ask_for(self, kind: str, uid: str) -> None:
        if kind in OWNERS:
            self._waiting[kind, uid] = None
            self._changed.set()

    async def _work(self) -> None:
        while True:
            owner = next((one for one in self._waiting if one not in self._busy), None)
            if owner is None:
                self._changed.clear()
                await self._changed.wait()
                continue
            del self._waiting[owner]
            self._busy.add(owner)
            try:
                await self._keep(*owner)
            except Unreachable:
                self._ask_later(owner, _RETRY_S)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                await self._say(owner, f"it can't be read: {type(error).__name__}: {error}")
            except ApiError as error:
                is_final = 400 <= error.status < 500 and not (error.is_busy or error.is_conflict)
                self._ask_later(owner, _REFUSED_S if is_final else _RETRY_S)
                if is_final:
                    await self._say(owner, error.message)
            finally:
                self._busy.discard(owner)
                if owner in self._waiting:
                    self._changed.set()

    def _ask_later(self, owner: tuple[str, str], between_s: tuple[float, float]) -> None:
        asyncio.get_running_loop().call_later(random.uniform(*between_s), self._ask_for, *owner)

    async def _say(self, owner: tuple[str, str], why: str) -> None:
        """An event on *owner*, once for each reason; one that can't be written is said next time."""
        document = self._known[owner[0]].get(owner[1])
        if document is None or self._said.get(owner[1]) == why:
            return
        try:
            event = event_about(document, WARNING, "FailedCreate", why, by="volcano-py-workloads")
            await self._api.post(RESOURCES["Event"].path(document["metadata"]["namespace"]), event)
        except (ApiError, Unreachable):
            return
        self._said[owner[1]] = why

    async def _keep(self, kind: str, uid: str) -> None:
        owner = self._known[kind].get(uid)
        if owner is None or "deletionTimestamp" in owner["metadata"]:
            return
        planner = OWNERS[kind][1]
        child_kind = _CHILDREN.get(kind, "Pod")
        children = [self._known[child_kind][child] for _, child in sorted(self._children.get(uid, ()))]
        plan = planner(owner, children, format_time(time.time()))
        for document in plan.make:
            await self._make(child_kind, document)
        for child in plan.delete:
            await self._delete(child_kind, child)
        for child, replicas in plan.scale:
            path = _path(child_kind, child)
            self.put(child_kind, await self._api.patch(path, {"spec": {"replicas": replicas}}))
        if plan.status != owner.get("status", {}):
            patch = {"metadata": {"uid": uid}, "status": plan.status}
            self.put(kind, await self._api.patch(f"{_path(kind, owner)}/status", patch))

    async def _make(self, kind: str, document: Document) -> None:
        path = KINDS[kind].path(document["metadata"]["namespace"])
        try:
            self.put(kind, await self._api.post(path, document))
        except ApiError as error:
            if not error.is_exists:  # a child of that name: the watch will tell of it
                raise

    async def _delete(self, kind: str, child: Document) -> None:
        uid = child["metadata"]["uid"]
        try:
            await self._api.delete(_path(kind, child), {"preconditions": {"uid": uid}})
        except ApiError as error:
            if error.status not in (404, 409):
                raise
        self.put(kind, {**child, "metadata": {**child["metadata"], "deletionTimestamp": "now"}})


def _path(kind: str, document: Document) -> str:
    return KINDS[kind].path(document["metadata"]["namespace"], document["metadata"]["name"])


def _owner_of(document: Document) -> tuple[str, str] | None:
    """Kind and uid of the owner that decides; a Job of another group owns nothing here."""
    for owner in document["metadata"].get("ownerReferences", ()):
        kind = str(owner["kind"])
        if owner.get("controller") and kind in OWNERS and OWNERS[kind][0].api_version == owner["apiVersion"]:
            return kind, str(owner["uid"])
    return None


def _version(document: Document) -> int:
    text: Any = document["metadata"].get("resourceVersion", "0")
    return int(text) if str(text).isdecimal() else 0
