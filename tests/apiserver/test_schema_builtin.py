"""Built-in kinds: how documents are read, and what is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.apiserver.bad_objects import BAD, pod
from volcano_py.simulator.apiserver.schema.kinds import Invalid, Malformed, ServedKind
from volcano_py.simulator.apiserver.schema.plain_values import canonical_quantity, canonical_time
from volcano_py.simulator.apiserver.schema.registry import Registry

REGISTRY = Registry()


def kind(name: str, group: str = "") -> ServedKind:
    found = REGISTRY.by_kind(group, name)
    assert found is not None
    return found


def test_unknown_fields_and_nulls_are_dropped() -> None:
    document = pod(
        containers=[{"name": "c", "image": "i", "foo": 1, "command": None, "resources": {"bar": 1}}]
    )
    document["zed"] = 1
    assert kind("Pod").read(document, strict=True) == [
        "spec.containers[0].foo",
        "spec.containers[0].resources.bar",
        "zed",
    ]
    assert document["spec"]["containers"] == [{"name": "c", "image": "i", "resources": {}}]


MALFORMED: list[tuple[dict[str, Any], str]] = [
    (
        {"containers": [{"name": 5}]},
        "number into Go struct field Container.spec.containers.name of type string",
    ),
    ({"containers": ["x"]}, "string into Go struct field PodSpec.spec.containers of type v1.Container"),
    ({"tolerations": {}}, "object into Go struct field PodSpec.spec.tolerations of type []v1.Toleration"),
    ({"hostNetwork": "x"}, "string into Go struct field PodSpec.spec.hostNetwork of type bool"),
    ({"priority": 2**40}, "number 1099511627776 into Go struct field PodSpec.spec.priority of type int32"),
    (
        {"activeDeadlineSeconds": 1.5},
        "number 1.5 into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64",
    ),
    ({"nodeSelector": {"a": 1}}, "number into Go struct field PodSpec.spec.nodeSelector of type string"),
    ({"nodeSelector": []}, "array into Go struct field PodSpec.spec.nodeSelector of type map[string]string"),
]


@pytest.mark.parametrize(("spec", "message"), MALFORMED, ids=[str(spec)[:50] for spec, _ in MALFORMED])
def test_fields_of_another_type_cannot_be_read(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(Malformed) as refusal:
        kind("Pod").read(pod(**copy.deepcopy(spec)), strict=False)
    heading = 'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal '
    assert refusal.value.message == heading + message


def test_values_are_written_in_their_one_spelling() -> None:
    requests = {"cpu": 0.5, "memory": "1024Mi", "nvidia.com/gpu": 2, "ephemeral-storage": "1.5Gi"}
    document = pod(containers=[{"name": "c", "image": "i", "resources": {"requests": requests}}])
    document["metadata"]["creationTimestamp"] = "2026-01-02T03:04:05.678+01:00"
    kind("Pod").read(document, strict=False)
    assert document["spec"]["containers"][0]["resources"]["requests"] == {
        "cpu": "500m",
        "memory": "1Gi",
        "nvidia.com/gpu": "2",
        "ephemeral-storage": "1536Mi",
    }
    assert document["metadata"]["creationTimestamp"] == "2026-01-02T02:04:05Z"


QUANTITIES = {
    "1000m": "1",
    "1500m": "1500m",
    "0.5": "500m",
    "1024": "1024",
    "1000": "1k",
    "2048Ki": "2Mi",
    "1023Ki": "1023Ki",
    "0.5Ki": "512",
    "1e3": "1e3",
    "1000e3": "1e6",
    "-1.5": "-1500m",
    "0": "0",
    "0Mi": "0",
    "123456789": "123456789",
    "0.0000000001": "1n",
}


@pytest.mark.parametrize(("text", "canonical"), QUANTITIES.items())
def test_quantities(text: str, canonical: str) -> None:
    assert canonical_quantity(text) == canonical


@pytest.mark.parametrize("text", ["1x", "", "abc", "1 Gi", "--1"])
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match the regular expression"):
        canonical_quantity(text)


def test_times() -> None:
    assert canonical_time("2026-01-02T03:04:05Z", micro=False) == "2026-01-02T03:04:05Z"
    assert canonical_time("2026-01-02T03:04:05Z", micro=True) == "2026-01-02T03:04:05.000000Z"
    assert canonical_time("2026-01-02T03:04:05.1234567+02:00", micro=True) == "2026-01-02T01:04:05.123456Z"
    with pytest.raises(ValueError, match='cannot parse "5" as "2006"'):
        canonical_time("5", micro=False)
    with pytest.raises(ValueError, match="month out of range"):
        canonical_time("2026-13-02T03:04:05Z", micro=False)


@pytest.mark.parametrize("case", BAD, ids=[case.name for case in BAD])
def test_faults_are_named_as_the_real_server_does(case: Any) -> None:
    found = kind(case.document["kind"], case.group)
    document = copy.deepcopy(case.document)
    found.read(document, strict=False)
    with pytest.raises(Invalid) as refusal:
        found.check(document, None, "")
    assert [f"{cause.field}: {cause.message}" for cause in refusal.value.causes] == case.causes


FIXED = "spec: Forbidden: pod updates may not change fields other than"
UPDATES: list[tuple[str, dict[str, Any], str]] = [
    ("image", {"containers": [{"name": "c", "image": "other"}]}, ""),
    ("command", {"containers": [{"name": "c", "image": "i", "command": ["x"]}]}, FIXED),
    (
        "containers",
        {"containers": []},
        "spec.containers: Forbidden: pod updates may not add or remove containers",
    ),
    ("node", {"nodeName": "n"}, FIXED),
    ("deadline", {"activeDeadlineSeconds": 5}, ""),
    ("toleration added", {"tolerations": [{"key": "a", "operator": "Exists"}, {"operator": "Exists"}]}, ""),
    (
        "toleration gone",
        {"tolerations": []},
        "spec.tolerations: Forbidden: existing toleration can not be modified",
    ),
    ("gate gone", {"schedulingGates": []}, ""),
    (
        "gate added",
        {"schedulingGates": [{"name": "h"}]},
        "spec.schedulingGates[0].name: Forbidden: only deletion",
    ),
    ("selector narrower", {"nodeSelector": {"x": "y", "z": "w"}}, ""),
    ("selector wider", {"nodeSelector": {}}, "spec.nodeSelector: Invalid value: {}: only additions to"),
    ("affinity while gated", {"affinity": {"nodeAffinity": {}}}, ""),
    ("scheduler", {"schedulerName": "other"}, FIXED),
    ("priority", {"priority": 7}, FIXED),
    ("grace", {"terminationGracePeriodSeconds": 7}, FIXED),
]


@pytest.mark.parametrize(("name", "change", "refusal"), UPDATES, ids=[name for name, _, _ in UPDATES])
def test_what_may_change_in_a_pod(name: str, change: dict[str, Any], refusal: str) -> None:
    old = pod(
        tolerations=[{"key": "a", "operator": "Exists"}],
        schedulingGates=[{"name": "g"}],
        nodeSelector={"x": "y"},
        terminationGracePeriodSeconds=30,
    )
    new = {**old, "spec": {**old["spec"], **change}}
    if not refusal:
        kind("Pod").check(new, old, "")
        return
    with pytest.raises(Invalid) as refused:
        kind("Pod").check(new, old, "")
    (cause,) = refused.value.causes
    assert f"{cause.field}: {cause.message}".startswith(refusal)


def test_a_bound_pod_keeps_its_selector() -> None:
    old = pod(nodeSelector={"x": "y"})
    new = {**old, "spec": {**old["spec"], "nodeSelector": {"x": "y", "z": "w"}}}
    with pytest.raises(Invalid, match="pod updates may not change fields"):
        kind("Pod").check(new, old, "")


def test_events_have_two_spellings_and_one_store() -> None:
    new, old = kind("Event", "events.k8s.io"), kind("Event")
    assert new.bucket == old.bucket
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "regarding": {"kind": "Pod"},
        "note": "text",
        "reportingController": "c",
    }
    stored = new.inward(event)
    assert stored == {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {"kind": "Pod"},
        "message": "text",
        "reportingComponent": "c",
    }
    assert new.outward(stored) == event
    assert old.inward(stored) is stored
    assert [one.api_version for one in REGISTRY.kinds() if one.bucket == "events"] == ["v1"]


def test_shapes_say_how_lists_merge() -> None:
    shape = kind("Pod").shape
    spec = shape.fields["spec"]
    containers = spec.fields["containers"]
    assert (containers.list_type, containers.keys, containers.patch_key) == ("map", ("name",), "name")
    assert containers.each is not None
    ports = containers.each.fields["ports"]
    assert (ports.keys, ports.patch_key, ports.key_defaults) == (
        ("containerPort", "protocol"),
        "containerPort",
        {"protocol": "TCP"},
    )
    assert spec.fields["tolerations"].list_type == "atomic"
    assert spec.fields["nodeSelector"].atomic
    assert spec.fields["volumes"].patch_strategy == {"merge", "retainKeys"}
    assert shape.fields["metadata"].fields["finalizers"].list_type == "set"
    assert shape.fields["metadata"].fields["ownerReferences"].keys == ("uid",)
    assert shape.fields["status"].fields["conditions"].keys == ("type",)
    strategy = kind("Deployment", "apps").shape.fields["spec"].fields["strategy"]
    assert strategy.patch_strategy == {"retainKeys"}


def test_a_schema_that_contains_itself_has_a_shape() -> None:
    definition = kind("CustomResourceDefinition", "apiextensions.k8s.io").shape
    versions = definition.fields["spec"].fields["versions"].each
    assert versions is not None
    schema = versions.fields["schema"].fields["openAPIV3Schema"]
    inner = schema.fields["properties"].each
    assert inner is not None
    assert inner.fields["x-kubernetes-validations"].list_type
