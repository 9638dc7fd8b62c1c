"""What becomes of claims and volumes, step by step, on documents alone.

``settle`` plays the server: it merges each step into the document, and knows nothing of how steps are chosen.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from volcano_py.simulator.volumes.known import CLAIM, CLASS, VOLUME, Document, Known, key_of
from volcano_py.simulator.volumes.plan import (
    PROVISIONER,
    Change,
    Provision,
    Remove,
    Step,
    next_step,
    on_node,
    playground_class,
    why_waiting,
)

SELECTED = "volume.kubernetes.io/selected-node"
OURS = {**playground_class("ours"), "metadata": {"name": "ours", "creationTimestamp": "2026-01-01T00:00:00Z"}}
NODE = {"metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "host-1"}}}


class Cluster:
    """Objects as a server holds them; each step is decided by somebody who has just started."""

    def __init__(self, *documents: Document) -> None:
        self.objects = {(one["kind"], key_of(one)): copy.deepcopy(one) for one in documents}
        self.steps: list[Step] = []

    def known(self) -> Known:
        known = Known()
        for document in self.objects.values():
            known.put(copy.deepcopy(document))
        return known

    def next(self) -> Step | None:
        known = self.known()
        keys = [key for key in self.objects if key[0] != CLASS]
        return next((step for key in keys if (step := next_step(known, key))), None)

    def settle(self) -> Cluster:
        while step := self.next():
            self.steps.append(step)
            assert len(self.steps) < 50, "it never ends"
            self._carry_out(step)
        return self

    def drop(self, kind: str, key: str) -> None:
        del self.objects[kind, key]

    def claim(self, name: str = "c") -> Document:
        return self.objects[CLAIM, f"s/{name}"]

    def volume(self, name: str) -> Document:
        return self.objects[VOLUME, name]

    def _carry_out(self, step: Step) -> None:
        match step:
            case Change(document, patch):
                _merge(self.objects[document["kind"], key_of(document)], patch)
            case Provision(_, volume, node):
                made = on_node(volume, NODE) if node else volume
                self.objects[VOLUME, key_of(made)] = copy.deepcopy(made)
            case Remove(volume):
                self.drop(VOLUME, key_of(volume))


def _merge(into: Document, patch: Document) -> None:
    for key, value in patch.items():
        if isinstance(value, dict):
            _merge(into.setdefault(key, {}), value)
        elif value is None:
            into.pop(key, None)
        else:
            into[key] = copy.deepcopy(value)


def claim(name: str = "c", *, uid: str = "u1", notes: dict[str, str] | None = None, **spec: Any) -> Document:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    return {
        "kind": CLAIM,
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "s", "uid": uid, "annotations": notes or {}},
        "spec": {**asked, **spec},
        "status": {"phase": "Pending"},
    }


def volume(name: str, size: str = "5Gi", *, phase: str = "Pending", **spec: Any) -> Document:
    offered = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": "/x"},
    }
    return {
        "kind": VOLUME,
        "apiVersion": "v1",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {**offered, **spec},
        "status": {"phase": phase},
    }


def storage_class(name: str, *, made: str = "2026-01-01T00:00:00Z", **fields: Any) -> Document:
    return {
        **playground_class(name),
        "metadata": {"name": name, "creationTimestamp": made, **fields.pop("metadata", {})},
        **fields,
    }


def phase(document: Document) -> str:
    return str(document["status"]["phase"])


def waiting(name: str = "c", **fields: Any) -> Document:
    """A claim whose pod has a node."""
    return claim(name, storageClassName="ours", notes={SELECTED: "n1"}, **fields)


def test_a_claim_whose_pod_has_a_node_gets_a_volume_there() -> None:
    cluster = Cluster(OURS, waiting(volumeMode="Block")).settle()
    bound, made = cluster.claim(), cluster.volume("pvc-u1")
    assert bound["metadata"]["annotations"] == {
        SELECTED: "n1",
        "volume.kubernetes.io/storage-provisioner": PROVISIONER,
        "volume.beta.kubernetes.io/storage-provisioner": PROVISIONER,
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    assert bound["spec"]["volumeName"] == "pvc-u1"
    shown = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}
    assert bound["status"] == {"phase": "Bound", **shown}
    assert made["metadata"]["annotations"] == {"pv.kubernetes.io/provisioned-by": PROVISIONER}
    owner = {"apiVersion": "v1", "kind": CLAIM, "namespace": "s", "name": "c", "uid": "u1"}
    spec = {key: value for key, value in made["spec"].items() if key not in ("hostPath", "nodeAffinity")}
    assert spec == {
        **shown,
        "claimRef": owner,
        "persistentVolumeReclaimPolicy": "Delete",
        "storageClassName": "ours",
        "volumeMode": "Block",
    }
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": ["host-1"]}
    ]
    assert phase(made) == "Bound"


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (claim(storageClassName="ours"), "WaitForFirstConsumer: its volume comes when a pod"),
        (
            claim(storageClassName="theirs", notes={SELECTED: "n1"}),
            "ExternalProvisioning: waits for a volume from",
        ),
        (
            claim(storageClassName="missing"),
            'ProvisioningFailed: no free volume suits, and there is no storage class "m',
        ),
        (claim(storageClassName=""), "FailedBinding: no free volume suits, and it names no storage class"),
        (
            waiting(selector={"matchLabels": {"a": "b"}}),
            "ProvisioningFailed: a volume that has to match labels",
        ),
        (waiting(volumeName="not-there"), ""),
    ],
    ids=["no node yet", "another provisioner", "no such class", "no class", "labels", "no such volume"],
)
def test_who_gets_no_volume_is_told_why(one: Document, told: str) -> None:
    cluster = Cluster(OURS, storage_class("theirs", provisioner="ebs.csi.aws.com"), one)
    assert cluster.settle().steps == []
    why = why_waiting(cluster.known(), one)
    assert (f"{why.reason}: {why.message}" if why else "").startswith(told)
    assert bool(why) == bool(told)


def test_a_volume_for_a_claim_that_waits_for_its_pod_is_the_schedulers_to_choose() -> None:
    there = volume("v", phase="Available", storageClassName="ours")
    assert Cluster(OURS, there, claim(storageClassName="ours")).settle().steps == []


def test_a_class_that_waits_for_no_pod_has_volumes_that_every_node_reaches() -> None:
    now = storage_class("now", volumeBindingMode="Immediate", reclaimPolicy="Retain")
    cluster = Cluster(now, claim(storageClassName="now", notes={SELECTED: "n1"})).settle()
    made = cluster.volume("pvc-u1")
    assert "nodeAffinity" not in made["spec"]
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert phase(cluster.claim()) == phase(made) == "Bound"


def test_a_claim_without_a_class_gets_the_newest_default_one() -> None:
    notes = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    old, new = (
        storage_class("b", metadata=notes),
        storage_class("a", made="2026-02-01T00:00:00Z", metadata=notes),
    )
    newest = storage_class("c", made="2026-03-01T00:00:00Z")
    cluster = Cluster(old, new, newest, claim()).settle()
    assert cluster.claim()["spec"]["storageClassName"] == "a"


def test_the_smallest_volume_that_suits_is_taken() -> None:
    rest: dict[str, Any] = {"storageClassName": "manual"}
    offers = [
        volume("large", "9Gi", **rest),
        volume("right", "3Gi", **rest),
        volume("small", "1Gi", **rest),
        volume("other", "2Gi"),
        volume("many", "2Gi", storageClassName="manual", accessModes=["ReadOnlyMany"]),
    ]
    cluster = Cluster(*offers, claim(storageClassName="manual")).settle()
    assert cluster.claim()["spec"]["volumeName"] == "right"
    assert cluster.claim()["status"]["capacity"] == {"storage": "3Gi"}
    assert cluster.volume("right")["metadata"]["annotations"] == {
        "pv.kubernetes.io/bound-by-controller": "yes"
    }
    assert {name: phase(cluster.volume(name)) for name in ("large", "right", "small")} == {
        "large": "Available",
        "right": "Bound",
        "small": "Available",
    }


def test_two_claims_never_share_a_volume() -> None:
    cluster = Cluster(volume("only"), claim("a", uid="ua"), claim("b", uid="ub")).settle()
    assert [phase(cluster.claim(name)) for name in "ab"] == ["Bound", "Pending"]


def test_a_claim_may_name_its_volume_and_a_volume_its_claim() -> None:
    kept: dict[str, Any] = {"claimRef": {"namespace": "s", "name": "b"}, "storageClassName": "ours"}
    cluster = Cluster(
        OURS, volume("v"), volume("w", **kept), claim("a", volumeName="v"),
        claim("b", uid="ub", storageClassName="ours"),
    ).settle()  # fmt: skip
    assert {name: cluster.claim(name)["spec"]["volumeName"] for name in "ab"} == {"a": "v", "b": "w"}
    assert "pv.kubernetes.io/bound-by-controller" not in cluster.claim("a")["metadata"]["annotations"]
    assert "pv.kubernetes.io/bound-by-controller" in cluster.claim("b")["metadata"]["annotations"]
    assert (
        "annotations" not in cluster.volume("w")["metadata"]
        or not cluster.volume("w")["metadata"]["annotations"]
    )
    assert cluster.volume("w")["spec"]["claimRef"]["uid"] == "ub"


def test_a_named_volume_that_does_not_suit_stays_free() -> None:
    cluster = Cluster(volume("v", "1Gi"), claim(volumeName="v")).settle()
    assert (phase(cluster.claim()), phase(cluster.volume("v"))) == ("Pending", "Available")


@pytest.mark.parametrize(
    ("policy", "maker", "left"),
    [
        ("Delete", None, None),
        ("Delete", PROVISIONER, None),
        ("Delete", "ebs.csi.aws.com", "Released"),
        ("Retain", PROVISIONER, "Released"),
    ],
)
def test_a_volume_whose_claim_is_gone_goes_by_its_policy(policy: str, maker: str | None, left: str) -> None:
    one = volume("v", persistentVolumeReclaimPolicy=policy)
    one["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": maker} if maker else {}
    cluster = Cluster(one, claim()).settle()
    assert phase(cluster.claim()) == "Bound"
    cluster.drop(CLAIM, "s/c")
    cluster.steps.clear()
    cluster.settle()
    release = cluster.steps[0]
    assert isinstance(release, Change)
    assert release.ask == (CLAIM, "s/c"), "news of the claim may be late"
    there = cluster.objects.get((VOLUME, "v"))
    assert (there and phase(there)) == left


def test_a_claim_made_anew_under_the_name_does_not_get_the_old_volume() -> None:
    cluster = Cluster(volume("v"), claim()).settle()
    cluster.objects[CLAIM, "s/c"] = claim(uid="u2")
    cluster.settle()
    assert (phase(cluster.claim()), phase(cluster.volume("v"))) == ("Pending", "Released")
    cluster.objects[VOLUME, "larger"] = volume("larger", "9Gi")
    assert cluster.settle().claim()["spec"]["volumeName"] == "larger"


def test_nor_does_it_by_naming_it() -> None:
    cluster = Cluster(volume("v"), claim()).settle()
    cluster.objects[CLAIM, "s/c"] = claim(uid="u2", volumeName="v")
    cluster.settle()
    assert (phase(cluster.claim()), phase(cluster.volume("v"))) == ("Pending", "Released")


def test_a_claim_whose_volume_is_gone_is_lost_until_it_is_back() -> None:
    cluster = Cluster(volume("v"), claim()).settle()
    kept = cluster.volume("v")
    cluster.drop(VOLUME, "v")
    cluster.steps.clear()
    cluster.settle()
    assert phase(cluster.claim()) == "Lost"
    assert [step.ask for step in cluster.steps if isinstance(step, Change)] == [(VOLUME, "v")]
    cluster.objects[VOLUME, "v"] = kept
    assert phase(cluster.settle().claim()) == "Bound"


def test_a_volume_kept_for_a_claim_that_took_another_is_free_again() -> None:
    cluster = Cluster(volume("v"), claim()).settle()
    extra = volume("w", phase="Available", claimRef=cluster.volume("v")["spec"]["claimRef"])
    extra["metadata"]["annotations"] = {"pv.kubernetes.io/bound-by-controller": "yes"}
    cluster.objects[VOLUME, "w"] = extra
    cluster.settle()
    assert "claimRef" not in cluster.volume("w")["spec"]
    assert phase(cluster.volume("w")) == "Available"


def test_what_is_on_its_way_out_is_left_alone() -> None:
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    free = volume("v", phase="Available", storageClassName="manual")
    there = (waiting(), free, volume("w", phase="Released"))
    for one in there:
        one["metadata"] |= leaving
    assert Cluster(OURS, *there, claim("d", storageClassName="manual")).settle().steps == []


def test_what_cannot_be_read_suits_nobody_and_stops_nobody() -> None:
    odd = volume("odd", "much", claimRef={})
    cluster = Cluster(
        odd, volume("good"), claim("a", selector={"matchLabels": 7}), claim("b", uid="ub")
    ).settle()
    assert [phase(cluster.claim(name)) for name in "ab"] == ["Pending", "Bound"]


def test_older_news_change_nothing() -> None:
    known = Known()
    new, old = claim(), claim()
    new["metadata"]["resourceVersion"], old["metadata"]["resourceVersion"] = "10", "9"
    assert known.put(new) == [(CLAIM, "s/c")]
    assert known.put(old) == []
    assert known.claims["s/c"] is new


def test_who_is_concerned_by_a_change() -> None:
    known = Known()
    known.put(claim("a"))
    known.put(claim("b", uid="ub"))
    assert known.put(volume("v")) == [(VOLUME, "v"), (CLAIM, "s/a"), (CLAIM, "s/b")]
    assert known.put(storage_class("x")) == [(CLAIM, "s/a"), (CLAIM, "s/b")]
    kept = volume("w", claimRef={"namespace": "s", "name": "b", "uid": "ub"})
    assert known.put(kept) == [(VOLUME, "w"), (CLAIM, "s/b")]
    assert known.drop(CLAIM, "s/b") == [(CLAIM, "s/b"), (VOLUME, "w")]
    assert known.drop(CLASS, "none") == []
