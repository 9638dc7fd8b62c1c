"""Whether the parts of a playground do their work: asked from outside, as any client would."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp

from volcano_py.scheduler.cluster.api import RESOURCES, AccessError, Api, ApiError, Unreachable
from volcano_py.simulator.kubelet.nodes import SELECTOR

_ANSWER_S = 2.0


async def serves(kubeconfig: Path) -> bool:
    """Whether the API server of *kubeconfig* answers it."""
    try:
        async with await Api.connect(str(kubeconfig)) as api:
            await api.call("GET", "/readyz", timeout_s=_ANSWER_S)
    except (AccessError, ApiError, Unreachable):
        return False
    return True


async def are_nodes_ready(kubeconfig: Path, count: int, since_s: float) -> bool:
    """Whether *count* pretend nodes were reported ready since *since_s*, seconds since the epoch."""
    try:
        async with await Api.connect(str(kubeconfig)) as api:
            answer = await api.get(RESOURCES["Node"].path(), labelSelector=SELECTOR)
    except (AccessError, ApiError, Unreachable):
        return False
    return sum(_is_ready(node, since_s) for node in answer["items"]) >= count


async def is_ready(port: int) -> bool:
    """Whether the component that listens on *port* calls itself ready."""
    limits = aiohttp.ClientTimeout(total=_ANSWER_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=limits) as session,
            session.get(f"http://127.0.0.1:{port}/readyz") as answer,
        ):
            return answer.status == 200
    except (TimeoutError, aiohttp.ClientError):
        return False


def _is_ready(node: dict[str, Any], since_s: float) -> bool:
    conditions = {one["type"]: one for one in node.get("status", {}).get("conditions") or ()}
    ready = conditions.get("Ready", {})
    if ready.get("status") != "True":
        return False
    return datetime.fromisoformat(ready["lastHeartbeatTime"]).timestamp() >= int(since_s)
