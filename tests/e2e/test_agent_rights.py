"""The agent as the service account of deploy/rbac, on the real server: the rights suffice, and no more.

As ``test_scheduler_rights.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e import objects
from tests.e2e.cards import CARD_MIB, GPU, NODE, CardNode, card_node
from tests.e2e.cluster import Cluster
from tests.e2e.rights import Account, MissingRight, Right, granted, live_without
from volcano_py.crds.cards.register import decode_hami

NAME = "volcano-py-agent"
FILES = ("agent.yaml",)


@pytest.mark.parametrize("server", ["real"], indirect=True)
def test_the_agent_needs_what_it_is_granted_and_nothing_more(cluster: Cluster, tmp_path: Path) -> None:
    account = Account(cluster, NAME, *FILES)
    with card_node(cluster, tmp_path) as node:
        live_a_life(node, account)
    account.assert_all_is_granted_and_used()


@pytest.mark.long
@pytest.mark.parametrize("server", ["real"], indirect=True)
@pytest.mark.parametrize("right", sorted(granted(*FILES)), ids=" ".join)
def test_without_one_of_its_rights_the_agent_asks_for_it_in_vain(
    cluster: Cluster, tmp_path: Path, right: Right
) -> None:
    account = Account(cluster, NAME, *FILES)
    with card_node(cluster, tmp_path) as node, pytest.raises(MissingRight):
        live_without(cluster, account, right, lambda _, account: live_a_life(node, account))


def live_a_life(node: CardNode, account: Account) -> None:
    """Everything that the agent ever asks a server for: a pod gets its slice, another is denied its own."""
    cluster = node.cluster
    component = node.agent(kubeconfig=account.kubeconfig)
    register = cluster.until(
        lambda: noted(cluster, "Node", NODE, "hami.io/node-nvidia-register"), what="published"
    )
    node.until_registered()
    card = decode_hami(register)[0].uuid
    for name, memory in (("fits", 1024), ("over", CARD_MIB)):
        record = {
            "hami.io/vgpu-node": NODE,
            "hami.io/vgpu-devices-allocated": f"{card},NVIDIA,{memory},10:;",
        }
        asks = {"cpu": "10m", GPU: "1"}
        cluster.create(objects.pod(cluster.space, name, requests=asks, annotations=record, nodeName=NODE))
        cluster.until(lambda: name in node.names(), what=f"{name} was taken")  # noqa: B023 - at once
    key = f"{cluster.space}/fits"
    cluster.until(lambda: noted(cluster, "Pod", key, "hami.io/bind-phase") == "success", what="marked")
    cluster.until(lambda: cluster.events("CardDenied"), what="the other is denied")
    assert component.stop() == 0


def noted(cluster: Cluster, kind: str, key: str, annotation: str) -> str:
    """An annotation of an object, "" without."""
    found = cluster.get(kind, key) or {}
    return str(found.get("metadata", {}).get("annotations", {}).get(annotation, ""))
