"""Signs of life of pretend nodes, for servers whose node controller gives up nodes that are silent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from typing import Any, Final

from volcano_py.client.api import RESOURCES, Api, ApiError, Unreachable
from volcano_py.scheduler.model.kube.times import format_micro_time

NAMESPACE: Final = "kube-node-lease"
PERIOD_S: Final = 10.0
"""As kubelets do; node controllers give a node up after 40 s or more."""
_LASTS_S: Final = 40
_LEASES: Final = RESOURCES["Lease"]


async def keep_alive(
    api: Api, nodes: Callable[[], Collection[str]], *, period_s: float = PERIOD_S, in_flight: int = 8
) -> None:
    """Renew the leases of *nodes* once a period, until cancelled. One that fails is tried next time."""
    gate = asyncio.Semaphore(in_flight)

    async def renew(node: str) -> None:
        async with gate:
            try:
                await _renew(api, node)
            except (ApiError, Unreachable):
                return

    while True:
        await asyncio.gather(asyncio.sleep(period_s), *(renew(node) for node in nodes()))


async def _renew(api: Api, node: str) -> None:
    spec = {
        "holderIdentity": node,
        "leaseDurationSeconds": _LASTS_S,
        "renewTime": format_micro_time(time.time()),
    }
    try:
        await api.patch(_LEASES.path(NAMESPACE, node), {"spec": spec})
    except ApiError as error:
        if not error.is_missing:
            raise
        await api.post(_LEASES.path(NAMESPACE), _lease(node, spec))


def _lease(node: str, spec: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": node, "namespace": NAMESPACE}
    return {"apiVersion": _LEASES.api_version, "kind": _LEASES.kind, "metadata": meta, "spec": spec}
