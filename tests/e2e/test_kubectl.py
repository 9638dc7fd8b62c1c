"""What somebody with nothing but kubectl types and reads: a manifest for Volcano, a wait, an eviction."""

from __future__ import annotations

import subprocess
from textwrap import dedent

from tests.e2e import objects
from tests.e2e.cluster import Cluster
from tests.e2e.programs import need

VOLCANOS = dedent("""\
    apiVersion: scheduling.volcano.sh/v1beta1
    kind: Queue
    metadata: {name: research}
    spec: {weight: 1, reclaimable: true, capability: {cpu: "4"}}
    ---
    apiVersion: scheduling.volcano.sh/v1beta1
    kind: PodGroup
    metadata: {name: train}
    spec: {minMember: 2, minResources: {cpu: "2"}, queue: research, minTaskMember: {worker: 2}}
    """)
WORKER = dedent("""\
    ---
    apiVersion: v1
    kind: Pod
    metadata:
      name: train-worker-%d
      annotations: {scheduling.k8s.io/group-name: train, volcano.sh/task-spec: worker}
    spec:
      schedulerName: volcano
      containers: [{name: main, image: busybox, resources: {requests: {cpu: "1"}}}]
    """)


def kubectl(cluster: Cluster, *words: str, text: str = "") -> str:
    """What kubectl prints in the test's namespace."""
    command = [str(need("kubectl")), f"--kubeconfig={cluster.server.kubeconfig}", "-n", cluster.space, *words]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_manifest_of_volcano_is_applied_waited_for_and_described(cluster: Cluster) -> None:
    cluster.nodes(1, cpu="4")
    cluster.kubelets()
    cluster.scheduler("--no-leader-elect")
    kubectl(cluster, "apply", "-f", "-", text=VOLCANOS + "".join(WORKER % number for number in range(2)))
    kubectl(
        cluster, "wait", "--for=condition=Ready", "pod", "train-worker-0", "train-worker-1", "--timeout=180s"
    )
    cluster.until(lambda: "Running" in kubectl(cluster, "get", "podgroup", "train"), what="its phase told")
    cluster.until(lambda: "Scheduled" in kubectl(cluster, "describe", "podgroup", "train"), what="an event")


def test_who_was_evicted_and_who_waits_is_described(cluster: Cluster) -> None:
    cluster.default_queue()
    cluster.nodes(1, cpu="2")
    cluster.create(objects.priority("urgent", 1000))
    cluster.kubelets()
    cluster.scheduler("--no-leader-elect")
    cluster.create(*objects.gang(cluster.space, "old", 1, cpu="2"))
    cluster.wait_bound(1, "old")
    group, pod = objects.gang(cluster.space, "new", 1, cpu="2", priorityClassName="urgent")
    group["spec"]["priorityClassName"] = "urgent"
    cluster.create(group, pod, *objects.gang(cluster.space, "late", 1, cpu="2"))
    cluster.wait_bound(1, "new")
    evicted = f"evicted for {cluster.space}/new by preempt"
    cluster.until(lambda: evicted in kubectl(cluster, "describe", "podgroup", "old"), what="who for whom")
    said = cluster.until(lambda: _waits(kubectl(cluster, "describe", "pod", "late-0")), what="why it waits")
    assert "1 Insufficient cpu" in said


def _waits(described: str) -> str:
    return described if "FailedScheduling" in described else ""
