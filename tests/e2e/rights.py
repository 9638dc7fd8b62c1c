"""What deploy/rbac grants a component, and what the component asks for by the real server's audit log."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from tests.e2e.cluster import Cluster
from tests.e2e.live import Document
from tests.e2e.servers import RealServer
from volcano_py.client.api import Api, ApiError
from volcano_py.scheduler.cluster.events import EventLimits, Events, Reporter
from volcano_py.scheduler.cluster.orders import Note, Subject

DEPLOY: Final = Path(__file__).parents[2] / "deploy" / "rbac"
SPACE: Final = "volcano-system"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_PATHS: Final = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": f"/api/v1/namespaces/{SPACE}/serviceaccounts",
    "ClusterRole": f"{_RBAC}/clusterroles",
    "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
    "Role": f"{_RBAC}/namespaces/{SPACE}/roles",
    "RoleBinding": f"{_RBAC}/namespaces/{SPACE}/rolebindings",
}


class Right(NamedTuple):
    """One verb on one resource: ``pods/status`` is a resource of its own."""

    group: str
    resource: str
    verb: str


class Asked(NamedTuple):
    """One request of an account.

    Attributes:
        right: what it needs.
        status: the HTTP status of the answer.
        reason: by which binding the server allowed it, or why not.
    """

    right: Right
    status: int
    reason: str


class Account:
    """A service account of deploy/rbac, at work.

    Attributes:
        name: without its namespace.
        kubeconfig: with a token of it.
    """

    def __init__(self, cluster: Cluster, name: str, *files: str) -> None:
        """Apply *files* of deploy/rbac as an operator would, and get a token."""
        assert isinstance(cluster.server, RealServer), "only the real server knows rights"
        self._cluster, self._log = cluster, cluster.server.audit_log
        self.name, self._files = name, files
        for document in documents("namespace.yaml", *files):
            self.apply(document)
        for role in self.roles():
            cluster.until(partial(self._has, role), what=f"{name} has what {role['metadata']['name']} allows")
        self.kubeconfig = self._with_token(cluster.place / f"{name}.kubeconfig")
        self._skip = len(self._lines())

    def apply(self, document: Document) -> None:
        """Write one object of deploy/rbac."""
        path = f"{_PATHS[document['kind']]}/{document['metadata']['name']}"
        patch = self._cluster.api.patch(path, document, kind="apply", fieldManager="test", force="true")
        self._cluster.call(patch)

    def granted(self) -> set[Right]:
        """Everything that the files allow it."""
        return granted(*self._files)

    def roles(self) -> list[Document]:
        """Roles and ClusterRoles in the files."""
        return [it for it in documents(*self._files) if it["kind"] in ("Role", "ClusterRole")]

    def asked(self) -> list[Asked]:
        """What it has asked of resources until now; discovery is everybody's."""
        found = (json.loads(line) for line in self._lines()[self._skip :])
        user = f"system:serviceaccount:{SPACE}:{self.name}"
        return [
            _asked(event) for event in found if event["user"]["username"] == user and "objectRef" in event
        ]

    def refused(self) -> set[Right]:
        """What it asked for and was not allowed."""
        return {each.right for each in self.asked() if each.status == 403}

    def used(self) -> set[Right]:
        """What it asked for with success."""
        return {each.right for each in self.asked() if each.status < 300}

    def allowed_by(self) -> set[str]:
        """The roles by which the server allowed what was asked: ``ClusterRole "name"``."""
        reasons = {each.reason.partition(" of ")[2].partition(" to ")[0] for each in self.asked()}
        return reasons - {""}

    def assert_all_is_granted_and_used(self) -> None:
        """It was refused nothing, and there is nothing in its files that it did not use."""
        assert self.refused() == set()
        assert self.used() == self.granted()
        assert self.allowed_by() == self.role_names()

    def role_names(self) -> set[str]:
        """The roles in the files, in the server's words."""
        return {f'{role["kind"]} "{role["metadata"]["name"]}"' for role in self.roles()}

    def _has(self, role: Document) -> bool:
        """Whether the server's authorizer knows by now that *role* is ours; it hears of it by a watch."""
        rule = role["rules"][0]
        resource, _, sub = rule["resources"][0].partition("/")
        asked = {
            "verb": rule["verbs"][0],
            "group": rule["apiGroups"][0],
            "resource": resource,
            "subresource": sub,
            "namespace": role["metadata"].get("namespace", ""),
            "name": rule.get("resourceNames", [""])[0],
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": f"system:serviceaccount:{SPACE}:{self.name}", "resourceAttributes": asked},
        }
        answer = self._cluster.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    def _with_token(self, file: Path) -> Path:
        path = f"{_PATHS['ServiceAccount']}/{self.name}/token"
        post = self._cluster.api.post(path, {"spec": {"expirationSeconds": 3600}})
        answer = self._cluster.call(post)
        config: dict[str, Any] = yaml.safe_load(self._cluster.server.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": answer["status"]["token"]}
        file.write_text(yaml.safe_dump(config))
        return file

    def _lines(self) -> list[str]:
        """Whole lines of the audit log; the last one may be half written."""
        return self._log.read_text().rpartition("\n")[0].splitlines()


def documents(*files: str) -> Iterator[Document]:
    """The objects in *files* of deploy/rbac."""
    for name in files:
        yield from yaml.safe_load_all((DEPLOY / name).read_text())


def granted(*files: str) -> set[Right]:
    """Everything that *files* allow."""
    return {right for it in documents(*files) if "rules" in it for right in rights_in(it)}


def rights_in(role: Document) -> Iterator[Right]:
    """What *role* allows, one by one."""
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                yield from (Right(group, resource, verb) for verb in rule["verbs"])


def without(role: Document, right: Right) -> Document:
    """*role* with *right* taken out of it."""
    return {**role, "rules": list(_rules_without(role["rules"], right))}


def _rules_without(rules: Iterable[Document], right: Right) -> Iterator[Document]:
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                verbs = [verb for verb in rule["verbs"] if Right(group, resource, verb) != right]
                if verbs:
                    yield {**rule, "apiGroups": [group], "resources": [resource], "verbs": verbs}


def _asked(event: Document) -> Asked:
    what = event["objectRef"]
    resource = "/".join(part for part in (what["resource"], what.get("subresource")) if part)
    right = Right(what.get("apiGroup", ""), resource, event["verb"])
    reason = event.get("annotations", {}).get("authorization.k8s.io/reason", "")
    return Asked(right, event.get("responseStatus", {}).get("code", 0), reason)


async def repeats_an_event(account: Account) -> None:
    """The count of a repeated event is written five minutes later; here at once, by the same code."""
    async with await Api.connect(str(account.kubeconfig)) as api:
        limits = EventLimits(series_s=0.05)
        events = Events(api, Reporter(account.name), lambda: True, time.time, limits)
        note = Note("ConfigRefused", "it is not in force", warning=True, action="Reloading")
        for _ in range(2):
            events.note(Subject("Lease", "volcano-system", "volcano-py", ""), note)
            await events.lane.quiet()
        await events.close()


class MissingRight(Exception):  # noqa: N818 - what the test waits for
    """The component has asked for what was taken from it."""


def live_without(
    cluster: Cluster, account: Account, right: Right, life: Callable[[Cluster, Account], None]
) -> None:
    """Live *life* without *right*, until that is asked for in vain: then :class:`MissingRight` is raised."""
    for role in account.roles():
        account.apply(without(role, right))
    until = cluster.until

    def watching(holds: Callable[[], Any], **more: Any) -> Any:
        def seen() -> Any:
            if right in account.refused():
                raise MissingRight
            return holds()

        return until(seen, **more)

    cluster.until = watching  # type: ignore[method-assign]
    try:
        life(cluster, account)
    except (ApiError, AssertionError):
        if right not in account.refused():
            raise
    finally:
        cluster.until = until  # type: ignore[method-assign]
        for component in cluster.components.values():
            component.kill()
        for role in account.roles():
            account.apply(role)
    if right in account.refused():
        raise MissingRight
