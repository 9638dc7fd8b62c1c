"""A node that is marked for it hands out more of its cards than they have, and no other does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.agent.driver import card
from tests.agent.kubelet import StartError
from tests.agent.node import NodeUnderTest, node, part, until
from volcano_py.crds.cards.lending import LENDS


async def fill(n1: NodeUnderTest) -> None:
    """Two pods take all of the node's card and half as much again."""
    await n1.run(await n1.sliced("a", part("GPU-0", 12288, 50)))
    admitted = await n1.run(await n1.sliced("b", part("GPU-0", 12288, 50)))
    assert admitted.answers["main"].envs["CUDA_OVERSUBSCRIBE"] == "true"


@pytest.mark.parametrize(("lent", "has"), [(None, 16384), ("149", 24412), ("nonsense", 16384)])
def test_a_card_is_not_handed_out_beyond_what_the_node_lends(
    tmp_path: Path, lent: str | None, has: int
) -> None:
    async def case() -> None:
        async with node(tmp_path, [card(0)]) as n1:
            await n1.patch_node({LENDS: lent})
            await until(lambda: (n1.agent._notes() or {}).get(LENDS) == lent, "the agent knows")
            with pytest.raises(StartError, match=f"GPU-0 would hold 24576 MiB of memory, it has {has}"):
                await fill(n1)

    asyncio.run(case())


def test_a_node_that_lends_half_as_much_again_starts_that_much(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, [card(0)]) as n1:
            await n1.patch_node({LENDS: "150"})
            await until(lambda: n1.agent.machine().host.oversubscribed, "the agent knows")
            await fill(n1)
            with pytest.raises(StartError, match="GPU-0 would hold 24577 MiB of memory, it has 24576"):
                await n1.run(await n1.sliced("c", part("GPU-0", 1, 10)))

    asyncio.run(case())
