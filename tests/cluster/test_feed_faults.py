"""Whatever the server and the network do, what the feed says adds up to what the server holds."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cluster import fault_server as fs
from tests.cluster.waiting import until
from volcano_py.client.api import RESOURCES, Api
from volcano_py.scheduler.cluster.feed import Change, Feed, Pace

PODS = RESOURCES["Pod"].path()
QUEUES = RESOURCES["Queue"].path()
FAST = Pace(page=2, watch_s=600.0, silence_s=600.0, absent_s=0.05, wait_scale=0.01)
"""No watch ends by itself, or is taken for dead, while the machine has no time for it."""


def pod(name: str, *, uid: str | None = None, **labels: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "namespace": "a", "labels": labels}
    if uid is not None:
        meta["uid"] = uid
    return {"metadata": meta, "spec": {}, "status": {"phase": "Pending"}}


class View:
    """What a reader of the feed knows, and whether it was ever told what can't be."""

    def __init__(self, server: fs.FaultServer, feed: Feed) -> None:
        self.server = server
        self.feed = feed
        self.objects: dict[str, tuple[str, str]] = {}
        self.unreadable: set[str] = set()

    def take(self) -> list[Change]:
        """Read what there is and apply it."""
        changes = self.feed.take()
        for change in changes:
            self.apply(change)
        return changes

    def apply(self, change: Change) -> None:
        known = self.objects.get(change.key)
        self.unreadable.discard(change.key)
        if change.is_deletion:
            self.objects.pop(change.key, None)
            return
        uid = change.uid
        assert (PODS, change.key, uid, change.version) in self.server.ever, f"never existed: {change}"
        assert known is None or known[0] == uid, f"merged with another object of its name: {change}"
        assert known is None or int(known[1]) < int(change.version), f"went back: {known} {change}"
        if change.item is None:
            self.unreadable.add(change.key)
        else:
            assert change.item.uid == uid
        self.objects[change.key] = (uid, change.version)

    def caught_up(self) -> bool:
        """Read, and say whether it is all there is."""
        self.take()
        return self.objects == self.server.view(PODS)


@asynccontextmanager
async def following(
    server: fs.FaultServer, pace: Pace = FAST, kinds: tuple[str, ...] = ("Pod",)
) -> AsyncIterator[View]:
    with tempfile.TemporaryDirectory() as folder:
        async with await Api.connect(server.kubeconfig(Path(folder))) as api:
            feed = Feed(api, kinds, pace=pace)
            task = asyncio.create_task(feed.run())
            try:
                yield View(server, feed)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


def scenario(body: Callable[[fs.FaultServer], Awaitable[None]]) -> None:
    async def run() -> None:
        async with fs.fault_server() as server:
            await body(server)

    asyncio.run(run())


def maximum(change: Change) -> Any:
    assert change.item is not None
    return change.item.spec.max


def lists(server: fs.FaultServer) -> int:
    return sum(not query.get("watch") and not query.get("continue") for _, _, query in server.requests)


def test_a_watch_that_drops_goes_on_where_it_was() -> None:
    async def body(server: fs.FaultServer) -> None:
        server.put(PODS, pod("p"))
        async with following(server) as view:
            await view.feed.synced()
            await until(view.caught_up, "the first pod")
            for turn in range(5):
                server.drop_all()
                server.put(PODS, pod("p", turn=str(turn)))
                await until(view.caught_up, f"turn {turn}")
            server.drop_all()
            count = len(server.requests)
            await until(lambda: len(server.requests) > count, "one more watch")
            assert server.requests[-1][2]["resourceVersion"] == view.objects["a/p"][1]
            assert lists(server) == 1

    scenario(body)


def test_after_a_definition_changed_what_came_by_the_old_one_is_asked_for_again() -> None:
    async def body(server: fs.FaultServer) -> None:
        server.put(QUEUES, {"metadata": {"name": "q"}, "spec": {"weight": 1}})
        async with following(server, kinds=("Queue",)) as view:
            await view.feed.synced()
            assert [maximum(change) for change in view.feed.take()] == [None]
            server.put(QUEUES, {"metadata": {"name": "q"}, "spec": {"weight": 2}})
            await until(view.feed.changed.is_set, "it is watched")
            assert [maximum(change) for change in view.feed.take()] == [None]
            # It had one all the time; the old watch did not say so.
            server.objects[QUEUES]["q"]["spec"]["max"] = {"cpu": "1"}
            server.drop_all()
            await until(view.feed.changed.is_set, "the queue is told again")
            assert [maximum(change) for change in view.feed.take()] == [{"cpu": "1"}]
            server.put(QUEUES, {"metadata": {"name": "q"}, "spec": {"weight": 3}})
            await until(view.feed.changed.is_set, "it is watched again")
            assert lists(server) == 2

    scenario(body)


@pytest.mark.parametrize(
    "fault",
    [
        fs.Refusal(429, "TooManyRequests", retry_after="1"),
        fs.Refusal(503, body="no backend"),
        fs.Refusal(500, "InternalError"),
        fs.Refusal(401, "Unauthorized"),
        fs.Refusal(410, "Expired"),
        fs.Cut(),
        fs.Cut(reset=False),
        fs.Drop(),
        fs.End(),
        fs.Noise(),
        fs.Noise('{"type":"ADDED","object":{"metadata":{}}}'),
        fs.Noise('{"type":"NEWS","object":{"metadata":{"name":"x"}}}'),
        fs.Noise("[]"),
        fs.Noise("\ud800".encode("utf-8", "surrogatepass").decode("latin-1")),
        fs.ErrorEvent(),
        fs.ErrorEvent(500, "InternalError"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("start", [True, False], ids=["at the first list", "at a watch"])
def test_every_fault_is_survived(fault: fs.Fault, times: int, start: bool) -> None:
    async def body(server: fs.FaultServer) -> None:
        for number in range(5):
            server.put(PODS, pod(f"p{number}"))
        if start:
            server.faults.extend([fault] * times)
        async with following(server) as view:
            if not start:
                await view.feed.synced()
                server.faults.extend([fault] * times)
                server.delete(PODS, "a/p3")
                server.drop_all()
            await until(lambda: not server.faults, "the faults are met")
            server.put(PODS, pod("p0", new="yes"))
            await until(view.caught_up, "all pods")
            await until(lambda: not view.feed.stats.problems, "no problem is left")

    scenario(body)


def test_a_version_that_is_gone_leads_to_a_list_that_says_what_vanished() -> None:
    async def body(server: fs.FaultServer) -> None:
        for name in ("stays", "goes", "again"):
            server.put(PODS, pod(name, uid=f"first-{name}"))
        async with following(server) as view:
            await view.feed.synced()
            await until(view.caught_up, "three pods")
            # Nothing of this is in any watch: it happened while nobody looked.
            server.down = True
            server.drop_all()
            server.delete(PODS, "a/goes")
            server.put(PODS, pod("again", uid="second-again"))
            server.compact()
            server.down = False
            told: dict[str, list[str]] = {}

            def caught_up() -> bool:
                for change in view.take():
                    told.setdefault(change.key, []).append(change.uid if change.item else "gone")
                return view.objects == server.view(PODS)

            await until(caught_up, "what happened meanwhile")
            assert lists(server) == 2
            assert told == {"a/again": ["gone", "second-again"], "a/goes": ["gone"]}

    scenario(body)


def test_a_silent_watch_is_dropped_and_the_server_looked_at_again() -> None:
    async def body(server: fs.FaultServer) -> None:
        pace = Pace(silence_s=0.2, wait_scale=0.01)
        async with following(server, pace) as view:
            await view.feed.synced()
            server.faults.append(fs.Silence())
            server.drop_all()
            await until(lambda: not server.faults, "the silence began")
            server.put(PODS, pod("p"))
            await until(view.caught_up, "the pod that the silent watch kept from us")

    scenario(body)


def test_a_watch_that_begins_again_is_no_problem_any_more_though_nothing_happens() -> None:
    async def body(server: fs.FaultServer) -> None:
        server.bookmark = False
        async with following(server) as view:
            await view.feed.synced()
            stats = view.feed.stats.kinds["Pod"]
            await until(lambda: len(server.requests) == 2, "a watch")
            server.faults.extend([fs.Drop(), fs.Drop()])
            server.drop_all()
            await until(lambda: stats.drops and not server.faults, "the drops are met and noticed")
            await until(lambda: not stats.problem, "all is well")
            assert (stats.state, stats.lists, stats.events) == ("watching", 1, 0)

    scenario(body)


def test_pages_that_expire_are_begun_anew_and_at_last_done_without() -> None:
    async def body(server: fs.FaultServer) -> None:
        for number in range(5):
            server.put(PODS, pod(f"p{number}"))
        for _ in range(2):
            server.faults.extend([fs.Silence(), fs.Refusal(410, "Expired")])
        async with following(server) as view:
            await until(view.caught_up, "all pods")
        asked = [query for _, _, query in server.requests if not query.get("watch")]
        assert [("limit" in query, "continue" in query) for query in asked] == [
            (True, False), (True, True), (True, False), (True, True), (False, False),
        ]  # fmt: skip

    scenario(body)


def test_a_kind_the_server_lacks_holds_nobody_up_and_comes_later() -> None:
    async def body(server: fs.FaultServer) -> None:
        server.served = False
        async with following(server) as view:
            await asyncio.wait_for(view.feed.synced(), 60)
            assert view.feed.stats.kinds["Pod"].state in ("absent", "failing")
            assert "404" in view.feed.stats.problems["Pod"]
            server.served = True
            server.put(PODS, pod("p"))
            await until(view.caught_up, "the pod")
            assert not view.feed.stats.problems

    scenario(body)


def test_a_kind_that_vanishes_for_a_moment_deletes_nothing() -> None:
    async def body(server: fs.FaultServer) -> None:
        server.put(PODS, pod("p"))
        async with following(server) as view:
            await view.feed.synced()
            await until(view.caught_up, "the pod")
            server.served = False
            server.drop_all()
            await until(lambda: view.feed.stats.kinds["Pod"].state == "absent", "the kind is gone")
            server.served = True
            await until(lambda: view.feed.stats.kinds["Pod"].state == "watching", "the kind is back")
            assert view.feed.take() == []

    scenario(body)


def test_one_pod_that_can_not_be_read_is_told_with_its_problem_and_the_rest_goes_on() -> None:
    async def body(server: fs.FaultServer) -> None:
        server.put(PODS, pod("bad", number=5))
        server.put(PODS, pod("good"))
        async with following(server) as view:
            await view.feed.synced()
            told = {change.key: change for change in view.take()}
            assert told["a/good"].item is not None
            assert told["a/bad"].item is None
            assert "metadata.labels.number" in str(told["a/bad"].problems[0])
            server.put(PODS, pod("bad", number="5"))
            await until(view.caught_up, "the mended pod")
            assert not view.unreadable
            server.put(PODS, pod("bad", number=6))
            await until(view.caught_up, "the pod is bad again")
            assert view.unreadable == {"a/bad"}
            server.delete(PODS, "a/bad")
            await until(view.caught_up, "the bad pod is gone")

    scenario(body)


@pytest.mark.parametrize(
    "fault",
    [fs.Refusal(410, "Expired"), fs.ErrorEvent(), fs.Noise(), fs.End(), fs.Cut(), fs.Drop()],
    ids=repr,
)
def test_a_server_that_fails_every_watch_is_not_asked_without_end(fault: fs.Fault) -> None:
    async def body(server: fs.FaultServer) -> None:
        server.bookmark = False
        async with following(server, Pace(wait_scale=1.0)) as view:
            await view.feed.synced()
            server.spoil_watches = fault
            server.drop_all()
            await asyncio.sleep(1.0)
        assert len(server.requests) < 60

    scenario(body)


def test_a_server_that_lost_what_it_knew_is_looked_at_again() -> None:
    async def body(server: fs.FaultServer) -> None:
        server.bookmark = False
        server.put(PODS, pod("p"))
        async with following(server, Pace(silence_s=0.2, wait_scale=0.01)) as view:
            await view.feed.synced()
            await until(lambda: len(server.requests) >= 2, "a watch")
            server.roll_back(50)
            server.drop_all()
            server.put(PODS, pod("q"))
            await until(view.caught_up, "what is older than the version we wait for")

    scenario(body)


STEPS = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 4)),
    st.tuples(st.just("put"), st.integers(0, 4)),
    st.tuples(st.just("delete"), st.integers(0, 4)),
    st.tuples(st.just("replace"), st.integers(0, 4)),
    st.tuples(st.just("spoil"), st.integers(0, 4)),
    st.tuples(
        st.just("fault"),
        st.sampled_from(
            [fs.Refusal(410, "Expired"), fs.Refusal(429), fs.Refusal(500), fs.Cut(), fs.Cut(reset=False),
             fs.Drop(), fs.End(), fs.Noise(), fs.ErrorEvent()]
        ),
    ),
    st.tuples(st.just("compact"), st.none()),
    st.tuples(st.just("go down"), st.none()),
    st.tuples(st.just("come up"), st.none()),
    st.tuples(st.just("hang up"), st.none()),
    st.tuples(st.just("read"), st.none()),
    st.tuples(st.just("catch up"), st.none()),
)  # fmt: skip


async def act(server: fs.FaultServer, view: View, step: tuple[str, Any]) -> None:
    what, about = step
    if what == "put":
        server.put(PODS, pod(f"p{about}"))
    elif what == "delete":
        server.delete(PODS, f"a/p{about}")
    elif what == "replace":
        server.put(PODS, pod(f"p{about}", uid=f"uid-{len(server.ever)}"))
    elif what == "spoil":
        server.put(PODS, pod(f"p{about}", number=1))
    elif what == "fault":
        server.faults.append(about)
    elif what == "compact":
        server.compact()
    elif what == "go down":
        server.down = True
        server.drop_all()
    elif what == "come up":
        server.down = False
    elif what == "hang up":
        server.drop_all()
    elif what == "read":
        view.take()
        await asyncio.sleep(0)
    else:
        server.faults.clear()
        server.down = False
        await until(view.caught_up, "all is read")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=25))
def test_what_is_told_adds_up_to_what_there_is(steps: list[tuple[str, Any]]) -> None:
    async def body(server: fs.FaultServer) -> None:
        async with following(server) as view:
            for step in steps:
                await act(server, view, step)
                await asyncio.sleep(0)
            server.faults.clear()
            server.down = False
            await until(view.caught_up, "all is read at the end")
            assert view.unreadable == {
                key
                for key, doc in server.objects.get(PODS, {}).items()
                if "number" in doc["metadata"]["labels"]
            }

    scenario(body)
