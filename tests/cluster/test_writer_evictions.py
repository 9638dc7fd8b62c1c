"""Evictions: who and why on the pod, notice, disruption budgets, withdrawal, restart."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.pod_server import Document, Fault, PodServer, pod_path
from tests.cluster.waiting import until
from tests.cluster.writing import Clock, evict, first, run, submit
from volcano_py.client.api import Api
from volcano_py.scheduler.cluster import evictor as evictor_module
from volcano_py.scheduler.cluster.notices import MARKS, due_eviction, marked
from volcano_py.scheduler.cluster.orders import EvictDone, EvictFailed, EvictOrder, KeepOrder, Subject
from volcano_py.scheduler.cluster.writer import Writer
from volcano_py.scheduler.model.kube.objects import Pod, decode


@pytest.fixture(autouse=True)
def short_naps(short_waits: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Naps of a moment, since the tests set the clock."""
    monkeypatch.setattr(evictor_module, "_LONGEST_SLEEP_S", 0.02)


def notes(server: PodServer, name: str) -> Mapping[str, str]:
    found: Mapping[str, str] = server.objects[pod_path(name)]["metadata"].get("annotations") or {}
    return {key: text for key, text in found.items() if key in MARKS}


def leaving(server: PodServer, name: str) -> bool:
    return "deletionTimestamp" in server.objects[pod_path(name)]["metadata"]


def as_pod(document: Document) -> Pod:
    pod = decode({"apiVersion": "v1", "kind": "Pod", **document})
    assert isinstance(pod, Pod)
    return pod


def test_an_evicted_pod_says_for_whom_by_which_rule_and_what_is_lost(tmp_path: Path) -> None:
    server = PodServer()
    server.pod("a")
    outcomes = run(tmp_path, server, submit(evict("a")))
    assert outcomes == [EvictDone("ns/a", "uid-a", "ns/g")]
    assert leaving(server, "a")
    assert dict(notes(server, "a")) == {
        "volcano-py.io/evicted-for": "ns/g",
        "volcano-py.io/evicted-by-rule": "reclaim: queue a is over",
        "volcano-py.io/evicted-by-action": "reclaim/eviction",
        "volcano-py.io/evicted-lost": "8 cpu-seconds",
        "volcano-py.io/eviction-deadline": "2027-01-15T08:00:00Z",
    }
    (condition,) = server.objects[pod_path("a")]["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "PreemptionByScheduler")
    assert condition["message"] == "evicted for ns/g by reclaim: queue a is over (lost: 8 cpu-seconds)"
    (event,) = server.events()
    assert (event["reason"], event["regarding"]["name"], event["type"]) == ("Evict", "a", "Warning")


def test_the_group_is_told_of_its_evicted_pods(tmp_path: Path) -> None:
    server = PodServer()
    group = Subject("PodGroup", "ns", "team", "uid-team")
    for name in ("a", "b"):
        server.pod(name)
    run(tmp_path, server, submit(*(evict(name, group=group) for name in ("a", "b"))))
    told = [each["note"] for each in server.events() if each["regarding"]["kind"] == "PodGroup"]
    why = "evicted for ns/g by reclaim: queue a is over (lost: 8 cpu-seconds)"
    assert sorted(told) == [f"pod a: {why}", f"pod b: {why}"]


def test_the_marks_stand_on_the_pod_before_it_is_evicted(tmp_path: Path) -> None:
    server = PodServer()
    server.pod("a")
    run(tmp_path, server, submit(evict("a")))
    writes = [(method, path.rsplit("/", 1)[-1]) for method, path in server.seen if "/pods/" in path]
    assert writes == [("PATCH", "status"), ("POST", "eviction")]


def test_a_plain_delete_is_used_only_where_it_is_ordered(tmp_path: Path) -> None:
    server = PodServer(budgets={"a"})
    server.pod("a")
    assert run(tmp_path, server, submit(evict("a", delete=True))) == [EvictDone("ns/a", "uid-a", "ns/g")]
    assert pod_path("a") not in server.objects
    assert not server.wrote("POST", "/eviction")


def test_a_disruption_budget_is_asked_for_a_while_and_then_the_pod_is_as_before(tmp_path: Path) -> None:
    server = PodServer(budgets={"a"})
    server.pod("a")
    (outcome,) = run(tmp_path, server, submit(evict("a")), patience_s=0.2)
    assert isinstance(outcome, EvictFailed)
    assert outcome.trouble == "refused"
    assert outcome.why == "Cannot evict pod. The disruption budget b needs 1 healthy pods"
    assert server.wrote("POST", "/eviction") > 1
    assert not leaving(server, "a")
    assert not notes(server, "a")
    assert server.objects[pod_path("a")]["status"]["conditions"] == []


def test_a_budget_that_gives_way_lets_the_pod_go(tmp_path: Path) -> None:
    server = PodServer(budgets={"a"})
    server.pod("a")

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([evict("a")])
        await until(lambda: server.wrote("POST", "/eviction") > 1)
        server.budgets.clear()
        assert await writer.drain(60.0)

    assert run(tmp_path, server, work) == [EvictDone("ns/a", "uid-a", "ns/g")]


@pytest.mark.parametrize("ends", ["/status", "/eviction"])
@pytest.mark.parametrize(
    "fault", [Fault(), Fault(done=True), Fault(status=503), Fault(status=429), Fault(done=True, status=504)]
)
def test_an_eviction_that_meets_a_fault_is_done(tmp_path: Path, ends: str, fault: Fault) -> None:
    server = PodServer(choose=first(fault, ends=ends))
    server.pod("a")
    assert run(tmp_path, server, submit(evict("a"))) == [EvictDone("ns/a", "uid-a", "ns/g")]
    assert leaving(server, "a")


@pytest.mark.parametrize("delete", [False, True])
@pytest.mark.parametrize("deadline", [None, 0.0])
def test_another_pod_of_the_name_is_left_alone(
    tmp_path: Path, *, delete: bool, deadline: float | None
) -> None:
    """The one that was meant is gone, which is what was wanted."""
    server = PodServer()
    server.pod("a", uid="another")
    order = evict("a", delete=delete, deadline=deadline)
    assert run(tmp_path, server, submit(order)) == [EvictDone("ns/a", "uid-a", "ns/g")]
    assert not leaving(server, "a")
    assert not notes(server, "a")


def test_a_pod_that_is_gone_is_evicted(tmp_path: Path) -> None:
    assert run(tmp_path, PodServer(), submit(evict("a"))) == [EvictDone("ns/a", "uid-a", "ns/g")]


def test_a_pod_under_notice_is_told_at_once_and_goes_at_its_deadline(tmp_path: Path) -> None:
    server, clock = PodServer(), Clock()
    server.pod("a")

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([evict("a", notice_s=60.0), evict("a", notice_s=1.0)])
        await until(lambda: writer.stats.under_notice == 1)
        assert notes(server, "a")["volcano-py.io/eviction-deadline"] == "2027-01-15T08:01:00Z"
        await until(server.events)
        assert server.events()[0]["note"].endswith("due at 2027-01-15T08:01:00Z")
        clock.now += 59.0
        await asyncio.sleep(0.1)
        assert not leaving(server, "a")
        clock.now += 1.0
        await until(lambda: writer.stats.evicted)

    assert run(tmp_path, server, work, clock=clock) == [EvictDone("ns/a", "uid-a", "ns/g")]
    assert leaving(server, "a")
    assert len(server.events()) == 1


def test_a_clock_that_is_set_back_does_not_lengthen_a_notice(tmp_path: Path) -> None:
    server, clock = PodServer(), Clock()
    server.pod("a")

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([evict("a", notice_s=0.5)])
        await until(lambda: writer.stats.under_notice or writer.stats.evicted)
        clock.now -= 3600.0
        await until(lambda: writer.stats.evicted)

    assert run(tmp_path, server, work, clock=clock) == [EvictDone("ns/a", "uid-a", "ns/g")]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_ends_under_notice_is_left_for_whoever_waits_for_it(tmp_path: Path, phase: str) -> None:
    server, clock = PodServer(), Clock()
    server.pod("a")

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([evict("a", notice_s=60.0)])
        await until(lambda: writer.stats.under_notice == 1)
        server.objects[pod_path("a")]["status"]["phase"] = phase
        clock.now += 60.0
        await until(lambda: writer.stats.evicted)

    run(tmp_path, server, work, clock=clock)
    assert not leaving(server, "a")


def test_an_eviction_under_notice_can_be_withdrawn(tmp_path: Path) -> None:
    server = PodServer()
    server.pod("a")

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([evict("a", notice_s=60.0)])
        await until(lambda: writer.stats.under_notice == 1)
        writer.submit([KeepOrder("ns", "a", "another")])
        assert writer.stats.under_notice == 1
        writer.submit([KeepOrder("ns", "a", "uid-a"), KeepOrder("ns", "a", "uid-a")])
        assert not writer.cancel("ns/a", "uid-a")
        assert await writer.drain(60.0)

    (outcome,) = run(tmp_path, server, work)
    assert isinstance(outcome, EvictFailed)
    assert outcome.trouble == "cancelled"
    assert not notes(server, "a")
    assert not leaving(server, "a")


def test_notices_do_not_hold_up_the_end_and_stay_for_the_next_leader(tmp_path: Path) -> None:
    server = PodServer()
    server.pod("a")

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([evict("a", notice_s=60.0)])
        await until(lambda: writer.stats.under_notice == 1)
        assert await writer.drain(60.0)

    (outcome,) = run(tmp_path, server, work)
    assert isinstance(outcome, EvictFailed)
    assert outcome.trouble == "closed"
    assert notes(server, "a")


def test_a_new_scheduler_goes_on_with_what_the_pod_says(tmp_path: Path) -> None:
    server, clock = PodServer(), Clock()
    server.pod("a")

    async def notice(writer: Writer, api: Api) -> None:
        writer.submit([evict("a", notice_s=60.0)])
        await until(lambda: writer.stats.under_notice == 1)

    run(tmp_path, server, notice, clock=clock)
    order = due_eviction(as_pod(server.objects[pod_path("a")]))
    assert order is not None
    patches = server.wrote("PATCH", "/status")

    async def go_on(writer: Writer, api: Api) -> None:
        writer.submit([order])
        await until(lambda: writer.stats.under_notice == 1)
        clock.now += 60.0
        await until(lambda: writer.stats.evicted)

    assert run(tmp_path, server, go_on, clock=clock) == [EvictDone("ns/a", "uid-a", "ns/g")]
    assert server.wrote("PATCH", "/status") == patches
    assert leaving(server, "a")


@pytest.mark.parametrize("delete", [False, True])
def test_the_marks_tell_the_whole_order(*, delete: bool) -> None:
    order = evict("a", delete=delete)
    marks = marked(order, 1000.0, 900.0)
    meta = {"name": "a", "namespace": "ns", "uid": "uid-a", "annotations": marks["metadata"]["annotations"]}
    document = {"metadata": meta, "status": marks["status"]}
    assert due_eviction(as_pod(document)) == EvictOrder(
        "ns",
        "a",
        "uid-a",
        reason=order.reason,
        for_whom=order.for_whom,
        lost=order.lost,
        action=order.action,
        delete=delete,
        deadline=1000.0,
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"status": {"phase": "Succeeded"}},
        {"deadline": "soon"},
        {"deadline": None},
        {"status": {"phase": "Running", "conditions": []}},
        {"deletionTimestamp": "2026-01-01T00:00:00Z"},
    ],
)
def test_no_eviction_is_due_of_a_pod_that_has_ended_or_says_nothing_readable(changed: dict[str, Any]) -> None:
    marks = marked(evict("a"), 1000.0, 900.0)
    annotations = marks["metadata"]["annotations"]
    if "deadline" in changed:
        annotations["volcano-py.io/eviction-deadline"] = changed["deadline"]
    if annotations["volcano-py.io/eviction-deadline"] is None:
        del annotations["volcano-py.io/eviction-deadline"]
    meta = {"name": "a", "namespace": "ns", "uid": "uid-a", "annotations": annotations}
    if "deletionTimestamp" in changed:
        meta["deletionTimestamp"] = changed["deletionTimestamp"]
    pod = as_pod({"metadata": meta, "status": {**marks["status"], **changed.get("status", {})}})
    assert due_eviction(pod) is None
