"""Binds and evictions against a server with faults: each order ends once, and truthfully."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.pod_server import Fault, PodServer, pod_path
from tests.cluster.waiting import until
from tests.cluster.writing import bind, evict, first, run, submit
from volcano_py.client import api as api_module
from volcano_py.client.api import Api
from volcano_py.scheduler.cluster.orders import BindDone, BindFailed, EvictDone, EvictFailed
from volcano_py.scheduler.cluster.writer import Writer

pytestmark = pytest.mark.usefixtures("short_waits")


def test_a_bind_writes_node_and_annotations_in_one_request(tmp_path: Path) -> None:
    server = PodServer()
    server.pod("a")
    outcomes = run(tmp_path, server, submit(bind("a", annotations={"hami.io/x": "y"})))
    assert [type(each) for each in outcomes] == [BindDone]
    assert server.seen == [("POST", f"{pod_path('a')}/binding")]
    assert server.objects[pod_path("a")]["spec"]["nodeName"] == "n1"
    assert server.objects[pod_path("a")]["metadata"]["annotations"] == {"hami.io/x": "y"}


@pytest.mark.parametrize(
    ("fault", "reads"),
    [
        (Fault(status=429, retry_after="0"), 0),
        (Fault(status=503), 1),
        (Fault(status=500), 1),
        (Fault(), 1),
        (Fault(done=True), 1),
        (Fault(done=True, status=500), 1),
        (Fault(done=True, status=504), 1),
    ],
)
def test_a_bind_that_meets_a_fault_is_done_once(tmp_path: Path, fault: Fault, reads: int) -> None:
    """A lost answer is resolved by reading the pod; so no request is sent twice that was carried out."""
    server = PodServer(choose=first(fault))
    uid = server.pod("a")
    outcomes = run(tmp_path, server, submit(bind("a")))
    assert [type(each) for each in outcomes] == [BindDone]
    assert server.bound[uid] == 1
    assert server.wrote("GET", "/a") == reads
    assert server.wrote("POST", "/binding") == (1 if fault.done else 2)


@pytest.mark.parametrize(
    ("pod", "trouble", "words"),
    [
        (None, "gone", "not found"),
        ({"uid": "another"}, "gone", "another one has its name"),
        ({"spec": {"nodeName": "n2"}}, "gone", "bound to node n2"),
    ],
)
def test_a_bind_that_cannot_be_ends_at_once(
    tmp_path: Path, pod: dict[str, Any] | None, trouble: str, words: str
) -> None:
    server = PodServer()
    if pod is not None:
        server.pod("a", **pod)
    (outcome,) = run(tmp_path, server, submit(bind("a")))
    assert isinstance(outcome, BindFailed)
    assert outcome.trouble == trouble
    assert words in outcome.why
    assert not server.bound


def test_a_pod_that_is_being_deleted_is_gone(tmp_path: Path) -> None:
    server = PodServer()
    server.pod("a")
    server.objects[pod_path("a")]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    (outcome,) = run(tmp_path, server, submit(bind("a")))
    assert isinstance(outcome, BindFailed)
    assert outcome.trouble == "gone"


def test_a_pod_that_is_bound_to_our_node_already_is_bound(tmp_path: Path) -> None:
    server = PodServer()
    server.pod("a", spec={"nodeName": "n1"})
    assert [type(each) for each in run(tmp_path, server, submit(bind("a")))] == [BindDone]


@pytest.mark.parametrize("status", [400, 403, 422])
def test_what_the_server_refuses_for_good_is_not_tried_again(tmp_path: Path, status: int) -> None:
    server = PodServer(choose=lambda method, path: Fault(status=status))
    server.pod("a")
    (outcome,) = run(tmp_path, server, submit(bind("a")))
    assert isinstance(outcome, BindFailed)
    assert (outcome.trouble, outcome.why) == ("refused", f"fault {status}")
    assert server.wrote("POST", "/binding") == 1


def test_a_bind_that_is_always_refused_ends_after_a_while_and_others_go_on(tmp_path: Path) -> None:
    def choose(method: str, path: str) -> Fault | None:
        return Fault(status=500) if path == f"{pod_path('bad')}/binding" else None

    server = PodServer(choose=choose)
    names = ["bad", *(f"p{i}" for i in range(50))]
    for name in names:
        server.pod(name)
    outcomes = run(tmp_path, server, submit(*map(bind, names)), in_flight=2, patience_s=0.2)
    assert Counter(type(each) for each in outcomes) == {BindDone: 50, BindFailed: 1}


def test_a_server_that_asks_for_a_pause_gets_it(tmp_path: Path) -> None:
    """429 stops the lane; the other requests are not sent meanwhile."""
    server = PodServer(choose=first(Fault(status=429, retry_after="1")))
    for name in "abcd":
        server.pod(name)
    assert len(run(tmp_path, server, submit(*map(bind, "abcd")), in_flight=1)) == 4
    assert server.times[1] - server.times[0] >= 1.0


def test_a_server_that_does_not_answer_is_asked_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hundreds of orders that wait for it do not keep a processor busy."""
    monkeypatch.setattr(api_module, "_FIRST_WAIT_S", 0.1)
    monkeypatch.setattr(api_module, "_LONGEST_WAIT_S", 0.2)
    server = PodServer(choose=lambda method, path: Fault())
    for i in range(300):
        server.pod(f"p{i}")

    async def work(writer: Writer, api: Api) -> None:
        writer.submit(bind(f"p{i}") for i in range(300))
        await until(lambda: len(server.seen) > 200)
        assert server.times[200] - server.times[0] > 0.6
        server.choose = lambda method, path: None
        assert await writer.drain(60.0)

    outcomes = run(tmp_path, server, work)
    assert [type(each) for each in outcomes] == [BindDone] * 300


def test_no_more_than_so_many_are_in_flight(tmp_path: Path) -> None:
    server = PodServer()
    for i in range(100):
        server.pod(f"p{i}")
    run(tmp_path, server, submit(*(bind(f"p{i}") for i in range(100))), in_flight=7)
    assert server.most_flying == 7


def test_who_is_not_the_leader_any_more_binds_nobody(tmp_path: Path) -> None:
    server = PodServer()
    for i in range(10):
        server.pod(f"p{i}")
    leads = [True] * 3
    outcomes = run(
        tmp_path,
        server,
        submit(*(bind(f"p{i}") for i in range(10))),
        in_flight=1,
        fence=lambda: bool(leads) and leads.pop(),
    )
    assert [type(each) for each in outcomes] == [BindDone] * 3 + [BindFailed] * 7
    assert {each.trouble for each in outcomes if isinstance(each, BindFailed)} == {"fenced"}
    assert server.bound.total() == 3


def test_what_is_on_its_way_when_the_writer_closes_ends_as_closed(tmp_path: Path) -> None:
    server = PodServer(choose=lambda method, path: Fault(wait_s=5.0))
    for i in range(5):
        server.pod(f"p{i}")

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([*(bind(f"p{i}") for i in range(5)), evict("x")])
        await until(lambda: server.seen)
        assert not await writer.drain(0.05)

    outcomes = run(tmp_path, server, work, in_flight=2)
    assert Counter(type(each) for each in outcomes) == {BindFailed: 5, EvictFailed: 1}
    assert {each.trouble for each in outcomes if isinstance(each, BindFailed | EvictFailed)} == {"closed"}


@pytest.mark.parametrize("seed", range(6))
def test_whatever_goes_wrong_each_pod_is_bound_at_most_once_and_each_order_ends_once(
    tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    kinds = [
        Fault(),
        Fault(done=True),
        Fault(status=429, retry_after="0"),
        Fault(status=500),
        Fault(done=True, status=500),
        Fault(done=True, status=504),
        Fault(status=403),
        Fault(wait_s=0.02),
    ]

    def choose(method: str, path: str) -> Fault | None:
        return dice.choice(kinds) if dice.random() < 0.4 else None

    server = PodServer(choose=choose)
    for i in range(150):
        where: dict[str, Any] = (
            {"spec": {"nodeName": dice.choice(["n1", "n2"])}} if dice.random() < 0.1 else {}
        )
        if dice.random() < 0.9:
            server.pod(f"p{i}", **where)
    before = {path for path, pod in server.objects.items() if pod["spec"].get("nodeName")}
    orders = [bind(f"p{i}") if i % 3 else evict(f"p{i}") for i in range(150)]
    outcomes = run(tmp_path, server, submit(*orders), patience_s=30.0)
    assert sorted(each.key for each in outcomes) == sorted(order.key for order in orders)
    assert max(server.bound.values()) == 1
    for outcome in outcomes:
        path = pod_path(outcome.key.partition("/")[2])
        there = server.objects.get(path)
        if isinstance(outcome, BindDone):
            assert there is not None
            assert there["spec"]["nodeName"] == "n1"
        elif isinstance(outcome, BindFailed):
            assert path in before or not server.bound[outcome.uid]
        elif isinstance(outcome, EvictDone):
            assert there is None or there["metadata"].get("deletionTimestamp")
