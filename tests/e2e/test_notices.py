"""Evictions under notice, as pods and people see them."""

from __future__ import annotations

from tests.e2e import objects
from tests.e2e.cluster import Cluster

MARK = "volcano-py.io/evicted-for"
NOTICE = ("--no-leader-elect", "--eviction-notice", "300s")


def under_notice(cluster: Cluster) -> None:
    """``low-0`` fills the only node, and is told that it has to go for ``high``."""
    cluster.default_queue()
    cluster.nodes(1, cpu="2")
    cluster.create(objects.priority("urgent", 1000))
    cluster.kubelets()
    cluster.scheduler(*NOTICE)
    cluster.create(*objects.gang(cluster.space, "low", 1, cpu="2"))
    cluster.wait_bound(1, "low")
    group, pod = objects.gang(cluster.space, "high", 1, cpu="2", priorityClassName="urgent")
    group["spec"]["priorityClassName"] = "urgent"
    cluster.create(group, pod)
    cluster.until(lambda: mark(cluster) == f"{cluster.space}/high", what="low-0 marked")


def mark(cluster: Cluster) -> str:
    pod = cluster.pods("low").get("low-0")
    assert pod is not None
    return str(pod["metadata"].get("annotations", {}).get(MARK, ""))


def stays(cluster: Cluster) -> None:
    """The marks come off, and the pod is not on its way out."""
    key = f"{cluster.space}/low-0"
    cluster.until(lambda: mark(cluster) == "", what="marks taken off")
    assert list(cluster.bound("low")) == ["low-0"]
    assert cluster.condition("Pod", key, "DisruptionTarget") is None


def test_a_notice_is_withdrawn_when_its_claimant_is_deleted(cluster: Cluster) -> None:
    under_notice(cluster)
    cluster.delete("PodGroup", f"{cluster.space}/high")
    cluster.delete("Pod", f"{cluster.space}/high-0", grace_s=0)
    stays(cluster)


def test_a_notice_is_withdrawn_when_its_claimant_starts_elsewhere(cluster: Cluster) -> None:
    under_notice(cluster)
    cluster.create(objects.node("other", cpu="2"))
    cluster.wait_bound(1, "high")
    stays(cluster)
