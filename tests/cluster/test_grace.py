"""Nobody is told of a group that is still being made; who stays incomplete is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.cluster.pod_server import PodServer, pod_path
from tests.cluster.waiting import until
from tests.cluster.writing import run
from volcano_py.client.api import RESOURCES, Api
from volcano_py.scheduler.cluster import grace
from volcano_py.scheduler.cluster.orders import BindOrder, GroupOrder, Note, RefusalOrder
from volcano_py.scheduler.cluster.writer import Writer

GROUP = RESOURCES["PodGroup"].path("ns", "g")
FEW = "the gang needs 3 pods and has 2"


SHORT_S, ENDLESS_S = 0.2, 3600.0


@pytest.fixture(autouse=True)
def _endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's grace ends because the machine is slow."""
    monkeypatch.setattr(grace, "GRACE_S", ENDLESS_S)


def refused(message: str = FEW, reason: str = "NotEnoughTasks") -> RefusalOrder:
    return RefusalOrder("ns", "a", "uid-a", message, reason)


def group_says(kind: str, reason: str, message: str) -> GroupOrder:
    condition = {"type": kind, "status": "True", "reason": reason, "message": message}
    note = Note(kind, message, warning=kind == "Unschedulable")
    return GroupOrder("ns", "g", "uid-g", {"phase": "Pending", "conditions": [condition]}, (note,))


def cluster() -> PodServer:
    server = PodServer()
    server.pod("a")
    server.put(GROUP, status={})
    return server


def test_a_gang_that_is_complete_soon_never_was_incomplete(tmp_path: Path) -> None:
    server = cluster()

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([refused(), group_says("Unschedulable", "NotEnoughTasks", FEW)])
        assert await writer.drain(60.0)
        assert server.objects[pod_path("a")]["status"]["conditions"][0]["message"] == FEW
        started = group_says("Scheduled", "tasks in gang are ready to be scheduled", "")
        writer.submit([BindOrder("ns", "a", "uid-a", "n1", group="ns/g"), started])
        assert await writer.drain(60.0)
        assert writer.stats.bound == 1
        assert len(writer._grace) == 0
        await until(lambda: [each["reason"] for each in server.events()] == ["Scheduled"])

    run(tmp_path, server, work)
    assert [each["reason"] for each in server.events()] == ["Scheduled"]


def test_a_gang_that_stays_incomplete_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grace, "GRACE_S", SHORT_S)
    server = cluster()

    async def work(writer: Writer, api: Api) -> None:
        began = asyncio.get_running_loop().time()
        writer.submit([refused(), group_says("Unschedulable", "NotEnoughTasks", FEW)])
        writer.submit([refused("the gang needs 3 pods and has 1")])
        await until(lambda: len(server.events()) == 2)
        told = [server.times[at] for at, (method, _) in enumerate(server.seen) if method == "POST"]
        assert min(told) - began >= SHORT_S, "not before"

    run(tmp_path, server, work)
    assert sorted(each["reason"] for each in server.events()) == ["FailedScheduling", "Unschedulable"]


def test_another_reason_is_told_at_once_and_in_place_of_it(tmp_path: Path) -> None:
    server = cluster()

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([refused()])
        writer.submit([refused("0/3 nodes are available", "Unschedulable")])
        assert await writer.drain(60.0)
        assert [each["note"] for each in server.events()] == ["0/3 nodes are available"]
        assert len(writer._grace) == 0

    run(tmp_path, server, work)


def test_what_is_gone_is_not_told_of(tmp_path: Path) -> None:
    server = cluster()

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([refused()])
        writer.forget("Pod", "ns/a")
        assert len(writer._grace) == 0

    run(tmp_path, server, work)
    assert server.events() == []
