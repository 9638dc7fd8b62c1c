"""Constraints of pods: what is read, what is completed, and that equal pods share them."""

from typing import Any

import msgspec
import pytest

from tests.model.kube.manifests import asking, pod
from volcano_py.scheduler.model.kube.objects import ObjectError, Pod
from volcano_py.scheduler.model.kube.podspec import (
    EMPTY,
    AffinityTerm,
    ClaimUse,
    EphemeralClaim,
    HostPort,
    TopologySpread,
    ephemeral_claim_name,
    pod_constraints,
)
from volcano_py.scheduler.model.kube.selectors import NOTHING, LabelSelector, Requirement, labels_selector
from volcano_py.scheduler.model.terms import selection_of

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
APP = {"labelSelector": {"matchLabels": {"app": "x"}}}
SELECTS_APP = labels_selector({"app": "x"})


def near(term: dict[str, Any], side: str = "podAffinity") -> dict[str, Any]:
    return {side: {REQUIRED: [{"topologyKey": "zone", **term}]}}


def only_term(made: Pod) -> AffinityTerm:
    (term,) = pod_constraints(made).inter_pod.affinity
    return term


def spread(**changes: Any) -> dict[str, Any]:
    base = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **APP}
    return {**base, **changes}


def only_spread(made: Pod) -> TopologySpread:
    (found,) = pod_constraints(made).spread
    return found


def test_plain_pods_share_the_empty_value() -> None:
    assert pod_constraints(pod(asking(cpu=1), name="a", labels={"x": "y"})) is EMPTY
    assert pod_constraints(pod(nodeName="n1", schedulerName="volcano", priority=3)) is EMPTY
    assert (
        pod_constraints(pod({"ports": [{"containerPort": 80}]}, volumes=[{"name": "v", "hostPath": {}}]))
        is EMPTY
    )
    assert not EMPTY.has_coupling


def test_equal_pods_share_one_instance_and_amounts_do_not_matter() -> None:
    wishes: dict[str, Any] = {"nodeSelector": {"a": "b", "c": "d"}, "tolerations": [{"operator": "Exists"}]}
    other: dict[str, Any] = {
        "nodeSelector": {"c": "d", "a": "b"},
        "tolerations": [{"operator": "Exists"}] * 2,
    }
    first = pod_constraints(pod(asking(cpu=1), name="a", **wishes))
    assert first is pod_constraints(pod(asking(cpu=2), name="b", labels={"own": "label"}, **other))
    assert first != EMPTY
    assert not first.has_coupling


def test_node_selection() -> None:
    terms = [{"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["4"]}]}]
    made = pod(
        nodeSelector={"zone": "a"}, affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    )
    constraints = pod_constraints(made)
    assert constraints.selects_node({"zone": "a", "cores": "8"}, "n")
    assert not constraints.selects_node({"zone": "b", "cores": "8"}, "n")
    assert not constraints.selects_node({"zone": "a", "cores": "4"}, "n")
    assert EMPTY.selects_node({}, "n")


def test_required_node_affinity_without_terms_selects_no_node() -> None:
    made = pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}})
    assert not pod_constraints(made).selects_node({"a": "b"}, "n")


def test_node_wishes_add_up_and_empty_ones_are_none() -> None:
    wish = {"weight": 5, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
    made = pod(affinity={"nodeAffinity": {PREFERRED: [wish, {"weight": 9, "preference": {}}, wish]}})
    assert [it.weight for it in pod_constraints(made).node_preferences] == [5, 5]


@pytest.mark.parametrize(
    ("term", "namespaces", "selects"),
    [
        pytest.param({}, {"ns"}, None, id="nothing named: the pod's own"),
        pytest.param({"namespaces": ["a", "b"]}, {"a", "b"}, None, id="named"),
        pytest.param({"namespaceSelector": {}}, set(), LabelSelector(), id="empty selector: all"),
        pytest.param(
            {"namespaces": ["a"], "namespaceSelector": {"matchLabels": {"app": "x"}}},
            {"a"},
            SELECTS_APP,
            id="both",
        ),
    ],
)
def test_namespaces_of_affinity(
    term: dict[str, Any], namespaces: set[str], selects: LabelSelector | None
) -> None:
    found = only_term(pod(affinity=near({**APP, **term})))
    assert found == AffinityTerm("zone", frozenset(namespaces), selects, SELECTS_APP)


def test_which_pods_an_affinity_means() -> None:
    both = {"namespaces": ["a"], "namespaceSelector": {"matchLabels": {"team": "t"}}, **APP}
    term = selection_of(only_term(pod(affinity=near(both))))
    assert term.matches("a", {}, {"app": "x"})
    assert term.matches("b", {"team": "t"}, {"app": "x"})
    assert not term.matches("b", {"team": "u"}, {"app": "x"})
    assert not term.matches("a", {}, {"app": "y"})
    own = selection_of(only_term(pod(affinity=near(APP))))
    assert own.matches("ns", {}, {"app": "x"})
    assert not own.matches("other", {"any": "label"}, {"app": "x"})


def test_own_labels_complete_selectors() -> None:
    keys = {"matchLabelKeys": ["hash", "absent"], "mismatchLabelKeys": ["tenant", "gone"], **APP}
    term = only_term(pod(affinity=near(keys), labels={"hash": "1", "tenant": "t"}))
    merged = SELECTS_APP.also([Requirement("hash", "In", ("1",)), Requirement("tenant", "NotIn", ("t",))])
    assert term.selector == merged
    assert term != only_term(pod(affinity=near(keys), labels={"hash": "2", "tenant": "t"}))
    found = only_spread(
        pod(topologySpreadConstraints=[spread(matchLabelKeys=["hash"])], labels={"hash": "1"})
    )
    assert found.selector == SELECTS_APP.also([Requirement("hash", "In", ("1",))])


def test_terms_and_claims_have_one_order() -> None:
    names = [f"k{number}" for number in range(9)]
    terms = [{"topologyKey": name, **APP} for name in reversed(names)]
    volumes = [{"name": name, "ephemeral": {}} for name in reversed(names)]
    made = pod_constraints(pod(affinity={"podAffinity": {REQUIRED: terms}}, volumes=volumes))
    assert [term.topology_key for term in made.inter_pod.affinity] == names
    assert [claim.volume for claim in made.claims.ephemeral] == names


def test_completing_again_what_the_server_completed_changes_nothing() -> None:
    written = {
        "matchLabels": {"app": "x"},
        "matchExpressions": [{"key": "hash", "operator": "In", "values": ["1"]}],
    }
    labels = {"hash": "1"}
    again = pod(affinity=near({"labelSelector": written, "matchLabelKeys": ["hash"]}), labels=labels)
    assert pod_constraints(again) == pod_constraints(
        pod(affinity=near({"labelSelector": written}), labels=labels)
    )


def test_a_missing_selector_means_no_pod() -> None:
    assert only_term(pod(affinity=near({}))).selector == NOTHING
    assert only_spread(pod(topologySpreadConstraints=[spread(labelSelector=None)])).selector == NOTHING


def test_wishes_to_be_away_weigh_negative() -> None:
    wish = {"weight": 7, "podAffinityTerm": {"topologyKey": "zone", **APP}}
    affinity = {
        "podAffinity": {PREFERRED: [wish]},
        "podAntiAffinity": {PREFERRED: [wish], **near(APP)["podAffinity"]},
    }
    constraints = pod_constraints(pod(affinity=affinity))
    assert [it.weight for it in constraints.inter_pod.preferred] == [-7, 7]
    assert len(constraints.inter_pod.anti_affinity) == 1
    assert constraints.inter_pod.affinity == ()
    assert constraints.has_coupling


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, TopologySpread("zone", 1, True, SELECTS_APP)),
        ({"maxSkew": 3, "minDomains": 2}, TopologySpread("zone", 3, True, SELECTS_APP, min_domains=2)),
        ({"whenUnsatisfiable": "ScheduleAnyway"}, TopologySpread("zone", 1, False, SELECTS_APP)),
        (
            {"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"},
            TopologySpread("zone", 1, True, SELECTS_APP, honor_affinity=False, honor_taints=True),
        ),
        (
            {"nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore"},
            TopologySpread("zone", 1, True, SELECTS_APP),
        ),
    ],
)
def test_topology_spread(changes: dict[str, Any], expected: TopologySpread) -> None:
    made = pod(topologySpreadConstraints=[spread(**changes)])
    assert only_spread(made) == msgspec.structs.replace(expected, namespace="ns")
    assert pod_constraints(made).has_coupling


def test_host_ports() -> None:
    ports = [
        {"containerPort": 80},
        {"containerPort": 81, "hostPort": 8081, "protocol": "UDP", "hostIP": "10.0.0.1"},
    ]
    side = {"restartPolicy": "Always", "ports": [{"hostPort": 9}]}
    init = {"ports": [{"hostPort": 10}]}
    constraints = pod_constraints(pod({"ports": ports}, initContainers=[side, init]))
    assert constraints.host_ports == (HostPort("0.0.0.0", "TCP", 9), HostPort("10.0.0.1", "UDP", 8081))
    assert constraints.has_coupling
    assert len(pod_constraints(pod({"ports": ports}, hostNetwork=True)).host_ports) == 2


@pytest.mark.parametrize(
    ("other", "conflicts"),
    [
        (HostPort("10.0.0.1", "TCP", 80), True),
        (HostPort("0.0.0.0", "TCP", 80), True),
        (HostPort("10.0.0.2", "TCP", 80), False),
        (HostPort("10.0.0.1", "UDP", 80), False),
        (HostPort("10.0.0.1", "TCP", 81), False),
    ],
)
def test_port_conflicts(other: HostPort, conflicts: bool) -> None:
    one = HostPort("10.0.0.1", "TCP", 80)
    assert one.conflicts(other) is conflicts
    assert other.conflicts(one) is conflicts


def test_claims() -> None:
    template = {"spec": {"accessModes": ["B", "A"], "resources": {"requests": {"storage": "1Ki"}}}}
    volumes = [
        {"name": "v", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
        {"name": "w", "persistentVolumeClaim": {"claimName": "both", "readOnly": True}},
        {"name": "x", "persistentVolumeClaim": {"claimName": "both"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}},
        {"name": "config", "configMap": {"name": "c"}},
    ]
    constraints = pod_constraints(pod(volumes=volumes))
    assert constraints.claims.named == (ClaimUse("ns", "both"), ClaimUse("ns", "data", read_only=True))
    assert constraints.claims.ephemeral == (EphemeralClaim("scratch", None, ("A", "B"), 1024),)
    assert constraints.has_coupling
    assert ephemeral_claim_name("p", "scratch") == "p-scratch"
    assert constraints is pod_constraints(pod(volumes=volumes[::-1], name="other"))


def test_images_have_tags_and_repeat() -> None:
    images = ["b", "r.io:5000/a", "b:latest", "c@sha256:1", "d:v1"]
    constraints = pod_constraints(pod(*({"image": image} for image in images)))
    assert constraints.images == ("b:latest", "b:latest", "c@sha256:1", "d:v1", "r.io:5000/a:latest")
    assert not constraints.has_coupling


def test_device_claims() -> None:
    assert pod_constraints(pod(resourceClaims=[{"name": "gpu"}])).device_claims


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (
            {"tolerations": [{"operator": "Exists"}, {"key": "a", "operator": "Has"}]},
            "spec.tolerations[1].operator",
        ),
        ({"affinity": near({"topologyKey": ""})}, f"spec.affinity.podAffinity.{REQUIRED}[0].topologyKey"),
        (
            {
                "affinity": near(
                    {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
                    "podAntiAffinity",
                )
            },
            f"spec.affinity.podAntiAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].operator",
        ),
        (
            {
                "affinity": {
                    "podAffinity": {PREFERRED: [{"weight": 0, "podAffinityTerm": {"topologyKey": "z"}}]}
                }
            },
            f"spec.affinity.podAffinity.{PREFERRED}[0].weight",
        ),
        (
            {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 101}]}}},
            f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight",
        ),
        (
            {
                "affinity": {
                    "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a"}]}]}}
                }
            },
            f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].operator",
        ),
        ({"topologySpreadConstraints": [spread(maxSkew=0)]}, "spec.topologySpreadConstraints[0].maxSkew"),
        (
            {"topologySpreadConstraints": [spread(topologyKey="")]},
            "spec.topologySpreadConstraints[0].topologyKey",
        ),
        (
            {"topologySpreadConstraints": [spread(whenUnsatisfiable="Never")]},
            "spec.topologySpreadConstraints[0].whenUnsatisfiable",
        ),
        (
            {"topologySpreadConstraints": [spread(minDomains=0)]},
            "spec.topologySpreadConstraints[0].minDomains",
        ),
        (
            {"topologySpreadConstraints": [spread(minDomains=2, whenUnsatisfiable="ScheduleAnyway")]},
            "spec.topologySpreadConstraints[0].minDomains",
        ),
        (
            {"topologySpreadConstraints": [spread(nodeTaintsPolicy="Maybe")]},
            "spec.topologySpreadConstraints[0].nodeTaintsPolicy",
        ),
        (
            {
                "volumes": [
                    {
                        "name": "v",
                        "ephemeral": {
                            "volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": 10**30}}}}
                        },
                    }
                ]
            },
            "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests.storage",
        ),
    ],
)
def test_bad_specs_name_their_field(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(ObjectError) as caught:
        pod_constraints(pod(**spec))
    assert [problem.field for problem in caught.value.problems] == [field]
