"""The controllers as the service account that deploy/ gives them, on the real server with RBAC."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e import objects
from tests.e2e.cluster import Cluster
from tests.e2e.components import Component
from tests.e2e.test_controllers import becomes, command, group_names, held_by, replica_set

DEPLOY = Path(__file__).parents[2] / "deploy" / "rbac"
SPACE = "volcano-system"
NAME = "volcano-py-controller"
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": f"/api/v1/namespaces/{SPACE}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SPACE}/roles",
    "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SPACE}/rolebindings",
}


def deploy(cluster: Cluster) -> None:
    """Apply the files as an operator would."""
    for name in ("namespace.yaml", "controller.yaml"):
        for document in yaml.safe_load_all((DEPLOY / name).read_text()):
            path = f"{PATHS[document['kind']]}/{document['metadata']['name']}"
            cluster.call(cluster.api.patch(path, document, kind="apply", fieldManager="test", force="true"))


def kubeconfig_of_account(cluster: Cluster, place: Path) -> Path:
    """A kubeconfig with a token of the controllers' service account."""
    path = f"{PATHS['ServiceAccount']}/{NAME}/token"
    answer = cluster.call(cluster.api.post(path, {"spec": {"expirationSeconds": 3600}}))
    config: dict[str, Any] = yaml.safe_load(cluster.server.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": answer["status"]["token"]}
    file = place / "account.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


@pytest.mark.parametrize("server", ["real"], indirect=True)
def test_the_rights_in_deploy_suffice(cluster: Cluster, tmp_path: Path) -> None:
    deploy(cluster)
    account = kubeconfig_of_account(cluster, tmp_path)
    component = Component("controller", account, tmp_path, "--listen-address", "0")
    cluster.components["controller"] = component
    component.start()
    cluster.until(lambda: held_by(cluster, f"{SPACE}/{NAME}"), what="the Lease taken")
    becomes(cluster, {"root": "Open", "default": "Open"})
    name = f"podgroup-{replica_set(cluster, 2)['metadata']['uid']}"
    bad = {"scheduling.volcano.sh/queue-name": "Not A Name"}
    cluster.create(objects.pod(cluster.space, "alone"), objects.pod(cluster.space, "bad", annotations=bad))
    cluster.until(
        lambda: list(group_names(cluster).values()).count(name) == 2, what="the owner's pods grouped"
    )
    cluster.until(lambda: group_names(cluster)["alone"], what="the other pod grouped")
    cluster.until(lambda: cluster.events("Refused"), what="an event")
    cluster.create(objects.queue("p"), objects.queue("a", parent="p"))
    becomes(cluster, {"p": "Open", "a": "Open"})
    command(cluster, "CloseQueue", "p")
    becomes(cluster, {"p": "Closed", "a": "Closed"})
    cluster.patch("ReplicaSet", f"{cluster.space}/web", {"spec": {"replicas": 0}})
    cluster.until_gone("PodGroup", f"{cluster.space}/{name}")
    assert component.stop() == 0
    assert "Forbidden" not in component.said()
