"""Pretend kubelets on both servers: pods run, end, leave and speak as their scripts say."""

from __future__ import annotations

import json
import math
import os
import subprocess
import time
from functools import partial
from typing import Any

from tests.e2e.cluster import Cluster
from tests.e2e.live import Document
from tests.e2e.programs import need
from volcano_py.simulator.kubelet.leases import NAMESPACE as NODE_LEASES
from volcano_py.simulator.kubelet.leases import keep_alive
from volcano_py.simulator.kubelet.nodes import CardShape, NodeShape
from volcano_py.simulator.kubelet.play import play

NOTES = "playground.volcano-py.io/"


def play_nodes(cluster: Cluster, count: int = 2, shape: NodeShape | None = None) -> None:
    cluster.background(play(cluster.api, count, shape))
    cluster.until(lambda: len(cluster.list("Node")) == count, what="nodes")


def bound_pod(cluster: Cluster, name: str, notes: dict[str, str] | None = None, **spec: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": cluster.space,
            "annotations": {NOTES + key: value for key, value in (notes or {}).items()},
        },
        "spec": {
            "nodeName": "node-0",
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "busybox"}],
            **spec,
        },
    }


def phase(cluster: Cluster, name: str) -> str:
    pod = cluster.get("Pod", f"{cluster.space}/{name}") or {}
    return str(pod.get("status", {}).get("phase", "gone"))


def until_phase(cluster: Cluster, name: str, wanted: str) -> Document:
    cluster.until(lambda: phase(cluster, name) == wanted, what=f"{name} {wanted}")
    return cluster.get("Pod", f"{cluster.space}/{name}") or {}


def until_begun(cluster: Cluster, name: str) -> None:
    """Wait until the pod runs, or has run: it may be over before anybody looks."""
    cluster.until(lambda: phase(cluster, name) in ("Running", "Succeeded"), what=f"{name} begun")


def kubectl(cluster: Cluster, *words: str) -> str:
    command = [str(need("kubectl")), "-n", cluster.space, *words]
    env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_pod_runs_until_it_is_deleted(cluster: Cluster) -> None:
    play_nodes(cluster)
    cluster.create(bound_pod(cluster, "a"))
    pod = until_phase(cluster, "a", "Running")
    ready = {one["type"]: one["status"] for one in pod["status"]["conditions"]}
    assert ready["Ready"] == ready["ContainersReady"] == "True"
    assert pod["status"]["podIP"].startswith("10.")
    cluster.delete("Pod", f"{cluster.space}/a")
    cluster.until_gone("Pod", f"{cluster.space}/a")


def test_scripts_end_pods_as_they_say(cluster: Cluster) -> None:
    play_nodes(cluster)
    sleeper = [{"name": "main", "image": "busybox", "command": ["sleep", "1"]}]
    cluster.create(
        bound_pod(cluster, "good", {"run-seconds": "1"}),
        bound_pod(cluster, "bad", {"exit-code": "3", "start-delay-seconds": "1"}),
        bound_pod(cluster, "sleeper", containers=sleeper),
        bound_pod(cluster, "junk", {"run-seconds": "soon"}),
    )
    until_phase(cluster, "good", "Succeeded")
    until_phase(cluster, "sleeper", "Succeeded")
    bad = until_phase(cluster, "bad", "Failed")
    assert bad["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    junk = until_phase(cluster, "junk", "Failed")
    assert "'soon' is not a number of seconds" in junk["status"]["message"]


def test_conditions_of_others_outlive_what_kubelets_write(cluster: Cluster) -> None:
    play_nodes(cluster)
    cluster.create(bound_pod(cluster, "a", {"start-delay-seconds": "1", "run-seconds": "1"}))
    mark = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    cluster.call(
        cluster.api.patch(
            f"/api/v1/namespaces/{cluster.space}/pods/a/status",
            {"status": {"conditions": [mark]}},
            kind="strategic",
        )
    )
    until_phase(cluster, "a", "Succeeded")
    assert cluster.condition("Pod", f"{cluster.space}/a", "DisruptionTarget") is not None


def test_a_stubborn_pod_stays_for_its_grace(cluster: Cluster) -> None:
    play_nodes(cluster)
    pod = bound_pod(cluster, "a", {"ignore-sigterm-seconds": "60"}, terminationGracePeriodSeconds=2)
    cluster.create(pod)
    until_phase(cluster, "a", "Running")
    begun = time.monotonic()
    cluster.delete("Pod", f"{cluster.space}/a")
    cluster.until_gone("Pod", f"{cluster.space}/a")
    assert time.monotonic() - begun >= 1.0  # of 2, as the server keeps whole seconds


def test_kubelets_that_start_anew_go_on_where_the_last_ones_stopped(cluster: Cluster) -> None:
    play_nodes(cluster)
    cluster.create(bound_pod(cluster, "a", {"run-seconds": "3"}), bound_pod(cluster, "b"))
    until_begun(cluster, "a")
    before = until_phase(cluster, "b", "Running")
    cluster.end_background()
    play_nodes(cluster)
    until_phase(cluster, "a", "Succeeded")
    after = cluster.get("Pod", f"{cluster.space}/b") or {}
    assert after["status"] == before["status"], "nothing is written twice"


def test_kubelets_wait_for_a_server_that_is_down(cluster: Cluster) -> None:
    play_nodes(cluster)
    cluster.create(bound_pod(cluster, "a", {"run-seconds": "1"}), bound_pod(cluster, "b"))
    until_phase(cluster, "b", "Running")
    cluster.server.crash()
    cluster.server.revive()
    cluster.create(bound_pod(cluster, "c"))
    until_phase(cluster, "c", "Running")
    until_phase(cluster, "a", "Succeeded")
    cluster.delete("Pod", f"{cluster.space}/b")
    cluster.until_gone("Pod", f"{cluster.space}/b")


def test_pods_of_nodes_that_are_not_pretended_are_left_alone(cluster: Cluster) -> None:
    play_nodes(cluster)
    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "other"}})
    cluster.create(bound_pod(cluster, "theirs", nodeName="other"), bound_pod(cluster, "ours"))
    until_phase(cluster, "ours", "Running")
    assert phase(cluster, "theirs") == "Pending"
    cluster.patch("Node", "other", {"metadata": {"labels": {NOTES + "pretend": "true"}}})
    until_phase(cluster, "theirs", "Running")


def test_nodes_report_cards_and_carry_no_taint(cluster: Cluster) -> None:
    shape = NodeShape(cards=CardShape(count=4, memory_mib=24000, slots=5), zones=2)
    play_nodes(cluster, 3, shape)
    cluster.until(lambda: all(map(_is_ready, cluster.list("Node").values())), what="nodes ready")
    nodes = cluster.list("Node")
    assert [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes.values()] == [
        "zone-a", "zone-b", "zone-a",
    ]  # fmt: skip
    for node in nodes.values():
        assert not node["spec"].get("taints")
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "20"
        cards = json.loads(node["metadata"]["annotations"]["hami.io/node-nvidia-register"])
        assert [card["devmem"] for card in cards] == [24000] * 4


def test_leases_of_nodes_are_renewed_and_go_with_their_nodes(cluster: Cluster) -> None:
    play_nodes(cluster)
    nodes = {name: node["metadata"]["uid"] for name, node in cluster.list("Node").items()}
    for name in nodes:  # of another case's node, where nobody collects garbage
        cluster.delete("Lease", f"{NODE_LEASES}/{name}")
    cluster.background(keep_alive(cluster.api, lambda: nodes, period_s=0.2))
    for name, uid in list(nodes.items()):
        lease = _lease_of(cluster, name, uid)
        assert lease["spec"]["holderIdentity"] == name
        cluster.until(partial(_is_renewed, cluster, lease), what="renewed")
    assert "HolderIdentity:  node-0" in kubectl(cluster, "describe", "node", "node-0")
    nodes.clear()
    cluster.delete("Node", "node-0")
    if cluster.server.has_garbage_collector:
        cluster.until_gone("Lease", f"{NODE_LEASES}/node-0", within_s=90)


def test_pretend_nodes_have_leases_that_hold_as_long_as_real_ones(cluster: Cluster) -> None:
    cluster.delete("Lease", f"{NODE_LEASES}/node-0")  # of another case's node
    cluster.background(play(cluster.api, 1, leases_per_s=math.inf))
    node = cluster.until(lambda: cluster.get("Node", "node-0"), what="a node")
    assert _lease_of(cluster, "node-0", node["metadata"]["uid"])["spec"]["leaseDurationSeconds"] == 40


def _lease_of(cluster: Cluster, node: str, uid: str) -> Document:
    """The lease of the node with *uid*; one of a node before it goes first."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}

    def look() -> Document | None:
        found = cluster.get("Lease", f"{NODE_LEASES}/{node}")
        return found if found and found["metadata"].get("ownerReferences") == [owner] else None

    return cluster.until(look, within_s=90, what=f"a lease of {node}")


def _is_renewed(cluster: Cluster, before: Document) -> bool:
    now = cluster.get("Lease", f"{NODE_LEASES}/{before['metadata']['name']}")
    return now is not None and now["spec"]["renewTime"] > before["spec"]["renewTime"]


def test_kubectl_reads_logs(cluster: Cluster) -> None:
    play_nodes(cluster)
    talker = [{"name": "main", "image": "busybox", "command": ["sh", "-c", "echo one; echo two; sleep 2"]}]
    cluster.create(bound_pod(cluster, "a", containers=talker))
    until_begun(cluster, "a")
    assert kubectl(cluster, "logs", "a") == "one\ntwo\n"
    assert kubectl(cluster, "logs", "a", "--tail", "1") == "two\n"
    assert kubectl(cluster, "logs", "a", "--follow") == "one\ntwo\n"
    assert phase(cluster, "a") == "Succeeded"


def _is_ready(node: Document) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def test_a_pod_that_was_bound_past_the_nodes_room_is_refused_as_by_a_real_kubelet(cluster: Cluster) -> None:
    play_nodes(cluster, 1, NodeShape(cpu="4"))
    large = [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "3"}}}]
    cluster.create(bound_pod(cluster, "first", containers=large))
    until_phase(cluster, "first", "Running")
    unbound = bound_pod(cluster, "second", containers=large)
    del unbound["spec"]["nodeName"]
    cluster.create(unbound)
    binding = {"metadata": {"name": "second"}, "target": {"kind": "Node", "name": "node-0"}}
    cluster.call(cluster.api.post(f"/api/v1/namespaces/{cluster.space}/pods/second/binding", binding))
    status = until_phase(cluster, "second", "Failed")["status"]
    assert status["reason"] == "OutOfcpu"
    assert status["message"].endswith("cpu, requested: 3000, used: 3000, capacity: 4000")
    cluster.delete("Pod", f"{cluster.space}/first")
    cluster.until_gone("Pod", f"{cluster.space}/first")
    cluster.create(bound_pod(cluster, "third", containers=large))
    until_phase(cluster, "third", "Running")
    assert phase(cluster, "second") == "Failed", "a kubelet does not look at it again"


def test_news_of_a_node_that_come_late_refuse_nobody(cluster: Cluster) -> None:
    """Pods and nodes come on different watches: before it refuses, a kubelet asks the server."""
    play_nodes(cluster, 1, NodeShape(cpu="1"))
    large = [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "3"}}}]
    for number in range(10):
        cpu = str(3 * (number + 1))
        amounts = {"status": {"allocatable": {"cpu": cpu}, "capacity": {"cpu": cpu}}}
        cluster.call(cluster.api.patch("/api/v1/nodes/node-0/status", amounts))
        cluster.create(bound_pod(cluster, f"p{number}", containers=large))
    for number in range(10):
        until_phase(cluster, f"p{number}", "Running")
