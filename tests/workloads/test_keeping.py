"""Jobs, ReplicaSets and Deployments on the embedded server, which has nobody else to keep them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.live import Live
from tests.e2e.servers import make
from volcano_py.client.api import RESOURCES
from volcano_py.simulator.kubelet.nodes import SELECTOR
from volcano_py.simulator.kubelet.play import play
from volcano_py.simulator.workloads.keeping import keep_workloads
from volcano_py.simulator.workloads.owners import JOB, Owners

SPACE = "default"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    server = make("embedded", Path(tmp_path_factory.mktemp("server")))
    server.start()
    live = Live(server.kubeconfig)
    live.background(play(live.api, 1))
    live.until(lambda: live.list("Node", labelSelector=SELECTOR), what="a node")
    live.background(keep_workloads(live.api, quarantine_s=0.2))
    yield live
    live.close()
    server.stop()


def template(**meta: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", "sleep 1"]}
    return {
        "metadata": meta,
        "spec": {"nodeName": "node-0", "restartPolicy": "Never", "containers": [container]},
    }


def job_status(live: Live, name: str) -> dict[str, Any]:
    found: dict[str, Any] = live.call(live.api.get(JOB.path(SPACE, name)))
    return dict(found.get("status", {}))


def names(live: Live, **labels: str) -> set[str]:
    select = ",".join(f"{key}={value}" for key, value in labels.items())
    return set(live.list("Pod", labelSelector=select))


def test_a_job_runs_to_its_end_with_no_more_pods_than_it_needs(live: Live) -> None:
    spec = {"parallelism": 2, "completions": 3, "template": template()}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "three"}, "spec": spec}
    live.call(live.api.post(JOB.path(SPACE), job))
    live.until(lambda: job_status(live, "three").get("conditions"), what="an end")
    status = job_status(live, "three")
    assert (status["conditions"][0]["type"], status["succeeded"]) == ("Complete", 3)
    assert len(names(live, **{"job-name": "three"})) == 3


def test_a_deleted_pod_is_replaced_and_a_deleted_job_takes_its_pods_along(live: Live) -> None:
    spec: dict[str, Any] = {"parallelism": 1, "completions": 1, "template": template()}
    spec["template"]["spec"]["containers"][0]["command"] = ["serve"]
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"}, "spec": spec}
    live.call(live.api.post(JOB.path(SPACE), job))
    (first,) = live.until(lambda: names(live, **{"job-name": "one"}), what="its pod")
    live.delete("Pod", first)
    live.until(lambda: len(names(live, **{"job-name": "one"}) - {first}) == 1, what="another pod")
    live.call(live.api.delete(JOB.path(SPACE, "one"), {"propagationPolicy": "Background"}))
    live.until(lambda: not names(live, **{"job-name": "one"}), what="no pods")


def test_a_deployment_rolls_over_to_a_new_template(live: Live) -> None:
    made = template(labels={"app": "web"})
    made["spec"] |= {"restartPolicy": "Always"}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": made}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    path = RESOURCES["Deployment"].path(SPACE)
    live.call(live.api.post(path, deployment))
    live.until(lambda: len(names(live, app="web")) == 2, what="two pods")
    before = names(live, app="web")
    change = {"spec": {"template": {"metadata": {"labels": {"app": "web", "version": "2"}}}}}
    live.call(live.api.patch(f"{path}/web", change))
    live.until(lambda: len(names(live, app="web", version="2")) == 2, what="two new pods")
    live.until(lambda: not before & names(live, app="web"), what="the old ones gone")


def test_pods_that_the_server_refuses_are_told_on_their_owner(live: Live) -> None:
    spec = {"parallelism": 1, "completions": 1, "template": template(annotations={"not a name": "x"})}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "refused"}, "spec": spec}
    live.call(live.api.post(JOB.path(SPACE), job))

    def told() -> list[str]:
        events = live.list("Event", fieldSelector="involvedObject.name=refused").values()
        return [event["message"] for event in events if event["reason"] == "FailedCreate"]

    live.until(told, what="an event")
    assert "not a name" in told()[0]


def test_pods_of_a_node_that_is_gone_are_deleted(live: Live) -> None:
    live.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "doomed"}})
    lone = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "lone", "namespace": SPACE},
        "spec": {"nodeName": "doomed", "containers": [{"name": "main", "image": "busybox"}]},
    }
    kept = {**lone, "metadata": {"name": "kept", "namespace": SPACE}}
    kept["spec"] = {"nodeName": "node-0", "containers": [{"name": "main", "image": "busybox"}]}
    live.create(lone, kept)
    live.delete("Node", "doomed")
    live.until_gone("Pod", f"{SPACE}/lone")
    assert live.get("Pod", f"{SPACE}/kept") is not None


def test_an_owner_that_cannot_be_read_is_told_and_stops_nobody(live: Live) -> None:
    owners = Owners(live.api)
    broken: dict[str, Any] = {"metadata": {"name": "broken", "namespace": SPACE, "uid": "b"}, "spec": None}
    fine = {
        "metadata": {"name": "beside", "namespace": SPACE, "uid": "f"},
        "spec": {"parallelism": 1, "template": template(labels={"beside": "yes"})},
    }
    live.background(owners.run())
    for document in (broken, fine):
        live.call(_put(owners, document))
    live.until(lambda: names(live, beside="yes"), what="the other one's pod")
    selector = "involvedObject.name=broken"
    (event,) = live.until(lambda: live.list("Event", fieldSelector=selector), what="an event").values()
    assert "it can't be read" in event["message"]


async def _put(owners: Owners, document: dict[str, Any]) -> None:
    owners.put("Job", document)
