"""The controllers as the service account of deploy/rbac, on the real server: the rights suffice, and no more.

As ``test_scheduler_rights.py``. What takes a race to happen in a process (an object that is there already, or
is another than supposed), and the count of a repeated event, is done here by the same code and token.
"""

from __future__ import annotations

import pytest

from tests.e2e import objects
from tests.e2e.cluster import Cluster
from tests.e2e.live import Document
from tests.e2e.rights import Account, MissingRight, Right, granted, live_without, repeats_an_event
from tests.e2e.test_controllers import becomes, command, group_names, groups, replica_set
from volcano_py.client.api import Api
from volcano_py.controllers.acts import Create, Delete, Patch
from volcano_py.controllers.carrier import Carrier
from volcano_py.controllers.observed import Observed
from volcano_py.controllers.records import Identity

NAME = "volcano-py-controller"
FILES = ("controller.yaml",)


@pytest.mark.parametrize("server", ["real"], indirect=True)
def test_the_controllers_need_what_they_are_granted_and_nothing_more(cluster: Cluster) -> None:
    account = Account(cluster, NAME, *FILES)
    live_a_life(cluster, account)
    account.assert_all_is_granted_and_used()


@pytest.mark.long
@pytest.mark.parametrize("server", ["real"], indirect=True)
@pytest.mark.parametrize("right", sorted(granted(*FILES)), ids=" ".join)
def test_without_one_of_their_rights_the_controllers_ask_for_it_in_vain(
    cluster: Cluster, right: Right
) -> None:
    account = Account(cluster, NAME, *FILES)
    with pytest.raises(MissingRight):
        live_without(cluster, account, right, live_a_life)


def live_a_life(cluster: Cluster, account: Account) -> None:
    """Everything that the controllers ever ask a server for."""
    component = cluster.component("controller", "--listen-address", "0", kubeconfig=account.kubeconfig)
    for name in ("root", "default"):
        cluster.delete("Queue", name)  # of a case before
        cluster.until(lambda: cluster.get("Queue", name), what=name)  # noqa: B023 - at once
    becomes(cluster, {"root": "Open", "default": "Open"})
    groups_pods(cluster)
    removes_groups(cluster)
    closes_queues(cluster)
    assert component.stop() == 0
    cluster.create(close_command(cluster.space, "kept"))
    cluster.call(meets_others(cluster.space, account))
    cluster.call(repeats_an_event(account))


def groups_pods(cluster: Cluster) -> None:
    """Pods of all owners, one alone, one with a fault; a group that somebody deletes comes back."""
    bad = {"scheduling.volcano.sh/queue-name": "Not A Name"}
    cluster.create(objects.pod(cluster.space, "alone"), objects.pod(cluster.space, "bad", annotations=bad))
    replica_set(cluster, 2)
    template = objects.pod(cluster.space, "", restartPolicy="Never")["spec"]
    for document in (stateful_set(template), daemon_set(template)):
        document["metadata"]["namespace"] = cluster.space
        cluster.create(document)
    cluster.call(cluster.api.post(f"/apis/batch/v1/namespaces/{cluster.space}/jobs", job(template)))
    cluster.create(pod_of_daemon_set(cluster))
    cluster.until(lambda: cluster.events("Refused"), what="an event")
    cluster.until(lambda: len([1 for name in group_names(cluster).values() if name]) == 6, what="all grouped")
    name = group_names(cluster)["alone"]
    old = groups(cluster)[name]["metadata"]["uid"]
    cluster.delete("PodGroup", f"{cluster.space}/{name}")
    cluster.until(
        lambda: groups(cluster).get(name, {}).get("metadata", {}).get("uid") not in (None, old),
        what="the group again",
    )


def removes_groups(cluster: Cluster) -> None:
    """A template moves on, then the owners want no pods any more."""
    key = f"{cluster.space}/set"
    name = f"podgroup-{(cluster.get('StatefulSet', key) or {})['metadata']['uid']}"
    queue = {"scheduling.volcano.sh/queue-name": "other"}
    cluster.patch("StatefulSet", key, {"spec": {"template": {"metadata": {"annotations": queue}}}})
    cluster.delete("Pod", f"{cluster.space}/set-0", grace_s=0)
    cluster.until(lambda: groups(cluster)[name]["spec"]["queue"] == "other", what="the group follows")
    for kind, owner in (("StatefulSet", "set"), ("ReplicaSet", "web")):
        gone = f"podgroup-{(cluster.get(kind, f'{cluster.space}/{owner}') or {})['metadata']['uid']}"
        cluster.patch(kind, f"{cluster.space}/{owner}", {"spec": {"replicas": 0}})
        cluster.until(lambda: gone not in groups(cluster), what=f"no group of {kind}")  # noqa: B023 - at once


def closes_queues(cluster: Cluster) -> None:
    """A tree is closed, and a queue that nobody has seen."""
    cluster.create(objects.queue("p"), objects.queue("a", parent="p"))
    becomes(cluster, {"p": "Open", "a": "Open"})
    command(cluster, "CloseQueue", "p")
    becomes(cluster, {"p": "Closed", "a": "Closed"})
    cluster.create(close_command(cluster.space, "lost"))
    cluster.until_gone("Command", f"{cluster.space}/lost")


def close_command(space: str, name: str) -> Document:
    """A Command to a queue that nobody has seen."""
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": name, "namespace": space},
        "action": "CloseQueue",
        "target": {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "never"},
    }


async def meets_others(space: str, account: Account) -> None:
    """Objects are there already, or are others than supposed."""
    async with await Api.connect(str(account.kubeconfig)) as api:
        carrier = Carrier(
            api,
            Observed(("volcano-py",)),
            changed=lambda _change: None,
            say=lambda _said: None,
            fence=lambda: True,
            count=lambda _verb, _kind: None,
        )
        made = Create("PodGroup", space, objects.group(space, "twice", 1))
        await carrier.carry_out(made)
        await carrier.carry_out(made)
        queue = Identity("Queue", "", "p", "another", 1, terminating=False)
        await carrier.carry_out(Patch(queue, {"metadata": {"annotations": {"a": "b"}}}))
        await carrier.carry_out(Delete(Identity("Command", space, "kept", "another", 1, terminating=False)))


def stateful_set(template: Document) -> Document:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "set"},
        "spec": {"replicas": 1, "serviceName": "set", **workload({**template, "restartPolicy": "Always"})},
    }


def daemon_set(template: Document) -> Document:
    spec = workload({**template, "restartPolicy": "Always"})
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "set"}, "spec": spec}


def job(template: Document) -> Document:
    pods = {"template": {"spec": template}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": pods}


def workload(template: Document) -> Document:
    labels = {"app": "set"}
    return {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": template},
    }


def pod_of_daemon_set(cluster: Cluster) -> Document:
    """Its controller does not run in these tests."""
    uid = (cluster.get("DaemonSet", f"{cluster.space}/set") or {})["metadata"]["uid"]
    pod = objects.pod(cluster.space, "of-daemon-set")
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "set", "uid": uid, "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    return pod
