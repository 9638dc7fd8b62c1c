"""Custom kinds: what a schema refuses, drops and fills in, in the words of a real server."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.apiserver.definitions import every_keyword, probe, registry, version
from volcano_py.simulator.apiserver.schema.kinds import Invalid, Malformed, ServedKind

BLOCKED = "some validation rules were not checked because the object was invalid"


@pytest.fixture(scope="module")
def kind() -> ServedKind:
    found = registry(every_keyword()).resolve("test.volcano-py.io", "v1", "probes")
    assert found is not None
    return found


def take(
    kind: ServedKind, document: dict[str, Any], old: dict[str, Any] | None = None
) -> tuple[list[str], list[str]]:
    """What is dropped of *document*, and what is wrong with the rest, as ``field: message``."""
    dropped = kind.read(document, strict=False)
    kind.default(document)
    try:
        kind.check(document, old, "")
    except Invalid as refusal:
        return dropped, [
            f"{cause.field}: {cause.message}" for cause in refusal.causes if BLOCKED not in cause.message
        ]
    return dropped, []


NOT_ONE = '<nil>: Invalid value: "": "spec.one" must validate one and only one schema (oneOf)'
FAULTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"required": {}}, ["spec.required.a: Required value", "spec.required.b: Required value"]),
    ({"required": {"a": None, "b": 1}}, ["spec.required.a: Required value"]),
    ({"choice": 3}, ['spec.choice: Unsupported value: 3: supported values: "1", "2"']),
    (
        {"text": True},
        ['spec.text: Invalid value: "boolean": spec.text in body must be of type string: "boolean"'],
    ),
    ({"number": 1}, ["spec.number: Invalid value: 1: spec.number in body should be greater than 1"]),
    ({"number": 5.0}, ["spec.number: Invalid value: 5: spec.number in body should be less than 5"]),
    ({"text": "a"}, ['spec.text: Invalid value: "a": spec.text in body should be at least 2 chars long']),
    ({"text": "ééééé"}, ["spec.text: Too long: may not be more than 4 bytes"]),
    ({"list": []}, ["spec.list: Invalid value: 0: spec.list in body should have at least 1 items"]),
    ({"list": ["a", "b", "c"]}, ["spec.list: Too many: 3: must have at most 2 items"]),
    (
        {"list": [1]},
        ['spec.list[0]: Invalid value: "integer": spec.list[0] in body must be of type string: "integer"'],
    ),
    ({"set": ["a", "b", "a"]}, ['spec.set[2]: Duplicate value: "a"']),
    ({"map": [{"name": "a"}, {"name": "a"}]}, ['spec.map[1]: Duplicate value: {"name":"a"}']),
    ({"map": [{"value": 1}]}, ["spec.map[0].name: Required value"]),
    ({"map": [{"name": "a", "value": 0}]}, ["spec.map[0].value: Invalid value: 0: failed rule: self > 0"]),
    (
        {"map": [None]},
        ['spec.map[0]: Invalid value: "null": spec.map[0] in body must be of type object: "null"'],
    ),
    (
        {"object": {}},
        ["spec.object: Invalid value: 0: spec.object in body should have at least 1 properties"],
    ),
    ({"object": {"a": 1, "b": 2, "c": 3}}, ["spec.object: Too many: 3: must have at most 2 items"]),
    (
        {"one": {}},
        [
            f"{NOT_ONE}. Found none valid",
            "spec.one.a: Required value",
        ],
    ),
    (
        {"one": {"a": "1", "b": "2"}},
        [f"{NOT_ONE}. Found 2 valid alternatives"],
    ),
    ({"not": {"a": "x"}}, ['<nil>: Invalid value: "": "spec.not" must not validate the schema (not)']),
    (
        {"all": "bbb"},
        [
            "spec.all: Invalid value: \"bbb\": spec.all in body should match '^a'",
            '<nil>: Invalid value: "": "spec.all" must validate all the schemas (allOf)',
        ],
    ),
    ({"time": "x"}, ['spec.time: Invalid value: "x": spec.time in body must be of type date-time: "x"']),
    (
        {"address": "1.2.3"},
        ['spec.address: Invalid value: "1.2.3": spec.address in body must be of type ipv4: "1.2.3"'],
    ),
    ({"bytes": "!"}, ['spec.bytes: Invalid value: "!": spec.bytes in body must be of type byte: "!"']),
    ({"embedded": {}}, ["spec.embedded.apiVersion: Required value", "spec.embedded.kind: Required value"]),
    (
        {"either": 1.5},
        [
            'spec.either: Invalid value: "number": '
            'spec.either in body must be of type integer,string: "number"'
        ],
    ),
    (
        {"quantity": "1x"},
        ["spec.quantity: Invalid value: \"1x\": spec.quantity in body should match '^[0-9]+(Mi)?$'"],
    ),
    (
        {"small": 2**31},
        ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.small'],
    ),
    ({"exact": "y"}, ['spec.exact: Invalid value: "y": must be x']),
    ({"told": 3}, ["spec.told: Forbidden: big"]),
    ({"told": 1}, ["spec.told: Forbidden: small"]),
    ({"inner": {"x": 1}}, ["spec.inner.x: Invalid value: too small"]),
    ({"inner": {}}, ['spec.inner: Invalid value: "object": no such key: x evaluating rule: too small']),
    ({"positive": [1, -1]}, ["spec.positive: Invalid value: failed rule: self.all(i, i > 0)"]),
    ({"flag": False}, ["spec.flag: Invalid value: false: failed rule: self"]),
    ({"real": 1}, ["spec.real: Invalid value: 1: failed rule: self > 1.0"]),
]


@pytest.mark.parametrize(("spec", "expected"), FAULTS, ids=[str(spec)[:60] for spec, _ in FAULTS])
def test_faults_are_named_as_the_real_server_does(
    kind: ServedKind, spec: dict[str, Any], expected: list[str]
) -> None:
    assert take(kind, probe(**copy.deepcopy(spec)))[1] == expected


GOOD: list[dict[str, Any]] = [
    {"required": {"a": "", "b": 0}},
    {"choice": 2, "number": 1.3, "text": "éééé"},
    {"list": ["a"], "set": ["a", "b"], "map": [{"name": "a", "value": 1}, {"name": "b"}]},
    {"object": {"a": 1}, "one": {"b": "x"}, "not": {}, "all": "abc"},
    {"time": "2026-01-02T03:04:05.6+01:00", "address": "10.0.0.1", "bytes": "YQ=="},
    {"embedded": {"apiVersion": "v1", "kind": "Pod", "anything": [1]}},
    {"either": "x", "quantity": 5, "small": -(2**31)},
    {"exact": "x", "fixed": 1, "told": 6, "inner": {"x": 6}, "positive": [1], "flag": True, "real": 2},
]


@pytest.mark.parametrize("spec", GOOD, ids=[str(spec)[:60] for spec in GOOD])
def test_what_fits_is_taken(kind: ServedKind, spec: dict[str, Any]) -> None:
    assert take(kind, probe(**copy.deepcopy(spec))) == ([], [])


def test_rules_do_not_run_on_values_of_the_wrong_type(kind: ServedKind) -> None:
    document = probe(choice=3, told=3)
    kind.default(document)
    with pytest.raises(Invalid) as refusal:
        kind.check(document, None, "")
    assert [cause.field for cause in refusal.value.causes] == ["spec.choice", "<nil>"]
    assert BLOCKED in refusal.value.causes[1].message


def test_unknown_fields_are_dropped_and_named(kind: ServedKind) -> None:
    document = probe(
        map=[{"name": "a", "zz": 1}],
        preserving={"u": 1, "k": {"u": 2, "z": 1}},
        embedded={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "zz": 1}, "u": 1},
    )
    document["metadata"]["labelz"] = {}
    document["other"] = 1
    assert kind.read(document, strict=True) == [
        "metadata.labelz",
        "spec.map[0].zz",
        "spec.preserving.k.u",
        "spec.embedded.metadata.zz",
        "other",
    ]
    assert document["spec"]["map"] == [{"name": "a"}]
    assert document["spec"]["preserving"] == {"u": 1, "k": {"z": 1}}
    assert document["spec"]["embedded"]["u"] == 1


def test_metadata_of_another_type_cannot_be_read(kind: ServedKind) -> None:
    document = probe()
    document["metadata"]["labels"] = {"a": 1}
    with pytest.raises(Malformed, match=r"number into Go struct field ObjectMeta\.labels of type string"):
        kind.read(document, strict=False)


def test_defaults_fill_what_is_absent_and_nulls_that_may_not_be(kind: ServedKind) -> None:
    document = probe(defaults={"k": None, "n": None}, plain=None, nullable=None, object={"a": None, "b": 1})
    kind.default(document)
    assert document["spec"] == {"defaults": {"k": 7, "n": None}, "nullable": None, "object": {"b": 1}}
    empty = probe()
    kind.default(empty)
    assert empty["spec"] == {"defaults": {"k": 7, "n": "z"}}


def test_a_default_is_not_shared_between_objects(kind: ServedKind) -> None:
    one, other = probe(), probe()
    kind.default(one)
    one["spec"]["defaults"]["k"] = 1
    kind.default(other)
    assert other["spec"]["defaults"]["k"] == 7


def test_rules_about_change_hold_on_update_only(kind: ServedKind) -> None:
    assert take(kind, probe(fixed=1))[1] == []
    assert take(kind, probe(fixed=1), probe(fixed=1))[1] == []
    assert take(kind, probe(fixed=2), probe(fixed=1))[1] == ["spec.fixed: Invalid value: 2: immutable"]
    assert take(kind, probe(fixed=2), probe())[1] == []


def test_old_faults_stay_allowed_until_they_are_touched(kind: ServedKind) -> None:
    old = probe(choice=3, exact="y", map=[{"name": "a", "value": 0}, {"name": "b", "value": 1}], text="ab")
    new = copy.deepcopy(old)
    new["spec"]["text"] = "abc"
    new["spec"]["map"].reverse()
    assert take(kind, new, old)[1] == []
    new["spec"]["map"][1]["value"] = -1
    assert take(kind, new, old)[1] == ["spec.map[1].value: Invalid value: -1: failed rule: self > 0"]


def test_versions_share_a_store_and_differ_in_name() -> None:
    definition = every_keyword()
    newer = version("v2", storage=False, deprecated=True)
    definition["spec"]["versions"].append(newer)
    made = registry(definition)
    old, new = (made.resolve("test.volcano-py.io", name, "probes") for name in ("v1", "v2"))
    assert old is not None
    assert new is not None
    assert old.bucket == new.bucket
    assert (old.converts, new.converts) == (False, True)
    assert new.inward(probe())["apiVersion"] == "test.volcano-py.io/v1"
    assert new.outward(probe())["apiVersion"] == "test.volcano-py.io/v2"
    assert new.deprecation == "test.volcano-py.io/v2 Probe is deprecated"
    preferred = made.by_kind("test.volcano-py.io", "Probe")
    assert preferred is new
    assert [kind.version for kind in made.kinds() if kind.bucket == old.bucket] == ["v1"]


def test_a_kind_is_served_until_its_definition_goes() -> None:
    made = registry(every_keyword())
    first = made.resolve("test.volcano-py.io", "v1", "probes")
    made.set_crd(every_keyword())
    assert made.resolve("test.volcano-py.io", "v1", "probes") is first
    made.drop_crd("probes.test.volcano-py.io")
    assert made.resolve("test.volcano-py.io", "v1", "probes") is None
    assert made.by_kind("scheduling.volcano.sh", "Queue") is not None


def test_a_definition_whose_names_are_taken_is_not_served() -> None:
    made = registry(every_keyword())
    rival = every_keyword()
    rival["metadata"]["name"] = "rivals.test.volcano-py.io"
    rival["spec"]["names"] = {
        "plural": "rivals",
        "singular": "rival",
        "kind": "Probe",
        "listKind": "RivalList",
    }
    status = made.crd_status(rival)
    conditions = {one["type"]: (one["status"], one["reason"], one["message"]) for one in status["conditions"]}
    assert conditions["NamesAccepted"] == ("False", "KindConflict", '"Probe" is already in use')
    assert conditions["Established"][0] == "False"
    assert status["acceptedNames"] == {
        "plural": "rivals",
        "kind": "",
        "singular": "rival",
        "listKind": "RivalList",
    }
    made.set_crd(rival)
    assert made.resolve("test.volcano-py.io", "v1", "rivals") is None


def test_scale_and_selectable_paths() -> None:
    definition = every_keyword()
    definition["spec"]["versions"][0]["selectableFields"] = [{"jsonPath": ".spec.text"}]
    found = registry(definition).resolve("test.volcano-py.io", "v1", "probes")
    assert found is not None
    assert found.scale is not None
    assert (found.scale.replicas, found.scale.status_replicas) == (("spec", "choice"), ("status", "n"))
    assert found.selectable == {"spec.text": ("spec", "text")}
    assert found.subresources == {"status", "scale"}
