"""Volumes: bound and unbound claims, zones, attach limits, claims for one pod."""

from typing import Any

import pytest

from tests.clusters import node, pod
from tests.plugins.asking import class_of, engine_of, opened, passing, why
from volcano_py.scheduler.engine import Engine
from volcano_py.scheduler.framework.points import first_refusal

ZONE = "topology.kubernetes.io/zone"
Document = dict[str, Any]


def claim(name: str, volume: str = "", **changes: Any) -> Document:
    """A claim of class ``slow``, bound to *volume* if one is named."""
    spec: Document = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": changes.pop("storage", "1Gi")}},
        "storageClassName": changes.pop("storage_class", "slow"),
    }
    meta: Document = {"name": name, "namespace": "ml", **changes.pop("metadata", {})}
    if volume:
        spec["volumeName"] = volume
        meta["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": meta,
        "spec": {**spec, **changes},
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(name: str, zone: str = "", **changes: Any) -> Document:
    """A volume of class ``slow``, reachable from *zone* only if one is named."""
    spec: Document = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": changes.pop("storage", "1Gi")},
        "storageClassName": "slow",
    }
    meta = {"name": name, "labels": changes.pop("labels", {})}
    if zone:
        test = {"key": ZONE, "operator": "In", "values": [zone]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [test]}]}}
    status = {"phase": changes.pop("phase", "Available")}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": meta,
        "spec": {**spec, **changes},
        "status": status,
    }


def storage_class(name: str = "slow", **changes: Any) -> Document:
    """A class whose claims wait for their pod and whose volumes nobody makes."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, **changes.pop("metadata", {})},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
        **changes,
    }


def using(name: str, *claims: str, on: str = "", **more: Any) -> Document:
    """A pod with volumes behind *claims*."""
    volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    return pod(name, "g", on=on, volumes=volumes, **more)


def own(name: str, *, on: str = "", storage_class: str = "slow") -> Document:
    """A pod with a volume made for it alone."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": storage_class,
    }
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}]
    return pod(name, "g", on=on, volumes=volumes)


ZONES = [node(f"n{zone}", labels={ZONE: f"z{zone}"}) for zone in (1, 2, 3)]


def refusal(engine: Engine, name: str) -> str:
    """Why no pod like *name* can start anywhere; "" if nothing is said."""
    found = first_refusal(opened(engine).points.pre_predicate, class_of(engine, name), None)
    return "" if found is None else found.message


def test_a_bound_volume_ties_the_pod_to_its_nodes() -> None:
    engine = engine_of(*ZONES, storage_class(), volume("v", "z2"), claim("c", "v"), using("p", "c"))
    assert passing(engine, "ml/p", "VolumeBinding") == {"n2"}
    assert why(engine, "ml/p", "VolumeBinding") == "node(s) had volume node affinity conflict"


def test_objects_may_come_in_any_order() -> None:
    engine = engine_of(using("p", "c"), claim("c", "v"), *ZONES)
    assert "non-existent" in refusal(engine, "ml/p")
    engine.apply(volume("v", "z2"))
    assert refusal(engine, "ml/p") == ""
    assert passing(engine, "ml/p", "VolumeBinding") == {"n2"}
    engine.delete("PersistentVolumeClaim", "ml/c")
    assert refusal(engine, "ml/p") == 'persistentvolumeclaim "c" not found'


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        ([claim("c", "v")], 'bound to non-existent persistentvolume "v"'),
        ([claim("c")], 'storageclass "slow" of persistentvolumeclaim "c" not found'),
        ([claim("c", storage_class="")], "pod has unbound immediate PersistentVolumeClaims"),
        (
            [claim("c"), storage_class(volumeBindingMode="Immediate")],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            [claim("c", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), storage_class()],
            'persistentvolumeclaim "c" is being deleted',
        ),
        ([claim("c", volumeName="v"), volume("v"), storage_class()], "pod has unbound immediate"),
        ([claim("c"), storage_class()], ""),
    ],
)
def test_claims_that_nothing_can_be_done_with(objects: list[Document], expected: str) -> None:
    engine = engine_of(*ZONES, *objects, using("p", "c"), pod("other", "g"))
    said = refusal(engine, "ml/p")
    assert expected in said if expected else said == ""
    assert refusal(engine, "ml/other") == ""


def test_a_claim_that_names_no_class_gets_the_default_one() -> None:
    default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    engine = engine_of(*ZONES, claim("c", storageClassName=None), using("p", "c"))
    assert "unbound immediate" in refusal(engine, "ml/p")
    engine.apply(storage_class(metadata=default))
    assert refusal(engine, "ml/p") == ""


@pytest.mark.parametrize(
    "change",
    [
        {"storage": "500Mi"},
        {"accessModes": ["ReadOnlyMany"]},
        {"storageClassName": "fast"},
        {"volumeMode": "Block"},
        {"phase": "Released"},
        {"claimRef": {"namespace": "ml", "name": "another"}},
    ],
)
def test_a_waiting_claim_needs_a_volume_that_suits(change: dict[str, Any]) -> None:
    engine = engine_of(*ZONES, storage_class(), claim("c"), using("p", "c"), volume("v1", "z1"))
    engine.apply(volume("v2", "z2", **change))
    assert passing(engine, "ml/p", "VolumeBinding") == {"n1"}
    expected = "node(s) didn't find available persistent volumes to bind"
    assert why(engine, "ml/p", "VolumeBinding") == expected


def test_a_waiting_claim_may_select_volumes() -> None:
    wish = {"matchLabels": {"disk": "new"}}
    engine = engine_of(*ZONES, storage_class(), claim("c", selector=wish), using("p", "c"))
    engine.apply(volume("v1", "z1"))
    engine.apply(volume("v2", "z2", labels={"disk": "new"}))
    assert passing(engine, "ml/p", "VolumeBinding") == {"n2"}


def test_a_volume_kept_for_the_claim_suits() -> None:
    kept = volume("v", "z3", claimRef={"namespace": "ml", "name": "c"}, storageClassName="other")
    engine = engine_of(*ZONES, storage_class(), claim("c"), using("p", "c"), kept)
    assert passing(engine, "ml/p", "VolumeBinding") == {"n3"}


def test_two_claims_need_two_volumes() -> None:
    engine = engine_of(*ZONES, storage_class(), claim("c"), claim("d"), using("p", "c", "d"))
    engine.apply(volume("v1", "z1"))
    engine.apply(volume("v2", "z2"))
    engine.apply(volume("v3", "z2"))
    engine.apply(volume("far", "z3", storage="10Gi"))
    assert passing(engine, "ml/p", "VolumeBinding") == {"n2"}
    engine.apply(volume("anywhere"))
    assert passing(engine, "ml/p", "VolumeBinding") == {"n1", "n2", "n3"}


def test_a_placed_pod_takes_the_smallest_volume_that_suits() -> None:
    engine = engine_of(*ZONES, storage_class(), claim("c"), claim("d"), using("p", "d"))
    engine.apply(volume("small", "z1"))
    engine.apply(volume("large", "z1", storage="5Gi"))
    engine.apply(using("placed", "c", on="n1"))
    assert passing(engine, "ml/p", "VolumeBinding") == {"n1"}
    engine.apply(claim("e"))
    engine.apply(using("too", "e", on="n1"))
    assert passing(engine, "ml/p", "VolumeBinding") == set()
    engine.delete("Pod", "ml/too")
    assert passing(engine, "ml/p", "VolumeBinding") == {"n1"}


def test_who_shares_a_claim_being_bound_goes_to_its_volume() -> None:
    engine = engine_of(*ZONES, node("other", labels={ZONE: "z2"}), storage_class(), claim("c"))
    engine.apply(volume("v1", "z1"))
    engine.apply(volume("v2", "z2"))
    engine.apply(using("placed", "c", on="n2"))
    engine.apply(using("p", "c"))
    assert passing(engine, "ml/p", "VolumeBinding") == {"n2", "other"}


MAKER = "disk.example.com"


def test_a_provisioner_may_make_the_volume_where_topologies_allow() -> None:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z1", "z3"]}]}]
    engine = engine_of(*ZONES, claim("c"), using("p", "c"))
    engine.apply(storage_class(provisioner=MAKER, allowedTopologies=allowed))
    assert passing(engine, "ml/p", "VolumeBinding") == {"n1", "n3"}
    engine.apply(using("placed", "c", on="n3"))
    assert passing(engine, "ml/p", "VolumeBinding") == {"n3"}, "the volume is being made there"


def test_a_volume_being_made_ties_the_claim_to_its_node() -> None:
    chosen = {"annotations": {"volume.kubernetes.io/selected-node": "n2"}}
    engine = engine_of(*ZONES, storage_class(provisioner=MAKER), claim("c", metadata=chosen))
    engine.apply(using("p", "c"))
    assert passing(engine, "ml/p", "VolumeBinding") == {"n2"}


def test_reported_capacity_is_looked_at_where_the_driver_asks_for_it() -> None:
    driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": MAKER}}
    report = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": "r", "namespace": "kube-system"},
        "storageClassName": "slow",
        "nodeTopology": {"matchLabels": {ZONE: "z1"}},
        "capacity": "1Gi",
    }
    engine = engine_of(*ZONES, storage_class(provisioner=MAKER), claim("c"), using("p", "c"), report)
    assert passing(engine, "ml/p", "VolumeBinding") == {"n1", "n2", "n3"}
    engine.apply({**driver, "spec": {"storageCapacity": True}})
    assert passing(engine, "ml/p", "VolumeBinding") == {"n1"}
    engine.apply({**report, "maximumVolumeSize": "100Mi"})
    assert passing(engine, "ml/p", "VolumeBinding") == set()


def test_a_volume_made_for_the_pod_is_judged_by_its_template() -> None:
    engine = engine_of(*ZONES, storage_class(), volume("v1", "z1"), own("p"))
    assert passing(engine, "ml/p", "VolumeBinding") == {"n1"}
    engine.apply(own("placed", on="n1"))
    assert passing(engine, "ml/p", "VolumeBinding") == set()


@pytest.mark.parametrize(
    ("label", "zone", "expected"),
    [
        (ZONE, "z2", {"n2", "bare"}),
        (ZONE, "z1__z2", {"n1", "n2", "bare"}),
        ("failure-domain.beta.kubernetes.io/zone", "z3", {"n3", "bare"}),
    ],
)
def test_zones_of_volumes(label: str, zone: str, expected: set[str]) -> None:
    engine = engine_of(*ZONES, node("bare"), volume("v", labels={label: zone}), claim("c", "v"))
    engine.apply(using("p", "c"))
    assert passing(engine, "ml/p", "VolumeZone") == expected
    assert why(engine, "ml/p", "VolumeZone") == "node(s) had no available volume zone"


def csi(name: str, handle: str) -> Document:
    return volume(name, csi={"driver": MAKER, "volumeHandle": handle})


def limit(name: str, count: int) -> Document:
    driver = {"name": MAKER, "nodeID": name, "allocatable": {"count": count}}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [driver]},
    }


def test_attach_limits_count_distinct_volumes() -> None:
    engine = engine_of(*ZONES, limit("n1", 1), limit("n2", 2), csi("v", "h1"), csi("w", "h2"))
    engine.apply(claim("c", "v"))
    engine.apply(claim("d", "w"))
    for place in ("n1", "n2", "n3"):
        engine.apply(using(f"there-{place}", "c", on=place))
    engine.apply(using("other", "d"))
    engine.apply(using("same", "c"))
    assert passing(engine, "ml/other", "NodeVolumeLimits") == {"n2", "n3"}
    assert passing(engine, "ml/same", "NodeVolumeLimits") == {"n1", "n2", "n3"}
    assert why(engine, "ml/other", "NodeVolumeLimits") == "node(s) exceed max volume count"
    engine.delete("Pod", "ml/there-n1")
    assert passing(engine, "ml/other", "NodeVolumeLimits") == {"n1", "n2", "n3"}


def test_attached_volumes_follow_the_objects_that_say_what_they_are() -> None:
    """The claim is bound only after the pod runs: its volume counts from then on, once."""
    engine = engine_of(*ZONES, limit("n1", 1), csi("v", "h1"), csi("w", "h2"), claim("d", "w"))
    engine.apply(using("there", "c", on="n1"))
    engine.apply(using("p", "d"))
    assert "n1" in passing(engine, "ml/p", "NodeVolumeLimits")
    engine.apply(claim("c", "v"))
    assert "n1" not in passing(engine, "ml/p", "NodeVolumeLimits")
    engine.delete("PersistentVolume", "v")
    assert "n1" in passing(engine, "ml/p", "NodeVolumeLimits")
    engine.apply(csi("v", "h1"))
    engine.delete("Pod", "ml/there")
    assert "n1" in passing(engine, "ml/p", "NodeVolumeLimits")
    assert engine.state.volumes.uses("ml/c") is None


def test_volumes_of_pods_that_leave_are_free_in_the_future() -> None:
    engine = engine_of(*ZONES, limit("n1", 1), csi("v", "h1"), csi("w", "h2"), claim("c", "v"))
    engine.apply(claim("d", "w"))
    engine.apply(using("leaver", "c", on="n1", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    engine.apply(using("p", "d"))
    assert "n1" not in passing(engine, "ml/p", "NodeVolumeLimits")
    assert "n1" in passing(engine, "ml/p", "NodeVolumeLimits", future=True)


def test_volumes_made_for_pods_count_one_each() -> None:
    engine = engine_of(*ZONES, limit("n1", 2), storage_class(provisioner=MAKER), own("p"))
    engine.apply(own("a", on="n1"))
    assert "n1" in passing(engine, "ml/p", "NodeVolumeLimits")
    engine.apply(own("b", on="n1"))
    assert "n1" not in passing(engine, "ml/p", "NodeVolumeLimits")


def test_a_claim_for_one_pod_is_given_to_one() -> None:
    engine = engine_of(*ZONES, storage_class(), volume("v", accessModes=["ReadWriteOncePod"]))
    engine.apply(claim("c", "v", accessModes=["ReadWriteOncePod"]))
    engine.apply(using("p", "c"))
    assert passing(engine, "ml/p", "VolumeRestrictions") == {"n1", "n2", "n3"}
    engine.apply(using("a", "c", on="n1", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    assert passing(engine, "ml/p", "VolumeRestrictions") == set()
    assert passing(engine, "ml/p", "VolumeRestrictions", future=True) == {"n1", "n2", "n3"}
    assert "ReadWriteOncePod access mode already in-use" in why(engine, "ml/p", "VolumeRestrictions")


@pytest.mark.parametrize(
    "garbage",
    [
        volume("v", capacity={"storage": "a lot"}),
        claim("c", resources={"requests": {"storage": "-1"}}),
        volume("v", nodeAffinity={"required": {"nodeSelectorTerms": [{"matchFields": [{"key": "x"}]}]}}),
    ],
)
def test_garbage_is_refused_on_its_object(garbage: Document) -> None:
    engine = engine_of(*ZONES, pod("p", "g"))
    problems = engine.apply(garbage)
    assert problems
    assert problems[0].field.startswith("spec.")
    assert passing(engine, "ml/p", "VolumeBinding") == {"n1", "n2", "n3"}
