"""Who leads: at most one of several processes that campaign for one Lease of the API server.

Clocks of different machines are never compared. A candidate takes a Lease over when it has not seen it
change for the duration that its holder wrote, by the candidate's own clock. A holder counts itself as leader
only for ``renew_s`` after it *sent* its last successful renewal, which ends before any candidate may move. A
process that was frozen meanwhile finds :attr:`Lease.held` false when it wakes.

Used by the scheduler and by the controllers, each with a Lease of its own.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import socket
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final

import structlog

from volcano_py.client.api import RESOURCES, Api, ApiError, Unreachable
from volcano_py.scheduler.model.kube.times import format_micro_time

__all__ = ["Lease", "own_identity"]

_RESOURCE: Final = RESOURCES["Lease"]
_RELEASE_S: Final = 3.0

_log = structlog.get_logger("lease")


def own_identity() -> str:
    """A name for this process that no other process has, now or later: host, process, and a random part."""
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"


class Lease:
    """One candidate for one Lease.

    Attributes:
        identity: what stands in the Lease while we hold it.
        holder: who held it when we last looked; empty: nobody.
        transitions: how often it changed hands, as written in it.
        trouble: why the last attempt failed; None after one that was answered as expected.
    """

    def __init__(
        self,
        api: Api,
        *,
        namespace: str,
        name: str,
        identity: str = "",
        duration_s: float = 15.0,
        renew_s: float = 10.0,
        retry_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
        notes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Set the times, in seconds.

        Args:
            api: the server.
            namespace: where the Lease is; it must exist.
            name: of the Lease; it is created when missing.
            identity: unique among candidates; one is made where none is given.
            duration_s: how long others wait after our last renewal. Written as whole seconds, rounded up.
            renew_s: how long we lead after our last renewal; must be shorter than *duration_s*.
            retry_s: between attempts, on average; must be shorter than *renew_s*.
            clock: seconds that never go back.
            notes: annotations that the Lease bears while we hold it.
        """
        if not 0 < retry_s < renew_s < duration_s:
            raise ValueError(f"0 < retry {retry_s} < renew {renew_s} < duration {duration_s} does not hold")
        self.identity = identity or own_identity()
        self.holder = ""
        self.transitions = 0
        self.trouble: Exception | None = None
        self._api = api
        self._path = _RESOURCE.path(namespace, name)
        self._parent = _RESOURCE.path(namespace)
        self._metadata = {"namespace": namespace, "name": name}
        self._duration_s, self._renew_s, self._retry_s = math.ceil(duration_s), renew_s, retry_s
        self._clock, self._notes = clock, notes
        self._until = -math.inf
        self._leading = False
        self._seen: tuple[str, float] = ("", -math.inf)  # version of the Lease, when we first saw it

    @property
    def held(self) -> bool:
        """Whether we may act as leader at this moment; to be asked before every act."""
        return self._clock() < self._until

    async def run(self, on_started: Callable[[], None], on_lost: Callable[[], None]) -> None:
        """Campaign until cancelled; the Lease is given back then, so stop acting before.

        Args:
            on_started: called when we become leader.
            on_lost: called when we are no longer, except by cancellation.
        """
        try:
            while True:
                await self.attempt()
                self._tell(on_started, on_lost)
                await asyncio.sleep(self._pause_s())
                self._tell(on_started, on_lost)
        finally:
            if self._leading:
                await asyncio.shield(self.release())

    async def attempt(self) -> None:
        """Take, renew or watch the Lease once; what came of it shows in the attributes."""
        sent = self._clock()
        try:
            async with asyncio.timeout(self._renew_s / 2):
                won = await self._take_or_renew()
        except (ApiError, Unreachable, TimeoutError) as error:
            self._note(error)
            return
        self.trouble = None
        self._until = sent + self._renew_s if won else -math.inf

    async def release(self) -> None:
        """Give the Lease back, so that the next one need not wait. Does nothing where it isn't ours."""
        self._until, self._leading = -math.inf, False
        with suppress(ApiError, Unreachable, TimeoutError):
            async with asyncio.timeout(_RELEASE_S):
                found = await self._api.get(self._path)
                if found.get("spec", {}).get("holderIdentity") == self.identity:
                    await self._write(found, {"holderIdentity": "", "leaseDurationSeconds": 1})

    def _note(self, error: Exception) -> None:
        """Keep *error*, and log it once. That somebody else was faster is no trouble."""
        if isinstance(error, ApiError) and error.is_conflict:
            return
        if repr(error) != repr(self.trouble):
            _log.warning("lease_unreachable", lease=self._path, error=repr(error))
        self.trouble = error

    def _tell(self, on_started: Callable[[], None], on_lost: Callable[[], None]) -> None:
        if self.held and not self._leading:
            self._leading = True
            _log.info("leading", lease=self._path, identity=self.identity, transitions=self.transitions)
            on_started()
        elif self._leading and not self.held:
            self._leading = False
            _log.warning("leadership_lost", lease=self._path, identity=self.identity, holder=self.holder)
            on_lost()

    def _pause_s(self) -> float:
        """Until the next attempt: jittered, so that candidates don't move in step; never past our own end."""
        pause_s = self._retry_s * random.uniform(0.8, 1.2)
        return min(pause_s, max(0.0, self._until - self._clock())) if self._leading else pause_s

    async def _take_or_renew(self) -> bool:
        """Whether the Lease is ours now."""
        found = await self._find()
        spec = found.get("spec") or {}
        self.holder = spec.get("holderIdentity") or ""
        self.transitions = spec.get("leaseTransitions") or 0
        if self.holder != self.identity and not self._is_free(found):
            return False
        changes: dict[str, Any] = {
            "leaseDurationSeconds": self._duration_s,
            "renewTime": format_micro_time(time.time()),
        }
        if self.holder != self.identity:
            changes |= {"holderIdentity": self.identity, "acquireTime": changes["renewTime"]}
            changes["leaseTransitions"] = self.transitions + 1
        await self._write(found, changes)
        return True

    async def _find(self) -> Mapping[str, Any]:
        """The Lease as it is, created without a holder where it is missing."""
        try:
            return await self._read()
        except ApiError as error:
            if not error.is_missing:
                raise
        document = {"apiVersion": _RESOURCE.api_version, "kind": _RESOURCE.kind, "metadata": self._metadata}
        try:
            await self._api.post(self._parent, document)
        except ApiError as error:
            if not error.is_exists:
                raise
        return await self._read()

    async def _read(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = await self._api.get(self._path)
        return found

    def _is_free(self, found: Mapping[str, Any]) -> bool:
        """Whether nobody holds it, or its holder has been silent for as long as it said, by our clock."""
        version = found["metadata"]["resourceVersion"]
        if version != self._seen[0]:
            self._seen = (version, self._clock())
        spec = found.get("spec") or {}
        silence_s = spec.get("leaseDurationSeconds") or self._duration_s
        return not spec.get("holderIdentity") or self._clock() >= self._seen[1] + silence_s

    async def _write(self, found: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
        """Write *changes* into the Lease as it was *found*; a conflict if it has changed since."""
        document = {**found, "spec": {**(found.get("spec") or {}), **changes}}
        if self._notes:
            meta = found["metadata"]
            notes = {**(meta.get("annotations") or {}), **self._notes}
            document["metadata"] = {**meta, "annotations": notes}
        await self._api.put(self._path, document)
        self.holder = str(changes.get("holderIdentity", self.holder))
        self.transitions = int(changes.get("leaseTransitions", self.transitions))
