"""Slices of cards on a live cluster: packed, never too much on a card, known again after a restart."""

from __future__ import annotations

from collections import Counter

from tests.e2e import objects
from tests.e2e.cluster import Cluster
from volcano_py.simulator.card_shorthand import node_cards

CARD_MIB = 16384
RECORD = "hami.io/vgpu-devices-allocated"
SLICE = {"cpu": "100m", "nvidia.com/gpu": "1", "nvidia.com/gpumem": "6000", "nvidia.com/gpucores": "30"}
WHOLE = {"cpu": "100m", "nvidia.com/gpu": "1"}


def gpu_node(cluster: Cluster, name: str, cards: int) -> None:
    """A node whose device plugin reports *cards* cards."""
    annotations, amounts = node_cards(name, {"count": cards, "memory": CARD_MIB})
    node = objects.node(name, annotations=annotations)
    for field in ("allocatable", "capacity"):
        node["status"][field] = {**node["status"][field], **amounts}
    cluster.create(node)


def sliced(cluster: Cluster, name: str, members: int, asks: dict[str, str]) -> None:
    """A gang whose pods ask for cards."""
    pods = (objects.pod(cluster.space, f"{name}-{i}", group=name, requests=asks) for i in range(members))
    cluster.create(objects.group(cluster.space, name, members), *pods)


def taken(cluster: Cluster) -> Counter[str]:
    """MiB taken of each card, by what bound pods have written on them."""
    used: Counter[str] = Counter()
    for pod in cluster.pods().values():
        if pod["spec"].get("nodeName"):
            for one in pod["metadata"]["annotations"][RECORD].split(";")[0].rstrip(":").split(":"):
                uuid, _, memory, _ = one.split(",")
                used[uuid] += int(memory)
    return used


def test_slices_share_cards_and_never_hold_more_than_a_card_has(cluster: Cluster) -> None:
    cluster.default_queue()
    gpu_node(cluster, "g0", 2)
    scheduler = cluster.scheduler("--no-leader-elect")
    sliced(cluster, "shared", 2, SLICE)
    cluster.wait_bound(2, "shared")
    scheduler.kill()
    scheduler.start()
    sliced(cluster, "alone", 1, WHOLE)
    cluster.wait_bound(1, "alone")
    assert sorted(taken(cluster).values()) == [2 * 6000, CARD_MIB]
    sliced(cluster, "more", 1, SLICE)
    reason = "card memory (largest free slice 4384Mi, asked 6000Mi)"
    cluster.until_says("Pod", f"{cluster.space}/more-0", "PodScheduled", reason)
    cluster.delete("PodGroup", f"{cluster.space}/shared")
    for number in range(2):
        cluster.delete("Pod", f"{cluster.space}/shared-{number}", grace_s=0)
    cluster.wait_bound(1, "more")
    assert max(taken(cluster).values()) <= CARD_MIB
    cluster.assert_sound()


def test_a_configmap_that_comes_late_names_the_resource(cluster: Cluster) -> None:
    """The pod's name for a share means nothing until the device configuration says so."""
    cluster.default_queue()
    gpu_node(cluster, "g0", 1)
    cluster.scheduler("--no-leader-elect")
    sliced(cluster, "late", 1, {"cpu": "100m", "example.com/slice": "1", "nvidia.com/gpumem": "6000"})
    key = f"{cluster.space}/late-0"
    cluster.until(lambda: cluster.condition("Pod", key, "PodScheduled"), what="the reason told")
    name = "volcano-vgpu-device-config"
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "kube-system"},
            "data": {"device-config.yaml": "nvidia: {resourceCountName: example.com/slice}"},
        }
    )
    try:
        cluster.wait_bound(1, "late")
        assert taken(cluster) == {"g0-0": 6000}
    finally:  # the server is shared with other tests
        cluster.delete("ConfigMap", f"kube-system/{name}")
