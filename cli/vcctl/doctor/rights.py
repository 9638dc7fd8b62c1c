"""Which rights the shipped roles give to the components, and which of them the server does not grant."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

import volcano_py.deploy
from volcano_py.cli.vcctl.cluster import Cluster, Document
from volcano_py.cli.vcctl.doctor.finding import Denied
from volcano_py.client.api import ApiError

SHIPPED: Final = Path(next(iter(volcano_py.deploy.__path__))) / "rbac"
REVIEW: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
ON_REQUEST: Final = "scheduler-delete.yaml"
"""Of *SHIPPED*; given only where the scheduler runs with ``--evict-by-delete``, so nobody lacks it."""
AT_ONCE: Final = 8
"""Questions in flight."""


@dataclass(frozen=True, slots=True)
class Right:
    """What one service account ("namespace/name") is to be allowed to do, in one namespace or all ("")."""

    account: str
    verb: str
    group: str
    resource: str
    namespace: str
    name: str = ""


async def denied_rights(cluster: Cluster, shipped: Path = SHIPPED) -> tuple[list[Denied], str]:
    """Rights of *shipped* roles that accounts which exist here lack, and why nobody knows, if so."""
    rights = list(shipped_rights(manifests(shipped)))
    present = set()
    for account in sorted({right.account for right in rights}):
        namespace, _, name = account.partition("/")
        if await cluster.find("ServiceAccount", name, namespace) is not None:
            present.add(account)
    slots = asyncio.Semaphore(AT_ONCE)
    asked = [right for right in rights if right.account in present]
    try:
        granted = await asyncio.gather(*(_granted(cluster, right, slots) for right in asked))
    except ApiError as error:
        if error.status not in (403, 404):
            raise
        return [], error.message
    lacking = [right for right, is_granted in zip(asked, granted, strict=True) if not is_granted]
    return [Denied(r.account, r.verb, _resource(r), r.namespace) for r in lacking], ""


def manifests(folder: Path) -> Iterator[Document]:
    """Documents of plain YAML files in *folder*; templates and what is given on request are left out."""
    for file in sorted(folder.rglob("*.yaml")):
        text = file.read_text("utf-8")
        if "{{" not in text and file.name != ON_REQUEST:
            yield from (document for document in yaml.safe_load_all(text) if isinstance(document, dict))


def shipped_rights(documents: Iterator[Document]) -> Iterator[Right]:
    """Every single right that the roles and bindings in *documents* give to service accounts."""
    given = list(documents)
    roles = {(d["kind"], d["metadata"]["name"]): d for d in given if d.get("kind") in ("Role", "ClusterRole")}
    for binding in given:
        if binding.get("kind") not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        reference = binding["roleRef"]
        role = roles.get((reference["kind"], reference["name"]))
        space = binding["metadata"].get("namespace", "") if binding["kind"] == "RoleBinding" else ""
        for subject in binding.get("subjects") or []:
            if role is not None and subject.get("kind") == "ServiceAccount":
                account = f"{subject['namespace']}/{subject['name']}"
                for rule in role.get("rules") or []:
                    yield from _of_rule(account, space, rule)


def _of_rule(account: str, namespace: str, rule: Mapping[str, Any]) -> Iterator[Right]:
    for group in rule.get("apiGroups") or []:
        for resource in rule.get("resources") or []:
            for verb in rule.get("verbs") or []:
                for name in rule.get("resourceNames") or [""]:
                    yield Right(account, verb, group, resource, namespace, name)


async def _granted(cluster: Cluster, right: Right, slots: asyncio.Semaphore) -> bool:
    namespace, _, name = right.account.partition("/")
    resource, _, part = right.resource.partition("/")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        "namespace": right.namespace,
    }
    attributes |= {key: value for key, value in (("subresource", part), ("name", right.name)) if value}
    user = f"system:serviceaccount:{namespace}:{name}"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    spec = {"user": user, "groups": groups, "resourceAttributes": attributes}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    async with slots:
        answer = await cluster.api.post(REVIEW, body)
    return bool((answer.get("status") or {}).get("allowed"))


def _resource(right: Right) -> str:
    return f"{right.resource}.{right.group}" if right.group else right.resource
