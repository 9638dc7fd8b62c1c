"""Claims are bound before their pod, and nobody else waits for that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.pod_server import Document, Fault, PodServer, pod_path
from tests.cluster.waiting import until
from tests.cluster.writing import bind, first, run, submit
from volcano_py.client.api import Api
from volcano_py.scheduler.cluster import volumes as volumes_module
from volcano_py.scheduler.cluster.orders import BindDone, BindFailed, ClaimOrder
from volcano_py.scheduler.cluster.sayings import MOST_EVENTS
from volcano_py.scheduler.cluster.writer import Writer
from volcano_py.scheduler.model.kube.times import parse_time

CLAIM = "/api/v1/namespaces/ns/persistentvolumeclaims/data"
MORE = "/api/v1/namespaces/ns/persistentvolumeclaims/more"
VOLUME = "/api/v1/persistentvolumes/pv1"
SELECTED = "volume.kubernetes.io/selected-node"


@pytest.fixture(autouse=True)
def short_looks(short_waits: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks at claims as they are, a hundred times faster."""
    monkeypatch.setattr(volumes_module, "_FIRST_LOOK_S", 0.002)
    monkeypatch.setattr(volumes_module, "_LONGEST_LOOK_S", 0.01)


def cluster(choose: Callable[[str, str], Fault | None] | None = None) -> PodServer:
    """A pod with a claim that waits, and a free volume."""
    server = PodServer() if choose is None else PodServer(choose=choose)
    server.pod("a")
    server.put(CLAIM, spec={}, status={"phase": "Pending"})
    server.put(VOLUME, spec={}, status={"phase": "Available"})
    return server


def bound(server: PodServer, volume: str = "pv1", claim: str = CLAIM) -> None:
    server.objects[claim]["spec"]["volumeName"] = volume
    server.objects[claim]["status"]["phase"] = "Bound"


def notes_on(server: PodServer, path: str) -> Document:
    found: Document = server.objects[path]["metadata"].get("annotations") or {}
    return found


@pytest.mark.parametrize("fault", [None, Fault(), Fault(done=True), Fault(status=409), Fault(status=503)])
def test_a_chosen_volume_is_kept_for_its_claim_and_then_the_pod_is_bound(
    tmp_path: Path, fault: Fault | None
) -> None:
    server = cluster(None if fault is None else first(fault, ends="/pv1"))

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([bind("a", claims=(ClaimOrder("data", "pv1"),))])
        await until(lambda: "claimRef" in server.objects[VOLUME]["spec"])
        assert not server.bound
        bound(server)
        assert await writer.drain(60.0)

    assert [type(each) for each in run(tmp_path, server, work)] == [BindDone]
    owner = server.objects[VOLUME]["spec"]["claimRef"]
    assert (owner["kind"], owner["namespace"], owner["name"], owner["uid"]) == (
        "PersistentVolumeClaim",
        "ns",
        "data",
        "uid-data",
    )
    assert notes_on(server, VOLUME) == {"pv.kubernetes.io/bound-by-controller": "yes"}


def test_a_volume_is_made_on_the_pods_node_and_then_the_pod_is_bound(tmp_path: Path) -> None:
    server = cluster()

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([bind("a", "n7", claims=(ClaimOrder("data"),))])
        await until(lambda: notes_on(server, CLAIM).get(SELECTED) == "n7")
        assert not server.bound
        bound(server, "made")
        assert await writer.drain(60.0)

    assert [type(each) for each in run(tmp_path, server, work)] == [BindDone]
    assert server.objects[pod_path("a")]["spec"]["nodeName"] == "n7"


def test_a_claim_that_is_bound_already_costs_one_look(tmp_path: Path) -> None:
    server = cluster()
    bound(server)
    run(tmp_path, server, submit(bind("a", claims=(ClaimOrder("data", "pv1"),))))
    assert [method for method, _ in server.seen] == ["GET", "POST"]


@pytest.mark.parametrize("volume", ["", "pv1"])
def test_a_claim_that_is_not_bound_in_time_ends_the_bind_and_is_free_again(
    tmp_path: Path, volume: str
) -> None:
    server = cluster()
    order = bind("a", claims=(ClaimOrder("data", volume),))
    (outcome,) = run(tmp_path, server, submit(order), claims_wait_s=0.1)
    assert isinstance(outcome, BindFailed)
    assert outcome.trouble == "volumes"
    assert "claims not bound: data" in outcome.why
    assert not server.bound
    assert notes_on(server, CLAIM) == {}
    assert notes_on(server, VOLUME) == {}
    assert "claimRef" not in server.objects[VOLUME]["spec"]


def test_a_volume_that_somebody_took_ends_the_bind(tmp_path: Path) -> None:
    server = cluster()
    server.objects[VOLUME]["spec"]["claimRef"] = {"namespace": "ns", "name": "other", "uid": "x"}
    (outcome,) = run(tmp_path, server, submit(bind("a", claims=(ClaimOrder("data", "pv1"),))))
    assert isinstance(outcome, BindFailed)
    assert outcome.why == "volume pv1 was taken by ns/other"
    assert server.objects[VOLUME]["spec"]["claimRef"]["name"] == "other"


def test_a_server_that_refuses_for_good_ends_the_bind_at_once(tmp_path: Path) -> None:
    def choose(method: str, path: str) -> Fault | None:
        return Fault(status=403) if (method, path) == ("PATCH", VOLUME) else None

    server = cluster(choose)
    (outcome,) = run(tmp_path, server, submit(bind("a", claims=(ClaimOrder("data", "pv1"),))))
    assert isinstance(outcome, BindFailed)
    assert (outcome.trouble, outcome.why) == ("volumes", "fault 403")
    assert server.wrote("PATCH", "/pv1") == 1


def test_a_provisioner_that_gives_up_ends_the_bind(tmp_path: Path) -> None:
    """It takes the node off the claim, so that another one may be chosen."""
    server = cluster()

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([bind("a", claims=(ClaimOrder("data"),))])
        await until(lambda: SELECTED in notes_on(server, CLAIM))
        del server.objects[CLAIM]["metadata"]["annotations"][SELECTED]
        assert await writer.drain(60.0)

    (outcome,) = run(tmp_path, server, work)
    assert isinstance(outcome, BindFailed)
    assert "made no volume for node n1" in outcome.why


def test_a_claim_made_for_the_pod_may_come_later(tmp_path: Path) -> None:
    server = cluster()
    claim = server.objects.pop(CLAIM)

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([bind("a", claims=(ClaimOrder("data", "pv1"),))])
        await until(lambda: server.wrote("GET", "/data") > 1)
        server.objects[CLAIM] = claim
        bound(server)
        assert await writer.drain(60.0)

    assert [type(each) for each in run(tmp_path, server, work)] == [BindDone]


def test_many_pods_that_wait_for_claims_hold_nobody_up(tmp_path: Path) -> None:
    server = cluster()
    for i in range(100):
        server.pod(f"w{i}")
        server.pod(f"p{i}")
    waiting = [bind(f"w{i}", claims=(ClaimOrder("data"),)) for i in range(100)]
    others = [bind(f"p{i}") for i in range(100)]

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([*waiting, *others])
        await until(lambda: writer.stats.bound == 100, within_s=60.0)
        assert writer.stats.binding == 100

    outcomes = run(tmp_path, server, work, in_flight=4)
    assert {each.trouble for each in outcomes if isinstance(each, BindFailed)} == {"closed"}
    assert len(outcomes) == 200


def test_who_is_not_the_leader_keeps_no_volume(tmp_path: Path) -> None:
    server = cluster()
    order = bind("a", claims=(ClaimOrder("data", "pv1"),))
    (outcome,) = run(tmp_path, server, submit(order), fence=lambda: False)
    assert isinstance(outcome, BindFailed)
    assert outcome.trouble == "fenced"
    assert server.seen == []


# -- what a pod that waits is told --------------------------------------------------------------

MADE = ClaimOrder("data", "", "fast", "disk.example.com")
KEPT = ClaimOrder("more", "pv1", "manual", "kubernetes.io/no-provisioner")


def told(server: PodServer) -> Document:
    """What pod ``a`` says of its start; empty where it says nothing."""
    found: Document = server.conditions(pod_path("a")).get("PodScheduled", {})
    return found


def test_a_pod_is_told_after_a_while_for_which_claims_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two claims one is bound, then the other: two sentences, one event, and then no word at all."""
    monkeypatch.setattr(volumes_module, "TOLD_AFTER_S", 0.0)
    server = cluster()
    server.put(MORE, spec={}, status={"phase": "Pending"})

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([bind("a", "n7", claims=(MADE, KEPT))])
        await until(lambda: "more" in told(server).get("message", ""))
        both = told(server)
        assert (both["status"], both["reason"]) == ("False", "VolumeClaims")
        sentence, _, times = both["message"].partition("; since ")
        assert sentence == (
            "waits for claims to be bound for node n7: "
            "data (storage class fast, provisioner disk.example.com), "
            "more (storage class manual, volume pv1)"
        )
        since, _, until_when = times.removesuffix(" at most").partition(", until ")
        assert parse_time(until_when) - parse_time(since) == 600.0
        bound(server, "pv1", MORE)
        await until(lambda: "more" not in told(server)["message"])
        bound(server, "made")
        assert await writer.drain(60.0)
        assert len(writer.statuses) == 0

    assert [type(each) for each in run(tmp_path, server, work)] == [BindDone]
    assert server.wrote("PATCH", "/a/status") == 2
    (event,) = server.events()
    assert (event["type"], event["reason"]) == ("Warning", "FailedScheduling")


def test_a_pod_whose_claims_are_bound_soon_is_told_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volumes_module, "TOLD_AFTER_S", 600.0)
    server = cluster()

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([bind("a", claims=(MADE,))])
        await until(lambda: server.wrote("GET", "/data") > 2)
        bound(server)
        assert await writer.drain(60.0)

    assert [type(each) for each in run(tmp_path, server, work)] == [BindDone]
    assert server.wrote("PATCH", "/a/status") == 0
    assert server.events() == []


def test_of_a_gang_that_waits_for_claims_only_some_members_get_an_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volumes_module, "TOLD_AFTER_S", 0.0)
    server = cluster()
    names = [f"g{i}" for i in range(3 * MOST_EVENTS)]
    for name in names:
        server.pod(name)

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([bind(name, group="ns/g", claims=(MADE,)) for name in names])
        await until(lambda: all(server.conditions(pod_path(name)) for name in names))
        await writer.events.lane.idle()

    run(tmp_path, server, work)
    assert len(server.events()) == MOST_EVENTS


def test_who_gives_up_names_the_provisioner(tmp_path: Path) -> None:
    (outcome,) = run(tmp_path, cluster(), submit(bind("a", claims=(MADE,))), claims_wait_s=0.1)
    assert isinstance(outcome, BindFailed)
    assert "data (storage class fast, provisioner disk.example.com)" in outcome.why
