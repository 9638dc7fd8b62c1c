"""Pods whose node is gone: nobody runs them, so they are deleted, as Kubernetes' collector of pods does."""

from __future__ import annotations

import asyncio
from typing import Final

from volcano_py.client.api import RESOURCES, Api, ApiError, Unreachable
from volcano_py.scheduler.cluster.reflector import Change

QUARANTINE_S: Final = 5.0
"""A node that comes back within this time keeps its pods. Kubernetes waits for 40 s."""
_PODS: Final = RESOURCES["Pod"]


class Orphans:
    """Which pod is on which node, and which nodes are there."""

    def __init__(self, api: Api, *, quarantine_s: float = QUARANTINE_S) -> None:
        self._api = api
        self._quarantine_s = quarantine_s
        self._nodes: set[str] = set()
        self._places: dict[str, tuple[str, str]] = {}

    def on_node(self, change: Change) -> None:
        """A node came, changed or went."""
        if change.is_deletion:
            self._nodes.discard(change.key)
        else:
            self._nodes.add(change.key)

    def on_pod(self, change: Change) -> None:
        """A pod came, changed or went."""
        pod = change.item
        if pod is None or not pod["spec"].get("nodeName"):
            self._places.pop(change.key, None)
        else:
            self._places[change.key] = (pod["spec"]["nodeName"], pod["metadata"]["uid"])

    async def run(self) -> None:
        """Delete pods whose node was missing at two looks one after the other, until cancelled."""
        suspects: set[tuple[str, str]] = set()
        while True:
            lost = {(key, uid) for key, (node, uid) in self._places.items() if node not in self._nodes}
            for key, uid in lost & suspects:
                await self._delete(key, uid)
            suspects = lost
            await asyncio.sleep(self._quarantine_s)

    async def _delete(self, key: str, uid: str) -> None:
        namespace, _, name = key.partition("/")
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        try:
            await self._api.delete(_PODS.path(namespace, name), options)
        except (ApiError, Unreachable):
            return  # gone, or tried again at the next look
