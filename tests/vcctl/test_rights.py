"""What shipped roles give, and how a right that the server refuses is found."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.e2e.live import Document
from tests.vcctl.person import Person
from volcano_py.cli.vcctl.doctor.rights import SHIPPED, Right, manifests, shipped_rights
from volcano_py.deploy.generate import rendered

ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: r}
rules:
- {apiGroups: [""], resources: [pods, pods/binding], verbs: [get, create]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [update], resourceNames: [volcano-py]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b, namespace: ns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}
subjects:
- {kind: ServiceAccount, name: s, namespace: volcano-system}
- {kind: User, name: somebody}
"""


def test_every_single_right_of_a_role_is_known() -> None:
    documents = (document for document in yaml.safe_load_all(ROLE) if document)
    account = "volcano-system/s"
    assert list(shipped_rights(documents)) == [
        Right(account, "get", "", "pods", "ns"),
        Right(account, "create", "", "pods", "ns"),
        Right(account, "get", "", "pods/binding", "ns"),
        Right(account, "create", "", "pods/binding", "ns"),
        Right(account, "update", "coordination.k8s.io", "leases", "ns", "volcano-py"),
    ]


def test_templates_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "role.yaml").write_text(ROLE)
    (tmp_path / "chart.yaml").write_text("kind: ClusterRole\nmetadata: {name: {{ .Release.Name }}}\n")
    assert [document["kind"] for document in manifests(tmp_path)] == ["ClusterRole", "RoleBinding"]


def test_our_own_manifests_give_rights_to_the_components() -> None:
    accounts = {right.account for right in shipped_rights(manifests(SHIPPED))}
    assert "volcano-system/volcano-py-controller" in accounts


def test_what_an_installation_does_not_give_is_not_asked_for() -> None:
    installed = (d for text in rendered().values() for d in yaml.safe_load_all(text))
    assert set(shipped_rights(manifests(SHIPPED))) == set(shipped_rights(installed))


def test_a_right_that_is_missing_on_the_server_is_found(person: Person) -> None:
    """Only asked of the real server: RBAC is its business."""
    if person.cluster.server.kind != "real":
        return
    given = list(manifests(SHIPPED))
    for space in {document["metadata"].get("namespace") for document in given} - {None}:
        if person.cluster.get("Namespace", space) is None:
            person.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
    for document in given:
        apply(person, document)
    # The server's authorizer learns of roles by a watch.
    words = ("doctor", "--check", "rbac")
    person.cluster.until(lambda: person.run(*words).code == 0, what="nobody lacks a right")
    assert person.data(*words)["findings"] == []
    role = next(document for document in given if document["kind"] == "ClusterRole")
    apply(person, {**role, "rules": role["rules"][1:]})
    try:
        verb, resource = role["rules"][0]["verbs"][0], role["rules"][0]["resources"][0]
        lacking = f"{verb} {resource}"
        person.cluster.until(
            lambda: lacking in person.run(*words, "-o", "json").stdout, what="a right is missing"
        )
        [one] = person.data(*words, code=1)["findings"]
        assert one["object"].startswith("ServiceAccount volcano-system/")
        assert lacking in one["evidence"]
    finally:
        for document in given:
            remove(person, document)


PLURALS = {
    "ServiceAccount": "serviceaccounts",
    "Namespace": "namespaces",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
}


def path_of(document: Document) -> str:
    version, meta = document["apiVersion"], document["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    space = f"/namespaces/{meta['namespace']}" if meta.get("namespace") else ""
    return f"{root}{space}/{PLURALS[document['kind']]}/{meta['name']}"


def apply(person: Person, document: Document) -> None:
    api = person.cluster.api
    person.cluster.call(
        api.patch(path_of(document), document, kind="apply", fieldManager="test", force="true")
    )


def remove(person: Person, document: Document) -> None:
    if document["kind"] != "Namespace":
        person.cluster.call(person.cluster.api.delete(path_of(document)))
