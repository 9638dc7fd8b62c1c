"""Locks of schedulers that let one pod at a time start on a node: released for whom they were taken."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.agent.node import GPU, VGPU, NodeUnderTest, node, part, until
from volcano_py.crds.cards import records
from volcano_py.shim.agent.locks import HAMI_LOCK, VOLCANO_LOCK

AT = "2026-01-02T03:04:05Z"


@pytest.mark.parametrize(
    ("key", "value", "resource"),
    [
        (HAMI_LOCK, f"{AT},default,a", GPU),
        (HAMI_LOCK, AT, GPU),  # as HAMi wrote it before it named pods
        (VOLCANO_LOCK, AT, VGPU),
    ],
)
def test_a_lock_goes_when_its_pod_has_its_cards(tmp_path: Path, key: str, value: str, resource: str) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            await n1.patch_node({key: value, "other": "stays"})
            await until(lambda: sees(n1, key), "seen")
            await n1.run(await n1.sliced("a", part("GPU-0"), resource=resource))
            await until(lambda: is_gone(n1, key), "released")
            assert (await n1.node_notes())["other"] == "stays"

    asyncio.run(case())


def test_a_lock_of_another_pod_stays(tmp_path: Path) -> None:
    """Whoever releases it would let two pods in flight, which HAMi's plugin can't tell apart."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            await n1.patch_node({HAMI_LOCK: f"{AT},default,b"})
            await until(lambda: sees(n1, HAMI_LOCK), "seen")
            await n1.run(await n1.sliced("a", part("GPU-0")))
            await n1.until_note("a", records.HAMI.phase, "success")
            waits = await n1.sliced("b", part("GPU-1"))
            assert (await n1.node_notes())[HAMI_LOCK] == f"{AT},default,b"
            await n1.run(waits)
            await until(lambda: is_gone(n1, HAMI_LOCK), "released for its own pod")

    asyncio.run(case())


def test_a_lock_whose_agent_died_is_released_by_the_next(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            await n1.run(await n1.sliced("a", part("GPU-0")))
            await n1.until_note("a", records.HAMI.phase, "success")
            await n1.stop()
            await n1.patch_node({HAMI_LOCK: f"{AT},default,a"})
            await n1.kubelet_loses()
            await n1.start()
            await until(lambda: is_gone(n1, HAMI_LOCK), "released")

    asyncio.run(case())


async def is_gone(n1: NodeUnderTest, key: str) -> bool:
    return key not in await n1.node_notes()


def sees(n1: NodeUnderTest, key: str) -> bool:
    """Whether the agent has seen the lock."""
    return key in (n1.agent._notes() or {})
