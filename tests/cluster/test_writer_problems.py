"""Objects that can't be read, or only some way: said on them once, and taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.pod_server import Fault, PodServer, pod_path
from tests.cluster.waiting import until
from tests.cluster.writing import bind, run, submit
from volcano_py.client.api import Api
from volcano_py.scheduler.cluster.orders import GroupOrder, ProblemOrder, Subject
from volcano_py.scheduler.cluster.writer import Writer

GROUP = "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups/g"

pytestmark = pytest.mark.usefixtures("short_waits")


def test_a_node_that_cannot_be_read_says_so_once(tmp_path: Path) -> None:
    server = PodServer()
    path = "/api/v1/nodes/n1"
    server.put(path, status={"conditions": [{"type": "Ready", "status": "True"}]})
    order = ProblemOrder(Subject("Node", "", "n1", "uid-n1"), ("status.allocatable[cpu]: is no amount",))
    run(tmp_path, server, submit(order, order))
    run(tmp_path, server, submit(order))
    said = server.conditions(path)
    assert said["Ready"]["status"] == "True"
    assert (said["volcano-py.io/Valid"]["status"], said["volcano-py.io/Valid"]["reason"]) == (
        "False",
        "Unreadable",
    )
    assert server.wrote("PATCH", "/nodes/n1/status") == 1
    assert [each["metadata"]["namespace"] for each in server.events()] == ["default"]


def test_an_unreadable_pod_that_waits_is_told_so_and_no_autoscaler_is(tmp_path: Path) -> None:
    server = PodServer()
    server.pod("a")
    subject = Subject("Pod", "ns", "a", "uid-a")

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([ProblemOrder(subject, ("spec: bad",), waits=True)])
        assert await writer.drain(60.0)
        said = server.conditions(pod_path("a"))
        assert said["PodScheduled"]["reason"] == "SchedulerError"
        assert said["volcano-py.io/Valid"]["message"] == "spec: bad"
        writer.submit([ProblemOrder(subject, ())])
        assert await writer.drain(60.0)
        assert server.conditions(pod_path("a"))["volcano-py.io/Valid"]["status"] == "True"

    run(tmp_path, server, work)


def test_a_podgroup_keeps_its_other_conditions(tmp_path: Path) -> None:
    old = {"type": "Unschedulable", "status": "True", "message": "x"}

    def choose(method: str, path: str) -> None:
        """Somebody else writes between our read and our write."""
        if method == "PATCH" and server.wrote("PATCH", "") == 1:
            server.put(GROUP, status={"conditions": [old]})

    server = PodServer(choose=choose)
    server.put(GROUP, status={})
    subject = Subject("PodGroup", "ns", "g", "uid-g")
    run(tmp_path, server, submit(ProblemOrder(subject, ("spec.minResources: 2^70 is too much",), used=True)))
    said = server.conditions(GROUP)
    assert said["Unschedulable"] == old
    assert said["volcano-py.io/Valid"]["reason"] == "Doubtful"


@pytest.mark.parametrize("where", ["on its way", "waiting", "held"])
def test_a_status_put_together_earlier_does_not_take_a_problem_away(tmp_path: Path, where: str) -> None:
    """It names all conditions of the group, and was put together when nothing was wrong."""
    slow = [Fault(done=True, status=200, wait_s=0.1)]

    def choose(method: str, path: str) -> Fault | None:
        return slow.pop() if slow and (method == "PATCH" or path.endswith("/binding")) else None

    server = PodServer(choose=choose)
    server.put(GROUP, status={})
    server.pod("a")
    problem = ProblemOrder(Subject("PodGroup", "ns", "g", "uid-g"), ("spec: bad",), used=True)
    waits = {"type": "Unschedulable", "status": "True", "reason": "r", "message": "m"}
    status = GroupOrder("ns", "g", "uid-g", {"phase": "Pending", "conditions": [waits]})

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([bind("a", group="ns/g"), status] if where == "held" else [status])
        if where == "on its way":
            await until(lambda: server.wrote("PATCH", "/podgroups/g"))
        writer.submit([problem])
        assert await writer.drain(60.0)

    run(tmp_path, server, work)
    assert set(server.conditions(GROUP)) == {"Unschedulable", "volcano-py.io/Valid"}
    assert server.objects[GROUP]["status"]["phase"] == "Pending"


def test_a_podgroup_is_told_once_its_status_is_listed(tmp_path: Path) -> None:
    """Rights are to the status: until a new CRD's endpoints are listed the object itself is forbidden."""

    def choose(method: str, path: str) -> Fault | None:
        if method != "PATCH" or not path.endswith("/podgroups/g"):
            return None
        server.status_served = True
        return Fault(status=403)

    server = PodServer(choose=choose, status_served=False)
    server.put(GROUP, status={})
    subject = Subject("PodGroup", "ns", "g", "uid-g")

    async def work(writer: Writer, api: Api) -> None:
        writer.submit([ProblemOrder(subject, ("spec: bad",))])
        await until(lambda: server.wrote("PATCH", "/podgroups/g/status"))
        assert await writer.drain(60.0)
        assert writer.problems.stats.refused == 0

    run(tmp_path, server, work)
    assert server.conditions(GROUP)["volcano-py.io/Valid"]["message"] == "spec: bad"


def test_a_kind_without_conditions_gets_an_event(tmp_path: Path) -> None:
    server = PodServer()
    run(tmp_path, server, submit(ProblemOrder(Subject("Queue", "", "q", "uid-q"), ("spec: bad",))))
    assert [(method, path) for method, path in server.seen] == [
        ("POST", "/apis/events.k8s.io/v1/namespaces/default/events")
    ]
