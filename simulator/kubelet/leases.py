"""Signs of life of pretend nodes: each renews a Lease, as kubelets do."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final

from volcano_py.client.api import MERGE, RESOURCES, Api, ApiError, Unreachable
from volcano_py.scheduler.model.kube.times import format_micro_time

NAMESPACE: Final = "kube-node-lease"
PERIOD_S: Final = 10.0
"""As kubelets do; node controllers give a node up after 40 s or more."""
_LASTS: Final = 4
"""Periods for which a lease holds, as with kubelets."""
_TICK_S: Final = 1.0
"""Those that are due within this time are renewed together."""
_IN_FLIGHT: Final = 8
_LEASES: Final = RESOURCES["Lease"]


async def keep_alive(
    api: Api,
    nodes: Callable[[], Mapping[str, str]],
    *,
    period_s: float = PERIOD_S,
    most_per_s: float = math.inf,
) -> None:
    """Renew the lease of each of *nodes* once a period, until cancelled; one that fails is tried again.

    Args:
        api: the server.
        nodes: asked again and again; UIDs by name. A new node gets its lease at once.
        period_s: time between two renewals of a lease.
        most_per_s: where nodes are too many for that, the period is longer, and leases hold longer.
    """
    rota, gate = Rota(period_s, most_per_s), asyncio.Semaphore(_IN_FLIGHT)

    async def renew(name: str, uid: str, *, is_new: bool) -> None:
        async with gate:
            if await _renew(api, name, uid, lasts_s, is_new=is_new):
                rota.served(name)

    tick_s = min(_TICK_S, period_s)
    while True:
        there = nodes()
        due = rota.due(there, time.monotonic())
        lasts_s = math.ceil(_LASTS * rota.period_s(len(there)))
        turns = [renew(name, there[name], is_new=name not in rota) for name in due]
        await asyncio.gather(asyncio.sleep(tick_s), *turns)


class Rota:
    """Whose turn it is: those without a lease at once, the others evenly over the period."""

    def __init__(self, period_s: float, most_per_s: float) -> None:
        self._period_s, self._most_per_s = period_s, most_per_s
        self._served: dict[str, None] = {}  # who was served longest ago comes first
        self._owed, self._asked_s = 0.0, math.inf

    def __contains__(self, name: str) -> bool:
        return name in self._served

    def period_s(self, nodes: int) -> float:
        """Time between two turns of one of so many."""
        return max(self._period_s, nodes / self._most_per_s)

    def due(self, there: Mapping[str, str], now_s: float) -> list[str]:
        """The nodes of *there* whose turn it is; *now_s* on any clock."""
        self._served = {name: None for name in self._served if name in there}
        periods = max(0.0, now_s - self._asked_s) / self.period_s(len(self._served))
        owed = self._owed + periods * len(self._served)
        self._asked_s = now_s
        old = list(islice(self._served, int(owed)))
        self._owed = owed % 1.0
        return [*old, *(name for name in there if name not in self._served)]

    def served(self, name: str) -> None:
        """Its lease was renewed now."""
        self._served.pop(name, None)
        self._served[name] = None


async def _renew(api: Api, node: str, uid: str, lasts_s: int, *, is_new: bool) -> bool:
    """Whether it came to pass. A new node seldom has a lease; that of an old one may have been deleted."""
    spec = {
        "holderIdentity": node,
        "leaseDurationSeconds": lasts_s,
        "renewTime": format_micro_time(time.time()),
    }
    for write in (_make, _change) if is_new else (_change, _make):
        try:
            await write(api, node, uid, spec)
        except ApiError as error:
            if not (error.is_exists or error.is_missing):
                return False
        except Unreachable:
            return False
        else:
            return True
    return False


async def _make(api: Api, node: str, uid: str, spec: Mapping[str, Any]) -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    meta = {"name": node, "namespace": NAMESPACE, "ownerReferences": [owner]}
    lease = {"apiVersion": _LEASES.api_version, "kind": _LEASES.kind, "metadata": meta, "spec": spec}
    await api.call("POST", _LEASES.path(NAMESPACE), body=lease)


async def _change(api: Api, node: str, uid: str, spec: Mapping[str, Any]) -> None:
    """The lease of a node that was made anew goes with the old one, by its owner: no need to write that."""
    del uid
    await api.call("PATCH", _LEASES.path(NAMESPACE, node), body={"spec": spec}, content_type=MERGE)
