"""An agent that ends says so on its node first, and takes it back when the kubelet knows the next one."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.agent.node import FAST, GPU, VGPU, NodeUnderTest, node, part, until
from tests.agent.test_outages import outage
from volcano_py.crds.cards.register import HAMI_HANDSHAKE, HAMI_REGISTER, VOLCANO_REGISTER, decode_hami
from volcano_py.shim.agent.agent import Agent

AWAY = re.compile(r"Deleted_\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
PATIENT = replace(FAST, patience=60.0)


def test_the_node_says_that_its_agent_goes_while_the_kubelet_still_has_it(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            await until(lambda: registers(n1), "published")
            before = await n1.node_notes()
            served = notice(n1)
            await n1.stop()
            assert set(served) == {True}
            gone = await n1.node_notes()
            assert AWAY.fullmatch(gone.pop(HAMI_HANDSHAKE))
            assert gone == before
            await n1.kubelet_loses()

            await n1.start()
            await until(lambda: stays(n1), "taken back")
            assert await n1.node_notes() == before
            assert all(card.healthy for card in decode_hami(before[HAMI_REGISTER]))

    asyncio.run(case())


def test_a_pod_that_was_bound_still_gets_its_cards(tmp_path: Path) -> None:
    """A real kubelet refuses it for good once the agent has gone."""

    async def case() -> None:
        async with node(tmp_path, paces=PATIENT) as n1:
            await until(lambda: registers(n1), "published")
            pod = await n1.sliced("late", part("GPU-0"))
            await until(lambda: n1.agent._pods.objects, "the pod is seen")
            ends = asyncio.ensure_future(n1.stop())
            await until(lambda: goes(n1), "the mark")
            assert not ends.done()
            await n1.run(pod)
            await ends
            assert not list(n1.kubelet.plugins.glob("volcano-py-*.sock"))

    asyncio.run(case())


def test_the_mark_stays_until_the_kubelet_knows_the_agent(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            await until(lambda: registers(n1), "published")
            await n1.stop()
            await n1.kubelet.stop()
            (n1.kubelet.plugins / "kubelet.sock").unlink(missing_ok=True)
            n1.agent = Agent(n1.options, n1.api, n1.driver, n1.cutter)
            n1._running = asyncio.ensure_future(n1.agent.run())
            await until(lambda: n1.agent._begun and n1.agent.cards.known, "the agent knows its cards")
            n1.agent.publisher.look()
            assert n1.agent.publisher.difference() == {}
            await n1.kubelet.start()
            await n1.kubelet.until_registered(GPU, VGPU)
            await until(lambda: stays(n1), "taken back")

    asyncio.run(case())


def test_without_a_server_the_agent_ends_all_the_same(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, paces=PATIENT) as n1:
            await until(lambda: registers(n1), "published")
            with outage(n1):
                await n1.stop()
            assert not list(n1.kubelet.plugins.glob("volcano-py-*.sock"))

    asyncio.run(case())


def notice(n1: NodeUnderTest) -> list[bool]:
    """Filled, with each write of the mark, with whether the kubelet had the agent's devices then."""
    served: list[bool] = []
    write = n1.api.patch

    async def noticed(path: str, body: Any, **options: Any) -> Any:
        answer = await write(path, body, **options)
        if isinstance(body, dict) and HAMI_HANDSHAKE in body["metadata"].get("annotations", {}):
            served.append(GPU in n1.kubelet.endpoints and VGPU in n1.kubelet.endpoints)
        return answer

    n1.api.patch = noticed  # type: ignore[method-assign]
    return served


async def registers(n1: NodeUnderTest) -> bool:
    return {HAMI_REGISTER, VOLCANO_REGISTER} <= (await n1.node_notes()).keys()


async def goes(n1: NodeUnderTest) -> bool:
    return HAMI_HANDSHAKE in await n1.node_notes()


async def stays(n1: NodeUnderTest) -> bool:
    return HAMI_HANDSHAKE not in await n1.node_notes()
