"""What is said on objects: only what is new, the latest of it, and never on the wrong object."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster.pod_server import Fault, PodServer, pod_path
from tests.cluster.waiting import until
from tests.cluster.writing import Clock, bind, first, run, submit
from volcano_py.client.api import Api
from volcano_py.scheduler.cluster import statuses
from volcano_py.scheduler.cluster.events import EventLimits, Events, Reporter
from volcano_py.scheduler.cluster.orders import (
    GroupOrder,
    NominateOrder,
    Note,
    Order,
    ProblemOrder,
    QueueOrder,
    RefusalOrder,
    Subject,
)
from volcano_py.scheduler.cluster.writer import Writer, always

GROUP = "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups/g"
QUEUE = "/apis/scheduling.volcano.sh/v1beta1/queues/q"
RUNNING = GroupOrder("ns", "g", "uid-g", {"phase": "Running"}, (Note("Scheduled", "ready"),))


pytestmark = pytest.mark.usefixtures("short_waits")


def refusal(name: str, message: str = "0/3 nodes are available", *, event: bool = True) -> RefusalOrder:
    return RefusalOrder("ns", name, f"uid-{name}", message, event=event)


# -- pods ---------------------------------------------------------------------------------------


def test_a_refusal_is_a_condition_that_autoscalers_read_and_an_event(tmp_path: Path) -> None:
    server = PodServer()
    server.pod("a")
    run(tmp_path, server, submit(refusal("a")))
    condition = server.conditions(pod_path("a"))["PodScheduled"]
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"] == "0/3 nodes are available"
    assert condition["lastTransitionTime"] == "2027-01-15T08:00:00Z"
    assert [each["reason"] for each in server.events()] == ["FailedScheduling"]


def test_another_number_of_nodes_trickles(tmp_path: Path) -> None:
    """8,000 waiting pods are not written at once because a node came."""
    server = PodServer()
    names = [f"p{i}" for i in range(40)]
    for name in names:
        server.pod(name)

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([refusal(name) for name in names])
        assert await writer.drain(60.0)
        told, written = len(server.events()), server.wrote("PATCH", "/status")
        assert (told, written) == (40, 40)
        again = [refusal(name, "0/4 nodes are available", event=False) for name in names]
        began = asyncio.get_running_loop().time()
        writer.submit([replace(order, minor=True) for order in again])
        await until(lambda: server.wrote("PATCH", "/status") - written >= 20)
        assert len(server.events()) == told
        twentieth = [at for at, (method, _) in enumerate(server.seen) if method == "PATCH"][written + 19]
        assert server.times[twentieth] - began > 0.9  # 10 at once, then 10 a second

    run(tmp_path, server, work)


def test_of_many_wishes_for_a_pod_the_latest_is_written(tmp_path: Path) -> None:
    server = PodServer()
    server.pod("a")
    orders = [refusal("a", f"reason {word}", event=False) for word in ("one", "two", "three")]
    run(tmp_path, server, submit(*orders, NominateOrder("ns", "a", "uid-a", "n1")))
    assert server.conditions(pod_path("a"))["PodScheduled"]["message"] == "reason three"
    assert server.objects[pod_path("a")]["status"]["nominatedNodeName"] == "n1"
    assert server.wrote("PATCH", "/status") == 1


def test_a_nomination_is_taken_back(tmp_path: Path) -> None:
    server = PodServer()
    server.pod("a", status={"nominatedNodeName": "n1"})
    run(tmp_path, server, submit(NominateOrder("ns", "a", "uid-a", "")))
    assert "nominatedNodeName" not in server.objects[pod_path("a")]["status"]


@pytest.mark.parametrize("fault", [Fault(), Fault(status=503), Fault(status=429), Fault(status=409)])
def test_a_status_that_meets_a_fault_is_written(tmp_path: Path, fault: Fault) -> None:
    server = PodServer(choose=first(fault, ends="/status"))
    server.pod("a")
    run(tmp_path, server, submit(refusal("a")))
    assert "PodScheduled" in server.conditions(pod_path("a"))


def test_another_pod_of_the_name_is_not_written(tmp_path: Path) -> None:
    server = PodServer()
    server.pod("a", uid="another")
    server.put(GROUP, status={})
    other = GroupOrder("ns", "g", "another", {"phase": "Running"})

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([refusal("a"), refusal("gone"), other])
        assert await writer.drain(60.0)
        assert writer.status_stats.refused == 0

    run(tmp_path, server, work)
    assert server.objects[pod_path("a")]["status"] == server.objects[GROUP]["status"] == {}
    assert server.wrote("PATCH", "") == 3


def test_a_pod_that_is_bound_gets_no_late_refusal(tmp_path: Path) -> None:
    """What waits is dropped, and a bind waits for a patch that is on its way."""
    status, binding = f"{pod_path('a')}/status", f"{pod_path('a')}/binding"
    answered_before: list[list[str]] = []

    def choose(method: str, path: str) -> Fault | None:
        if path == binding:
            answered_before.append(list(server.answered))
        return Fault(done=True, status=200, wait_s=0.2) if path == status else None

    server = PodServer(choose=choose)
    server.pod("a")
    server.pod("b")

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([refusal("a"), refusal("b"), bind("b")])
        await until(lambda: server.seen)
        writer.submit([bind("a")])
        assert await writer.drain(60.0)

    run(tmp_path, server, work)
    assert [status in answered for answered in answered_before] == [True]
    assert not [path for _, path in server.seen if path == f"{pod_path('b')}/status"]


def test_a_refusal_that_fails_while_its_pod_is_to_be_bound_is_not_said_again(tmp_path: Path) -> None:
    status = f"{pod_path('a')}/status"
    server = PodServer(choose=first(*[Fault(status=503, wait_s=0.2)] * 100, ends=status))
    server.pod("a")

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([refusal("a")])
        await until(lambda: server.seen)
        writer.submit([bind("a")])
        assert await writer.drain(60.0)

    run(tmp_path, server, work)
    assert server.bound == {"uid-a": 1}
    assert server.wrote("PATCH", "/status") == 1


def test_who_is_not_the_leader_says_nothing(tmp_path: Path) -> None:
    server = PodServer()
    server.pod("a")
    subject = Subject("Pod", "ns", "a", "uid-a")
    orders: list[Order] = [refusal("a"), ProblemOrder(subject, ("bad",))]
    run(tmp_path, server, submit(*orders), fence=lambda: False)
    assert server.seen == []


def test_who_leads_again_says_what_could_not_be_said(tmp_path: Path) -> None:
    server = PodServer()
    server.pod("a")
    server.put(GROUP, status={})
    orders: list[Order] = [refusal("a"), RUNNING, ProblemOrder(Subject("Pod", "ns", "a", "uid-a"), ("bad",))]
    leads = [False]

    async def work(writer: Writer, api: Api) -> None:
        for leads[0] in (False, True):
            writer.submit(orders)
            assert await writer.drain(60.0)

    run(tmp_path, server, work, fence=lambda: leads[0])
    assert set(server.conditions(pod_path("a"))) == {"PodScheduled", "volcano-py.io/Valid"}
    assert server.objects[GROUP]["status"] == {"phase": "Running"}
    assert sorted(each["reason"] for each in server.events()) == [
        "FailedScheduling",
        "Scheduled",
        "Unreadable",
    ]


# -- PodGroups and queues -----------------------------------------------------------------------


@pytest.mark.parametrize("served", [False, True])
def test_a_podgroups_status_goes_where_its_crd_has_it(tmp_path: Path, *, served: bool) -> None:
    server = PodServer(status_served=served)
    server.put(GROUP, status={})
    run(tmp_path, server, submit(RUNNING))
    assert server.objects[GROUP]["status"] == {"phase": "Running"}
    assert server.wrote("PATCH", "/podgroups/g/status" if served else "/podgroups/g") == 1
    assert [each["reason"] for each in server.events()] == ["Scheduled"]


def test_a_crd_that_gets_a_status_endpoint_is_noticed(tmp_path: Path) -> None:
    server = PodServer(status_served=True)
    server.put(GROUP, status={})

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([RUNNING])
        assert await writer.drain(60.0)
        server.status_served = False
        writer.submit([GroupOrder("ns", "g", "uid-g", {"phase": "Completed"})])
        assert await writer.drain(60.0)

    run(tmp_path, server, work)
    assert server.objects[GROUP]["status"] == {"phase": "Completed"}


def test_endpoints_are_looked_up_once_and_one_that_comes_is_noticed(tmp_path: Path) -> None:
    """A status written to the object itself is thrown away then, without a word."""
    server = PodServer(status_served=False)
    server.put(GROUP, status={})

    async def work(writer: Writer, api: Api) -> None:
        for number in range(10):
            server.status_served = number == 9
            writer.submit([GroupOrder("ns", "g", "uid-g", {"phase": "Running", "running": number})])
            assert await writer.drain(60.0)
            assert server.objects[GROUP]["status"]["running"] == number

    run(tmp_path, server, work)
    assert server.wrote("GET", "/apis/scheduling.volcano.sh/v1beta1") == 2


def test_a_podgroup_is_said_to_run_when_its_pods_are_bound(tmp_path: Path) -> None:
    server = PodServer(choose=first(Fault(done=True, status=200, wait_s=0.1)))
    server.pod("a")
    server.pod("b")
    server.put(GROUP, status={})
    run(tmp_path, server, submit(bind("a", group="ns/g"), bind("b", group="ns/g"), RUNNING))
    ends = [path.rsplit("/", 1)[-1] for method, path in server.seen if method in ("POST", "PATCH")]
    assert sorted(ends[:2]) == ["binding", "binding"]
    assert sorted(ends[2:]) == ["events", "g"]


def test_a_podgroup_whose_bind_failed_is_not_said_to_run(tmp_path: Path) -> None:
    """Until the engine has answered: with another bind, another status, or nothing."""
    server = PodServer(choose=first(Fault(status=403)))
    server.pod("a")
    server.put(GROUP, status={})
    pending = GroupOrder("ns", "g", "uid-g", {"phase": "Pending"})

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([bind("a", group="ns/g"), RUNNING])
        await until(lambda: writer.stats.bind_failed)
        writer.submit([])
        assert await writer.drain(60.0)
        assert server.objects[GROUP]["status"] == {}
        assert len(writer.take_outcomes()) == 1
        assert await writer.drain(60.0)
        assert server.objects[GROUP]["status"] == {}
        writer.submit([pending])
        assert await writer.drain(60.0)
        assert server.objects[GROUP]["status"] == {"phase": "Pending"}
        assert not server.events()

    run(tmp_path, server, work)


def test_a_podgroup_whose_member_is_placed_again_is_said_to_run_then(tmp_path: Path) -> None:
    server = PodServer(choose=first(Fault(status=403)))
    server.pod("a")
    server.put(GROUP, status={})

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([bind("a", group="ns/g"), RUNNING])
        await until(lambda: writer.stats.bind_failed)
        writer.take_outcomes()
        writer.submit([bind("a", group="ns/g")])
        assert await writer.drain(60.0)

    run(tmp_path, server, work)
    assert server.objects[GROUP]["status"] == {"phase": "Running"}


def test_in_a_burst_pods_start_before_groups_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("volcano_py.scheduler.cluster.writer.BURST_S", 3600.0)
    server = PodServer()
    for name in "abcd":
        server.pod(name)
    server.put(GROUP, status={})
    others = [bind(name) for name in "bcd"]
    run(tmp_path, server, submit(bind("a", group="ns/g"), *others, RUNNING), in_flight=1)
    ends = [path.rsplit("/", 1)[-1] for method, path in server.seen if method in ("POST", "PATCH")]
    assert ends[:4] == ["binding"] * 4
    assert sorted(ends[4:]) == ["events", "g"]


def test_a_burst_that_lasts_does_not_put_off_what_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the others are bound only after the group was told."""
    monkeypatch.setattr("volcano_py.scheduler.cluster.writer.BURST_S", 0.05)

    def choose(method: str, path: str) -> Fault | None:
        waits = path.endswith(("/b/binding", "/c/binding")) and not server.objects[GROUP]["status"]
        return Fault(status=503) if waits else None

    server = PodServer(choose=choose)
    for name in "abc":
        server.pod(name)
    server.put(GROUP, status={})
    outcomes = run(
        tmp_path, server, submit(bind("a", group="ns/g"), bind("b"), bind("c"), RUNNING), in_flight=1
    )
    assert [type(each).__name__ for each in outcomes] == ["BindDone"] * 3


def test_a_newer_word_on_a_group_comes_after_one_that_was_put_off(tmp_path: Path) -> None:
    goes_on = False

    def choose(method: str, path: str) -> Fault | None:
        waits = path.endswith(("/b/binding", "/c/binding")) and not goes_on
        return Fault(status=503) if waits else None

    server = PodServer(choose=choose)
    for name in "abc":
        server.pod(name)
    server.put(GROUP, status={})
    newer = GroupOrder("ns", "g", "uid-g", {"phase": "Unknown"})

    async def work(writer: Writer, api: Api) -> None:
        nonlocal goes_on
        writer.submit([bind("a", group="ns/g"), bind("b"), bind("c"), RUNNING])
        await until(lambda: writer.stats.bound)
        writer.submit([newer])
        goes_on = True
        assert await writer.drain(60.0)

    run(tmp_path, server, work, in_flight=1)
    assert server.objects[GROUP]["status"] == {"phase": "Unknown"}
    assert [each["reason"] for each in server.events()] == ["Scheduled"]


def test_a_queue_loses_what_it_holds_no_more(tmp_path: Path) -> None:
    server = PodServer()
    server.put(QUEUE, status={"allocated": {"cpu": "1", "nvidia.com/gpu": "2"}})
    run(
        tmp_path,
        server,
        submit(QueueOrder("q", "uid-q", {"allocated": {"cpu": "3"}})),
    )
    assert server.objects[QUEUE]["status"] == {"allocated": {"cpu": "3"}}
    assert server.wrote("PATCH", "/queues/q/status") == 1


def test_a_queue_made_anew_does_not_get_what_an_earlier_one_held(tmp_path: Path) -> None:
    server = PodServer()
    server.put(QUEUE, status={"state": "Open"})
    server.put(GROUP.replace("/g", "/new"))
    late: list[Order] = [
        QueueOrder("q", "an earlier one", {"allocated": {"cpu": "3"}}),
        GroupOrder("ns", "new", "an earlier one", {"phase": "Running"}, blank_at="1"),
    ]

    async def work(writer: Writer, api: Api) -> None:
        writer.submit(late)
        assert await writer.drain(60.0)
        assert writer.status_stats.refused == 0

    run(tmp_path, server, work)
    assert server.objects[QUEUE]["status"] == {"state": "Open"}
    assert "status" not in server.objects[GROUP.replace("/g", "/new")]


OPEN = {"status": {"state": "Open"}}


@pytest.mark.parametrize(
    ("blank_at", "status"), [("", {}), ("1", {}), ("77", {}), ("", OPEN), ("another", OPEN)]
)
def test_a_first_status_is_written_whatever_was_known_of_it(
    tmp_path: Path, blank_at: str, status: dict[str, dict[str, str]]
) -> None:
    """Two write to it: nobody takes away what the other one wrote first."""
    server = PodServer()
    server.put(QUEUE, **status)
    run(tmp_path, server, submit(QueueOrder("q", "uid-q", {"allocated": {"cpu": "3"}}, blank_at)))
    assert server.objects[QUEUE]["status"] == {**status.get("status", {}), "allocated": {"cpu": "3"}}


async def long_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop's clock jumps: what was put off until now has come of age, and was given back."""
    loop = asyncio.get_running_loop()
    earlier, came = loop.time, asyncio.Event()
    loop.call_later(statuses.REFUSED_AGAIN_S, came.set)  # timers go off in order, so after what waits now
    monkeypatch.setattr(loop, "time", lambda: earlier() + statuses.REFUSED_AGAIN_S + 1)
    await came.wait()


def test_what_was_refused_for_good_is_said_once_more_long_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A webhook of others was out of order and answered 422; nothing has changed since."""
    server = PodServer(choose=first(Fault(status=422), ends="/status"))
    server.pod("a")

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([refusal("a")])
        assert await writer.drain(60.0)
        await long_after(monkeypatch)
        await until(lambda: "PodScheduled" in server.conditions(pod_path("a")))

    run(tmp_path, server, work)
    assert server.wrote("PATCH", f"{pod_path('a')}/status") == 2


@pytest.mark.parametrize("how", ["newer", "bound", "bound by others", "another lead"])
def test_what_was_refused_long_ago_is_not_said_of_what_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    server = PodServer(choose=first(Fault(status=422), ends="/status"))
    server.pod("a")

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([refusal("a", "is old")])
        assert await writer.drain(60.0)
        if how == "newer":
            writer.submit([refusal("a", "is new")])
        elif how == "bound":
            writer.submit([bind("a")])
        elif how == "another lead":
            writer.lead()
        else:
            server.objects[pod_path("a")]["spec"]["nodeName"] = "n9"
        assert await writer.drain(60.0)
        await long_after(monkeypatch)
        assert await writer.drain(60.0)

    run(tmp_path, server, work)
    said = server.conditions(pod_path("a")).get("PodScheduled", {})
    assert said.get("message") == ("is new" if how == "newer" else None)


def test_of_what_was_refused_only_what_is_newer_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = PodServer(choose=first(Fault(status=422), ends="/status"))
    server.pod("a")

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([NominateOrder("ns", "a", "uid-a", "n1"), refusal("a", "is old")])
        assert await writer.drain(60.0)
        writer.submit([refusal("a", "is new")])
        assert await writer.drain(60.0)
        await long_after(monkeypatch)
        assert await writer.drain(60.0)

    run(tmp_path, server, work)
    assert server.conditions(pod_path("a"))["PodScheduled"]["message"] == "is new"
    assert server.objects[pod_path("a")]["status"]["nominatedNodeName"] == "n1"


def test_what_the_server_refuses_to_say_is_tried_once(tmp_path: Path) -> None:
    server = PodServer(choose=lambda method, path: Fault(status=422) if method == "PATCH" else None)
    server.put(QUEUE, status={})

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([QueueOrder("q", "uid-q", {"allocated": {"cpu": "3"}})])
        assert await writer.drain(60.0)
        assert writer.status_stats.last_refusal == "Queue q: fault 422"

    run(tmp_path, server, work)
    assert server.wrote("PATCH", "/queues/q/status") == 1


def test_nothing_is_kept_of_objects_that_are_gone(tmp_path: Path) -> None:
    """A day's worth of short jobs, in rounds."""
    server, clock = PodServer(), Clock()
    server.put(GROUP, status={})
    sizes = []

    async def work(writer: Writer, api: Api) -> None:
        for turn in range(12):
            names = [f"t{turn}p{i}" for i in range(8)]
            for name in names:
                server.pod(name)
            writer.submit([refusal(name) for name in names])
            bad = [Subject("Pod", "ns", name, f"uid-{name}") for name in names]
            writer.submit([ProblemOrder(each, ("bad",)) for each in bad])
            writer.submit([QueueOrder(name, "gone", {"allocated": {}}) for name in names])
            writer.submit([*(bind(name, group="ns/g") for name in names), RUNNING])
            assert await writer.drain(60.0)
            for name in names:
                del server.objects[pod_path(name)]
                writer.forget("Pod", f"ns/{name}")
            assert len(writer.take_outcomes()) == 8
            clock.now += 3000.0
            sizes.append(writer.stats.remembered)

    run(tmp_path, server, work, clock=clock)
    assert max(sizes[4:]) <= max(sizes[:4])


# -- events -------------------------------------------------------------------------------------


def test_an_event_that_repeats_is_counted(tmp_path: Path) -> None:
    server, clock = PodServer(), Clock()
    subject = Subject("Pod", "ns", "a", "uid-a")

    async def main() -> None:
        async with server.api(tmp_path) as api:
            limits = EventLimits(series_s=0.05)
            events = Events(api, Reporter("volcano-py"), always, clock, limits)
            events.note(subject, Note("FailedScheduling", "0/3 nodes", warning=True))
            await events.flush(20.0)
            for count in range(9):
                clock.now += 1.0
                events.note(subject, Note("FailedScheduling", f"0/{count} nodes", warning=True))
            await until(lambda: server.wrote("PATCH", ""))
            await events.lane.quiet()
            await events.close()

    asyncio.run(main())
    (event,) = server.events()
    assert event["series"] == {"count": 10, "lastObservedTime": "2027-01-15T08:00:09.000000Z"}
    assert len(server.seen) == 2


def test_a_new_scheduler_does_not_repeat_the_events_of_the_old_one(tmp_path: Path) -> None:
    server = PodServer()
    server.pod("a")
    for nodes in (3, 4):

        async def work(writer: Writer, api: Api, nodes: int = nodes) -> None:
            writer.submit([refusal("a", f"0/{nodes} nodes are available")])
            assert await writer.drain(60.0)
            assert writer.event_stats.refused == 0

        run(tmp_path, server, work)
    assert len(server.events()) == 1
    assert "series" not in server.events()[0]


def test_a_flood_of_events_is_cut_and_counted(tmp_path: Path) -> None:
    server = PodServer()

    async def main() -> int:
        async with server.api(tmp_path) as api:
            events = Events(api, Reporter("volcano-py"), always, Clock(), EventLimits(waiting=10))
            for i in range(50):
                events.note(Subject("Pod", "ns", f"p{i}", f"u{i}"), Note("FailedScheduling", "no"))
            await events.flush(20.0)
            await events.close()
            return events.stats.dropped

    assert asyncio.run(main()) == 40
    assert len(server.events()) == 10


def test_events_are_cut_to_the_length_that_the_api_takes(tmp_path: Path) -> None:
    server = PodServer()
    server.pod("a")
    run(tmp_path, server, submit(refusal("a", "ü" * 3000)))
    (event,) = server.events()
    assert len(event["note"].encode()) <= 1024
    assert event["note"].endswith("ü...")
