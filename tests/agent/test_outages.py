"""The API server is away: what ran goes on and may start again, what is new waits, nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.agent.kubelet import StartError
from tests.agent.node import FAST, GPU, VGPU, NodeUnderTest, node, part
from volcano_py.client.api import Unreachable
from volcano_py.crds.cards import records

MIB = 1 << 20
IMPATIENT = replace(FAST, server=0.1)


def test_a_container_that_has_run_starts_again(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, paces=IMPATIENT) as n1:
            admitted = await n1.run(await n1.sliced("a", part("GPU-0", 1234)))
            with outage(n1):
                await n1.kubelet.start_container(admitted, "main")
                await n1.restart()
                n1.agent._slices.region(n1.agent._slices.all()[0]).write_bytes(b"stale")
                await n1.kubelet.start_container(admitted, "main")
                assert n1.region(admitted).devices[0].limit_bytes == 1234 * MIB
            await n1.until_note("a", records.HAMI.phase, "success")

    asyncio.run(case())


def test_a_container_that_has_run_starts_again_though_its_pod_is_not_followed_yet(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, paces=IMPATIENT) as n1:
            n1.agent._pods._take = lambda line: ""  # type: ignore[method-assign]
            admitted = await n1.run(await n1.sliced("a", part("GPU-0", 1234)))
            with outage(n1):
                await n1.kubelet.start_container(admitted, "main")
            assert n1.region(admitted).devices[0].limit_bytes == 1234 * MIB

    asyncio.run(case())


def test_a_container_that_has_not_run_waits(tmp_path: Path) -> None:
    """Nobody but the API server says what its limits are."""

    async def case() -> None:
        async with node(tmp_path, paces=IMPATIENT) as n1:
            admitted = await n1.kubelet.admit(await n1.sliced("a", part("GPU-0", 1234)))
            with outage(n1):
                await n1.restart()
                with pytest.raises(StartError, match=r"no container has run with .*, and the server is away"):
                    await n1.kubelet.start_container(admitted, "main")
            await n1.kubelet.until_registered(GPU, VGPU)
            await n1.kubelet.start_container(admitted, "main")
            assert n1.region(admitted).devices[0].limit_bytes == 1234 * MIB

    asyncio.run(case())


@contextmanager
def outage(n1: NodeUnderTest) -> Iterator[None]:
    """No request of the agent is answered meanwhile, and its watches end."""

    async def away(*_: object, **__: object) -> Any:
        raise Unreachable("the server is away")

    real = n1.api
    for name in ("call", "get", "post", "patch"):
        setattr(real, name, away)
    try:
        yield
    finally:
        for name in ("call", "get", "post", "patch"):
            delattr(real, name)
