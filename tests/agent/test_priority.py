"""Who goes first on a card: from the pod to the region, its variables, and whom the keeper goes by."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.agent.node import GPU, container, node, part
from volcano_py.crds.cards import records

RESOURCE: dict[str, Any] = container("main", {GPU: 1, "nvidia.com/priority": 0})
VARIABLE: dict[str, Any] = container("main", {GPU: 1}, env=[{"name": "CUDA_TASK_PRIORITY", "value": "2"}])


@pytest.mark.parametrize(
    ("asks", "priority"), [(RESOURCE, 0), (VARIABLE, 2), (container("main", {GPU: 1}), 1)]
)
def test_a_pods_priority_reaches_the_region_and_the_keeper(
    tmp_path: Path, asks: dict[str, Any], priority: int
) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            notes = n1.record(records.HAMI, [[part("GPU-1", 4096, 50)]])
            admitted = await n1.run(await n1.bind("a", {"containers": [asks]}, notes))
            assert n1.region(admitted).priority == priority
            assert admitted.answers["main"].envs["CUDA_TASK_PRIORITY"] == str(priority)
            # The keeper believes the agent's own books, never what a container can write.
            (owner,) = n1.owners()
            assert owner["priority"] == priority

    asyncio.run(case())
