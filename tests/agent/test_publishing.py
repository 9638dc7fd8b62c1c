"""What the node says of its cards, and how it is kept so."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.agent.driver import card
from tests.agent.node import NODE, NodeUnderTest, node, until
from volcano_py.client.api import ApiError
from volcano_py.crds.cards.register import (
    CORDON,
    HAMI_REGISTER,
    VOLCANO_REGISTER,
    CardReport,
    decode_hami,
    decode_volcano,
)
from volcano_py.crds.cards.scores import SCORES, decode_scores
from volcano_py.shim.agent.nvml import Card
from volcano_py.shim.agent.publish import Cut, reports

TOLD = (HAMI_REGISTER, VOLCANO_REGISTER, SCORES)


def test_both_families_and_the_links_are_published(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, started=False, cut=Cut(7, 1.5)) as n1:
            n1.driver.scores = {("GPU-0", "GPU-1"): 150}
            await n1.start()
            await until(lambda: published(n1), "published")
            notes = await n1.node_notes()
            expected = CardReport("GPU-1", 1, 7, 24576, 100, "NVIDIA A100", 0)
            assert decode_hami(notes[HAMI_REGISTER])[1] == expected
            (_, second) = decode_volcano(notes[VOLCANO_REGISTER])
            assert (
                second.uuid,
                second.slots,
                second.memory_mib,
                second.type,
                second.healthy,
                second.mode,
            ) == (
                "GPU-1",
                7,
                24576,
                "NVIDIA-NVIDIA A100",
                True,
                "hami-core",
            )
            assert decode_scores(notes[SCORES]) == {("GPU-0", "GPU-1"): 150}

    asyncio.run(case())


def test_the_vendor_stands_once_in_front_of_the_model() -> None:
    named = [Card("GPU-0", 0, "Tesla V100, 16:32GB", 100, "", 0, False), card(1)]
    assert [each.type for each in reports(named, (), Cut(1, 1.0))] == [
        "NVIDIA-Tesla V100 16 32GB",
        "NVIDIA A100",
    ]


def test_nothing_is_written_while_nothing_changes(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            await until(lambda: published(n1), "published")
            await n1.patch_node({"somebody": "else"})
            await n1.patch_node({"somebody": "again"})
            await until(lambda: sees(n1, "somebody", "again"), "the agent saw it")
            assert n1.agent.publisher.writes == 1

    asyncio.run(case())


def test_what_somebody_removes_or_changes_is_published_again(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            await until(lambda: published(n1), "published")
            before = await n1.node_notes()
            for harm in (None, "", "garbage"):
                await n1.patch_node({HAMI_REGISTER: harm, VOLCANO_REGISTER: harm})
                await until(lambda: same(n1, before), "published again")

    asyncio.run(case())


def test_a_write_that_fails_is_tried_again(tmp_path: Path) -> None:
    """HAMi's plugin remembers what it wanted to write as written, and never repairs it."""

    async def case() -> None:
        async with node(tmp_path, started=False) as n1:
            refused = 0
            write = n1.api.patch

            async def fails(path: str, body: Any, **options: Any) -> Any:
                nonlocal refused
                if path.endswith(NODE) and refused < 2:
                    refused += 1
                    raise ApiError(500, "InternalError", "no")
                return await write(path, body, **options)

            n1.api.patch = fails  # type: ignore[method-assign]
            await n1.start()
            await until(lambda: published(n1), "published at last")
            assert n1.agent.publisher.failures == 2

    asyncio.run(case())


def test_a_cordoned_card_is_unwell_in_volcanos_family_alone(tmp_path: Path) -> None:
    """HAMi's schedulers read the cordon themselves; Volcano's knows none."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            await n1.patch_node({CORDON: " GPU-1 ,GPU-9"})
            await until(lambda: volcano_says(n1, {"GPU-0": True, "GPU-1": False}), "cordoned")
            notes = await n1.node_notes()
            assert all(each.healthy for each in decode_hami(notes[HAMI_REGISTER]))
            await n1.patch_node({CORDON: None})
            await until(lambda: volcano_says(n1, {"GPU-0": True, "GPU-1": True}), "and not any more")

    asyncio.run(case())


async def published(n1: NodeUnderTest) -> bool:
    notes = await n1.node_notes()
    return HAMI_REGISTER in notes and VOLCANO_REGISTER in notes


async def same(n1: NodeUnderTest, before: dict[str, str]) -> bool:
    notes = await n1.node_notes()
    return all(notes.get(key) == before.get(key) for key in TOLD)


async def volcano_says(n1: NodeUnderTest, wanted: dict[str, bool]) -> bool:
    notes = await n1.node_notes()
    return {each.uuid: each.healthy for each in decode_volcano(notes.get(VOLCANO_REGISTER, ""))} == wanted


def sees(n1: NodeUnderTest, key: str, value: str) -> bool:
    return bool((n1.agent._notes() or {}).get(key) == value)
