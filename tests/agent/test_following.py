"""The agent's view of its pods outlives whatever a server, or what is before it, says or leaves out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agent.node import until
from tests.cluster import fault_server as fs
from volcano_py.client.api import RESOURCES, Api
from volcano_py.shim.agent.follow import Follower
from volcano_py.shim.agent.pods import Pod

PODS = RESOURCES["Pod"].path()
Body = Callable[[fs.FaultServer, Follower[Pod]], Awaitable[None]]


def following(folder: Path, body: Body) -> None:
    async def run() -> None:
        async with fs.fault_server() as server, await Api.connect(server.kubeconfig(folder)) as api:
            follower = Follower(api, PODS, "spec.nodeName=n1", Pod, lambda: None)
            task = asyncio.ensure_future(follower.run())
            try:
                await body(server, follower)
                assert not task.done()
            finally:
                task.cancel()
                await asyncio.wait({task})

    asyncio.run(run())


def put(server: fs.FaultServer, name: str) -> None:
    server.put(PODS, {"metadata": {"name": name, "namespace": "a"}})


def names(follower: Follower[Pod]) -> list[str]:
    return sorted(pod.metadata.name for pod in follower.objects.values())


FAULTS: list[fs.Fault] = [
    fs.Refusal(429, retry_after="0"),
    fs.Refusal(503, body="no backend"),
    fs.Refusal(410, "Expired"),
    fs.Drop(),
    fs.Cut(reset=True),
    fs.Cut(reset=False),
    fs.Noise(),
    fs.ErrorEvent(),
]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_hides_nothing_for_long(tmp_path: Path, fault: fs.Fault) -> None:
    """Met first by a list, and then by a watch."""

    async def body(server: fs.FaultServer, follower: Follower[Pod]) -> None:
        server.faults.extend([fault, fault])
        put(server, "p")
        await until(lambda: names(follower) == ["p"], "read after the fault")
        await until(lambda: not server.faults, "both faults were met")
        put(server, "q")
        await until(lambda: names(follower) == ["p", "q"], "followed")

    following(tmp_path, body)


def test_the_wait_that_the_server_asks_for_is_kept(tmp_path: Path) -> None:
    async def body(server: fs.FaultServer, follower: Follower[Pod]) -> None:
        begun = asyncio.get_running_loop().time()
        server.faults.append(fs.Refusal(429, retry_after="2"))
        await until(follower.synced.is_set, "read at last")
        assert asyncio.get_running_loop().time() - begun >= 2

    following(tmp_path, body)


def told(kind: str, version: int, note: str) -> bytes:
    """A line of a watch about one pod."""
    return json.dumps({"type": kind, "object": document(version, note)}).encode()


def document(version: int, note: str) -> dict[str, Any]:
    meta = {"name": "p", "namespace": "a", "uid": "1", "resourceVersion": str(version)}
    return {"metadata": {**meta, "annotations": {"note": note}}}


@pytest.fixture
def follower() -> Follower[Pod]:
    return Follower(Api.__new__(Api), PODS, "", Pod, lambda: None)


def notes(follower: Follower[Pod]) -> list[str]:
    return [pod.metadata.annotations["note"] for pod in follower.objects.values()]


def test_older_news_undo_no_write(follower: Follower[Pod]) -> None:
    """The watch may be behind what we wrote."""
    follower._take(told("ADDED", 1, "first"))
    follower.upsert(document(3, "ours"))
    follower._take(told("MODIFIED", 2, "somebody's"))
    assert notes(follower) == ["ours"]
    follower._take(told("MODIFIED", 4, "somebody's"))
    assert notes(follower) == ["somebody's"]


def test_what_is_written_before_it_is_followed_is_known_then(follower: Follower[Pod]) -> None:
    follower.upsert(document(2, "ours"))
    assert notes(follower) == []
    follower._take(told("ADDED", 1, "first"))
    assert notes(follower) == ["ours"]


def test_an_answer_that_comes_after_the_end_brings_nobody_back(follower: Follower[Pod]) -> None:
    follower._take(told("ADDED", 1, "first"))
    follower._take(told("DELETED", 3, "first"))
    follower.upsert(document(2, "ours"))
    assert notes(follower) == []
