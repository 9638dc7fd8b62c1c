"""The filters' arguments, reasons and cases that a random cluster seldom has."""

from typing import Any

import numpy as np
import pytest

from tests.clusters import group, node, pod
from tests.plugins.asking import checks, class_of, engine_of, opened, passing, refused, why
from volcano_py.crds.schedulerconfig import Arguments, ConfigError
from volcano_py.plugins.predicates import PredicatesPlugin
from volcano_py.scheduler.framework.points import Scope, first_refusal
from volcano_py.scheduler.model.tasks import Status

ZONE = "topology.kubernetes.io/zone"
APP = {"matchLabels": {"app": "x"}}


def term(key: str = ZONE, **selector: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": selector or APP}


def needs(side: str, *terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {side: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def spread(**changes: Any) -> dict[str, Any]:
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": APP}
    return {"topologySpreadConstraints": [{**rule, **changes}]}


def in_zones(*zones: str, **more: Any) -> list[dict[str, Any]]:
    return [node(f"n{i}", labels={ZONE: zone}, **more) for i, zone in enumerate(zones)]


X: dict[str, Any] = {"labels": {"app": "x"}}


def test_each_reason_is_worded_as_people_know_it() -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    engine = engine_of(
        node("a", unschedulable=True),
        node("b", taints=[taint]),
        pod("p", "g", nodeSelector={"disk": "ssd"}, **needs("podAffinity", term())),
    )
    assert why(engine, "ml/p", "NodeUnschedulable") == "node(s) were unschedulable"
    assert why(engine, "ml/p", "NodeAffinity") == "node(s) didn't match Pod's node affinity/selector"
    assert why(engine, "ml/p", "InterPodAffinity") == "node(s) didn't match pod affinity rules"
    assert why(engine, "ml/p", "TaintToleration") == "node(s) had untolerated taint"
    assert refused(engine, "ml/p")["b"] == "NodeAffinity"


def test_a_taint_is_named_where_it_is_the_same_on_all() -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    engine = engine_of(node("a", taints=[taint]), node("b", taints=[taint]), node("c"), pod("p", "g"))
    assert why(engine, "ml/p", "TaintToleration") == "node(s) had untolerated taint {k: v}"


def test_spread_says_when_a_label_is_missing() -> None:
    engine = engine_of(node("a"), pod("p", "g", **X, **spread()))
    text = "node(s) didn't match pod topology spread constraints (missing required label)"
    assert why(engine, "ml/p", "PodTopologySpread") == text


def test_a_cordon_may_be_tolerated() -> None:
    wish = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
    engine = engine_of(
        node("a", unschedulable=True), pod("p", "g", tolerations=[wish]), pod("q", "g", cpu="2")
    )
    assert refused(engine, "ml/p") == {}
    assert refused(engine, "ml/q") == {"a": "NodeUnschedulable"}


def test_the_first_of_its_kind_starts_anywhere_with_the_label() -> None:
    engine = engine_of(*in_zones("1", "2"), node("bare"), pod("p", "g", **X, **needs("podAffinity", term())))
    assert passing(engine, "ml/p", "InterPodAffinity") == {"n0", "n1"}
    engine.apply(pod("first", "h", on="n1", **X))
    assert passing(engine, "ml/p", "InterPodAffinity") == {"n1"}


def test_a_pod_counts_only_if_it_matches_all_terms() -> None:
    both = needs("podAffinity", term(), term(matchLabels={"tier": "1"}))
    engine = engine_of(*in_zones("1", "2"), pod("p", "g", **both))
    engine.apply(pod("a", "h", on="n0", labels={"app": "x"}))
    engine.apply(pod("b", "h", on="n0", labels={"tier": "1"}))
    assert passing(engine, "ml/p", "InterPodAffinity") == set()
    engine.apply(pod("c", "h", on="n1", labels={"app": "x", "tier": "1"}))
    assert passing(engine, "ml/p", "InterPodAffinity") == {"n1"}


def test_classes_nobody_repels_are_not_asked() -> None:
    engine = engine_of(*in_zones("1"), pod("p", "g"), pod("x", "g", **X))
    check = checks(engine)["ExistingPodsAntiAffinity"]
    assert not check.applies(class_of(engine, "ml/x"))
    engine.apply(pod("w", "h", **needs("podAntiAffinity", term())))
    assert check.applies(class_of(engine, "ml/x"))
    assert not check.applies(class_of(engine, "ml/p"))


@pytest.mark.parametrize("check", ["NodePorts", "InterPodAntiAffinity", "ExistingPodsAntiAffinity"])
def test_the_future_has_no_leavers_and_all_promises(check: str) -> None:
    """The pod on n0 leaves, one is promised n1: now both are taken, later n1."""
    ports = [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 80}]}]
    rule = {**X, **needs("podAntiAffinity", term()), "containers": ports}
    leaver = pod("leaver", "g", on="n0", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}, **rule)
    engine = engine_of(*in_zones("1", "2"), leaver, pod("next", "g", **rule), pod("p", "g", **rule))
    state = engine.state
    row = np.array([state.nodes.index["n1"]], np.int32)
    state.accounts.move([state.tasks.index["ml/next"]], Status.PIPELINED, row)
    assert passing(engine, "ml/p", check) == set()
    assert passing(engine, "ml/p", check, future=True) == {"n0"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {"n1"}),
        ({"maxSkew": 2}, {"n0", "n1"}),
        ({"labelSelector": {"matchLabels": {"app": "y"}}}, {"n0", "n1"}),
        ({"matchLabelKeys": ["version"]}, {"n0", "n1"}),
    ],
)
def test_spread(change: dict[str, Any], expected: set[str]) -> None:
    """Zone 1 holds one pod of version 1, zone 2 none; the newcomer has version 2."""
    old: dict[str, Any] = {"labels": {"app": "x", "version": "1"}}
    engine = engine_of(*in_zones("1", "2"), pod("old", "h", on="n0", **old))
    engine.apply(pod("p", "g", labels={"app": "x", "version": "2"}, **spread(**change)))
    assert passing(engine, "ml/p", "PodTopologySpread") == expected


@pytest.mark.parametrize(("domains", "expected"), [(2, {"n0", "n1"}), (3, set())])
def test_spread_over_fewer_domains_than_wanted_counts_from_zero(domains: int, expected: set[str]) -> None:
    engine = engine_of(*in_zones("1", "2"), pod("a", "h", on="n0", **X), pod("b", "h", on="n1", **X))
    engine.apply(pod("p", "g", **X, **spread(minDomains=domains)))
    assert passing(engine, "ml/p", "PodTopologySpread") == expected


def test_spread_leaves_out_what_its_policies_leave_out() -> None:
    """Zone 2 is empty, but tainted: it counts as a domain unless taints are honoured."""
    taint = {"key": "k", "effect": "NoSchedule"}
    machines = [node("n0", labels={ZONE: "1"}), node("n1", labels={ZONE: "2"}, taints=[taint])]
    engine = engine_of(*machines, pod("old", "h", on="n0", **X))
    engine.apply(pod("ignores", "g", **X, **spread()))
    engine.apply(pod("honours", "g", **X, **spread(nodeTaintsPolicy="Honor")))
    assert "n0" not in passing(engine, "ml/ignores", "PodTopologySpread")
    assert "n0" in passing(engine, "ml/honours", "PodTopologySpread")


@pytest.mark.parametrize(
    ("argument", "names"),
    [
        ("NodeAffinity", {"NodeAffinity"}),
        ("TaintToleration", {"TaintToleration"}),
        ("NodePorts", {"NodePorts"}),
        ("PodAffinity", {"InterPodAffinity", "InterPodAntiAffinity", "ExistingPodsAntiAffinity"}),
        ("PodTopologySpread", {"PodTopologySpread"}),
        ("VolumeBinding", {"VolumeBinding"}),
        ("VolumeZone", {"VolumeZone"}),
        ("NodeVolumeLimits", {"NodeVolumeLimits"}),
    ],
)
def test_filters_can_be_switched_off(argument: str, names: set[str]) -> None:
    options = f"{{name: predicates, arguments: {{predicate.{argument}Enable: false}}}}"
    some = checks(engine_of(config=f"actions: allocate\ntiers:\n- plugins: [{options}]\n"))
    assert set(checks(engine_of())) - set(some) == names


@pytest.mark.parametrize(
    "arguments",
    [{"predicate.NodePortsEnable": "maybe"}, {"volumebinding.bindTimeoutSeconds": -1}],
)
def test_bad_arguments_stop_the_start(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(arguments))):
        PredicatesPlugin(Arguments("plugin predicates", arguments))


def test_device_claims_are_refused_not_ignored() -> None:
    engine = engine_of(node("a"), pod("p", "g", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}]))
    refusal = first_refusal(opened(engine).points.pre_predicate, class_of(engine, "ml/p"), None)
    assert refusal is not None
    assert refusal.reason == "DeviceClaims"
    assert refused(engine, "ml/p") == {"a": "DynamicResources"}


def test_checks_of_labels_are_kept_with_the_class() -> None:
    """Only what looks beyond labels, taints and amounts may be asked again after each placement."""
    scopes = {name: check.scope for name, check in checks(engine_of()).items()}
    static = {name for name, scope in scopes.items() if scope == Scope.STATIC}
    assert static == {"DynamicResources", "NodeUnschedulable", "NodeAffinity", "TaintToleration"}
    assert scopes["NodePorts"] == Scope.NODE


def test_bad_claims_and_bad_taints_are_their_own_objects_trouble() -> None:
    """The pod with a missing claim says so, the node with a taint that means nothing counts as absent."""
    config = "actions: allocate\ntiers:\n- plugins: [{name: predicates}]\n"
    missing = {"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}
    engine = engine_of(node("a"), pod("p", "g", volumes=[missing]), pod("q", "h"), config=config)
    engine.apply(group("g"))
    engine.apply(group("h"))
    (problem,) = engine.apply(node("b", taints=[{"key": "k", "effect": "Sometimes"}]))
    assert problem.field == "spec.taints[0].effect"
    result = engine.cycle(0.0)
    assert [(d.pod, d.node) for d in result.decisions] == [("ml/q", "a")]
    assert result.refusals["ml/p"].message == 'persistentvolumeclaim "gone" not found'
