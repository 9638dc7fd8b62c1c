"""The loop between the two ends, in this process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.cluster import fault_server as fs
from tests.cluster.pod_server import Fault, PodServer, pod_path
from tests.cluster.waiting import until
from tests.cluster.writing import bind, first, run
from tests.clusters import group, node, pod
from tests.run.lives import change_of
from volcano_py.client.api import Api
from volcano_py.scheduler.cluster.feed import Change, Feed
from volcano_py.scheduler.cluster.orders import GroupOrder, RefusalOrder
from volcano_py.scheduler.cluster.writer import Writer
from volcano_py.scheduler.engine import SCHEDULER_NAMES
from volcano_py.scheduler.model.kube.errors import Problem
from volcano_py.scheduler.model.kube.objects import Pod
from volcano_py.scheduler.model.pods import PodIntake
from volcano_py.scheduler.run import collector
from volcano_py.scheduler.run.carry import Carrier, EvictionStyle
from volcano_py.scheduler.run.health import Health
from volcano_py.scheduler.run.loop import Loop, Pacing
from volcano_py.scheduler.run.metrics import Metrics
from volcano_py.scheduler.run.owner import Owner
from volcano_py.scheduler.run.reload import read_config
from volcano_py.scheduler.run.triggers import RETRY_S, Pace, Triggers
from volcano_py.scheduler.run.ungrouped import PATIENCE_S
from volcano_py.scheduler.run.worker import Worker

CONFIG = "actions: allocate\ntiers:\n- plugins: [{name: gang}]\n"
REFUSED = RefusalOrder("ns", "a", "uid-a", "0/3 nodes are available")


@asynccontextmanager
async def turning(
    feed: Feed,
    writer: Writer,
    *,
    leads: Callable[[], bool] = lambda: True,
    clock: Callable[[], float] = time.time,
    health: Health | None = None,
) -> AsyncIterator[tuple[Loop, Worker]]:
    """A loop over *feed* and *writer* that turns; stopped and closed at the end."""
    carrier, triggers = Carrier(EvictionStyle(), "test"), Triggers(1.0)
    worker = Worker(read_config(CONFIG), SCHEDULER_NAMES, carrier, triggers, Metrics())
    loop, stop = Loop(feed, writer, worker, leads, health or Health(), Pacing(), clock), asyncio.Event()
    running = asyncio.ensure_future(loop.run(stop))
    try:
        yield loop, worker
    finally:
        stop.set()
        await running
        await loop.close()
        await writer.close()


def test_who_leads_again_says_again_what_another_leader_may_have_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "settle", lambda: None)  # it is for good, and for the whole process
    server = PodServer()
    server.pod("a")
    leads = [False]

    async def live() -> None:
        async with server.api(tmp_path) as api:
            writer = Writer(api, fence=lambda: leads[0])
            async with turning(Feed(api, ()), writer, leads=lambda: leads[0]) as (loop, _):
                for leads[0] in (True, False, True):
                    loop.nudge()
                    await until(lambda: loop.led == leads[0])
                    writer.submit([REFUSED] if leads[0] else [])
                    assert await writer.drain(60.0)

    asyncio.run(live())
    assert server.wrote("PATCH", f"{pod_path('a')}/status") == 2


class Told(Feed):
    """A feed that a test tells of changes."""

    def __init__(self, api: Api) -> None:
        super().__init__(api, ())
        self.news: list[Change] = []
        self.rests: list[bool] = []

    def tell(self, *changes: Change) -> None:
        self.news.extend(changes)
        self.changed.set()

    def take(self) -> list[Change]:
        news, self.news = self.news, []
        self.changed.clear()
        return news

    def rest(self, seconds: float, *, listen: bool = False) -> None:
        self.rests.append(listen)
        super().rest(seconds, listen=listen)


async def told_after_a_failed_bind(server: PodServer, feed: Told, writer: Writer) -> None:
    """The bind of a pod that is gone fails; a bad node that comes then is told."""
    writer.submit([bind("gone")])
    await until(lambda: writer.stats.bind_failed and not writer.told.is_set())
    feed.tell(Change("Node", "n0", None, (Problem("status", "is nonsense"),), "1", "uid-n0"))
    await until(lambda: server.wrote("POST", "/events"))


def test_a_bind_that_fails_after_its_pod_went_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "settle", lambda: None)
    server = PodServer()

    async def live() -> None:
        async with server.api(tmp_path) as api:
            feed, writer = Told(api), Writer(api)
            async with turning(feed, writer) as (_, worker):
                await until(lambda: worker.cycles)
                await told_after_a_failed_bind(server, feed, writer)

    asyncio.run(live())


def test_nor_does_it_where_pods_without_a_group_are_about_to_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No cycle comes with that, so there is nothing to wait for."""
    monkeypatch.setattr(collector, "settle", lambda: None)
    server, now = PodServer(), [1000.0]

    async def live() -> None:
        async with server.api(tmp_path) as api:
            feed, writer = Told(api), Writer(api)
            async with turning(feed, writer, clock=lambda: now[0]) as (_, worker):
                await until(lambda: worker.cycles)
                feed.tell(change_of(pod("p", "")))
                await until(lambda: feed.rests)
                now[0] += PATIENCE_S - 0.5
                await told_after_a_failed_bind(server, feed, writer)

    asyncio.run(live())


def test_a_clock_that_is_set_back_makes_nobody_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "settle", lambda: None)
    now, asked = [1000.0], [0]

    def clock() -> float:
        asked[0] += now[0] == 500.0
        return now[0]

    async def live() -> None:
        async with PodServer().api(tmp_path) as api:
            feed, writer = Told(api), Writer(api)
            async with turning(feed, writer, clock=clock) as (_, worker):
                feed.tell(*map(change_of, (node("n0"), group("big"), pod("w", "big", "99"))))
                await until(lambda: worker.owner.engine.state.tasks.index and worker.cycles)
                now[0] = 500.0
                await until(lambda: asked[0] > 4)
                cycles, now[0] = worker.cycles, 500.0 + RETRY_S
                await until(lambda: worker.cycles > cycles)

    asyncio.run(live())


def test_an_engine_is_mended_off_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few changes are taken in on the loop, which may not wait for engines that are made anew."""
    monkeypatch.setattr(collector, "settle", lambda: None)
    sound_upsert, sound_mend = PodIntake.upsert, Owner.mend
    mended_by: list[str] = []

    def touchy(self: PodIntake, item: Pod) -> None:
        if item.name == "bad":
            raise IndexError("who would have thought")
        sound_upsert(self, item)

    def noted(self: Owner) -> None:
        mended_by.append(threading.current_thread().name)
        sound_mend(self)

    monkeypatch.setattr(PodIntake, "upsert", touchy)
    monkeypatch.setattr(Owner, "mend", noted)
    server = PodServer()

    async def live() -> None:
        async with server.api(tmp_path) as api:
            feed, writer = Told(api), Writer(api)
            async with turning(feed, writer) as (_, worker):
                await until(lambda: worker.cycles)
                feed.tell(*map(change_of, (node("n0"), group("g"), pod("good", "g"), pod("bad", "g"))))
                await until(lambda: "/api/v1/namespaces/ml/pods/good/binding" in server.sent)

    asyncio.run(live())
    assert [name.split("_")[0] for name in mended_by] == ["engine"]
    assert [each["reason"] for each in server.events() if "bad" in each["regarding"]["name"]] == [
        "Unreadable"
    ]


def test_what_could_not_be_said_for_a_moment_is_said_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease was renewed late: between two looks of the loop we did not lead."""
    monkeypatch.setattr(collector, "settle", lambda: None)
    server = PodServer()
    fence = [True]

    async def live() -> None:
        async with server.api(tmp_path) as api:
            feed, writer = Told(api), Writer(api, fence=lambda: fence[0])
            async with turning(feed, writer) as (_, worker):
                await until(lambda: worker.cycles)
                fence[0] = False
                feed.tell(*map(change_of, (node("n0"), group("g"), pod("p", "g", "99"))))
                await until(lambda: writer.is_missing_words)
                fence[0] = True
                await until(lambda: server.wrote("PATCH", "/pods/p/status"))

    asyncio.run(live())


def test_a_status_held_back_in_an_earlier_lead_is_never_written(tmp_path: Path) -> None:
    """It waits for a bind that failed; what another leader has made of the group since is not known."""
    server = PodServer(choose=first(Fault(status=403)))
    server.pod("a")
    path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups/g"
    server.put(path, status={})

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([bind("a", group="ns/g"), GroupOrder("ns", "g", "uid-g", {"phase": "Running"})])
        await until(lambda: writer.stats.bind_failed)
        writer.take_outcomes()
        writer.lead()
        writer.submit([])
        assert await writer.drain(60.0)

    run(tmp_path, server, work)
    assert server.objects[path]["status"] == {}


def has_rested(feed: Told, times: int) -> bool:
    return len(feed.rests) == times


def test_who_waits_is_not_kept_waiting_by_a_calm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The feed rests for long, and listens for new pods, only where no other change can help anybody."""
    monkeypatch.setattr(collector, "settle", lambda: None)
    monkeypatch.setattr(Pace, "CALM_AFTER_S", 1e-9)
    there, waiting = change_of(node("n0")), [change_of(group("g")), change_of(pod("w", "g", "99"))]

    async def live() -> list[bool]:
        async with PodServer().api(tmp_path) as api:
            feed, writer = Told(api), Writer(api)
            async with turning(feed, writer):
                for number, told in enumerate(([there], [there], waiting, [there]), 1):
                    feed.tell(*told)
                    await until(partial(has_rested, feed, number))
            return feed.rests

    assert asyncio.run(live()) == [False, True, False, False]


def test_what_may_not_be_read_is_told_while_all_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "settle", lambda: None)
    health = Health()

    async def live() -> None:
        async with fs.fault_server() as server, await Api.connect(server.kubeconfig(tmp_path)) as api:
            server.token = "nobody has it"
            feed, writer = Feed(api, ("Pod",)), Writer(api)
            following = asyncio.create_task(feed.run())
            async with turning(feed, writer, health=health):
                await until(
                    lambda: "read yet: Pod: GET /api/v1/pods: 401" in health.ready(),
                    "what is missing is told",
                )
                server.token = ""
                await until(lambda: not health.ready(), "all is read")
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    asyncio.run(live())
