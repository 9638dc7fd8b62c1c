"""deploy/rbac/controller.yaml grants what the controllers ask for, and nothing more."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml

from tests.controllers.objects import owner, pod_parts, workload_parts
from tests.controllers.process import Process, settled
from tests.controllers.server import Server, parsed
from volcano_py.client.api import RESOURCES
from volcano_py.controllers.acts import Create, Delete, Patch
from volcano_py.controllers.observed import KINDS
from volcano_py.controllers.records import Identity

RIGHTS = Path(__file__).parents[2] / "deploy" / "rbac" / "controller.yaml"
GROUP = "scheduling.k8s.io/group-name"
VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}

Rights = dict[tuple[str, str], set[str]]  # API group and resource -> verbs


def granted() -> Rights:
    """Of the ClusterRole, without events, which ``scheduler/cluster/events.py`` writes."""
    (role,) = [it for it in yaml.safe_load_all(RIGHTS.read_text()) if it["kind"] == "ClusterRole"]
    rights: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                rights[group, resource] |= set(rule["verbs"])
    assert rights.pop(("events.k8s.io", "events")) == {"create", "patch"}
    return rights


class Watched(Server):
    """Notes what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.used: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self.before = self._note

    async def _note(self, method: str, path: str) -> None:
        resource, _, name, sub = parsed(path)
        verb = VERBS.get(method) or ("get" if name else "list")
        self.used[resource.group, f"{resource.plural}/{sub}" if sub else resource.plural].add(verb)


def ordinary_life(server: Server) -> None:
    """Pods of all owners come and go, a template moves on, a queue is told to close."""
    server.put("ReplicaSet", "rs", "ns", "rs1", **workload_parts(1))
    server.put("StatefulSet", "st", "ns", "st1", **workload_parts(2, updateRevision="r1"))
    server.put("DaemonSet", "ds", "ns", "ds1")
    server.put("K8sJob", "job", "ns", "job1")
    owners = (("ReplicaSet", "rs"), ("StatefulSet", "st"), ("DaemonSet", "ds"), ("Job", "job"))
    for kind, name in owners:
        labels = {"app": "a", "controller-revision-hash": "r1"}
        parts = pod_parts(owner(kind, name, f"{name}1"), labels=labels)
        server.put("Pod", name, "ns", f"pod-{name}", **parts)
    settled(server)
    server.remove("PodGroup", "podgroup-rs1", "ns")
    server.change("StatefulSet", "st", "ns", status={"updateRevision": "r2"})
    labels = {"app": "a", "controller-revision-hash": "r2"}
    moved = pod_parts(owner("StatefulSet", "st", "st1"), labels=labels, requests={"cpu": "3"})
    server.put("Pod", "st-2", "ns", "pod-st-2", **moved)
    settled(server)
    for kind, name in owners[:2]:
        server.change(kind, name, "ns", spec={"replicas": 0})
    for name in ("rs", "st", "st-2"):
        server.remove("Pod", name, "ns")
    settled(server)
    server.put("Queue", "p", spec={}, status={})
    server.put("Queue", "q", spec={"parent": "p"}, status={})
    target = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "p"}
    server.put("Command", "c", "ns", action="CloseQueue", target=target)
    settled(server)


async def unlucky_life(server: Server) -> None:
    """Objects are there already, or are others than supposed."""
    process = Process(server)
    identities: dict[str, Any] = {
        kind: Identity(kind, space, name, "another", 1, terminating=False)
        for (kind, space, name) in (("Queue", "", "p"), ("Command", "ns", "c"), ("PodGroup", "ns", "g"))
    }
    server.put("PodGroup", "g", "ns", spec={})
    server.put("Command", "c", "ns", action="", target={})
    group = {"metadata": {"name": "g", "namespace": "ns"}}
    await process.carrier.carry_out(Create("PodGroup", "ns", group))
    await process.carrier.carry_out(Patch(identities["Queue"], {"status": {}}, sub="status", exact=True))
    await process.carrier.carry_out(Delete(identities["Command"]))


def test_the_file_grants_what_is_asked_for_and_nothing_more() -> None:
    server = Watched()
    ordinary_life(server)
    asyncio.run(unlucky_life(server))
    for kind in KINDS:
        server.used[RESOURCES[kind].group, RESOURCES[kind].plural].add("watch")
    assert dict(server.used) == granted()
