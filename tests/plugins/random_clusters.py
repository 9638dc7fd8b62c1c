"""Small random clusters in which pods restrict nodes and each other in every way."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

Document = dict[str, Any]
SPACES = ("a", "b")
KEYS = ("zone", "rack", "kubernetes.io/hostname")
APPS = ("x", "y", "z")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def namespaces(dice: Random) -> list[Document]:
    """Some of the namespaces, with labels."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space, "labels": _some(dice, TEAMS)}}
        for space in SPACES
        if dice.random() < 0.8
    ]


TEAMS = {"team": ("red", "blue")}
NODE_LABELS = {"zone": ("z1", "z2", "z3"), "rack": ("1", "2", "3", "12"), "disk": ("ssd", "hdd")}


def nodes(dice: Random) -> list[Document]:
    """Two to seven nodes; labels and taints may be missing."""
    made = []
    for number in range(dice.randint(2, 7)):
        name = f"n{number}"
        labels = {"kubernetes.io/hostname": name, **_some(dice, NODE_LABELS)}
        taints = [taint(dice) for _ in range(dice.choice((0, 0, 1, 2)))]
        spec: Document = {"taints": list({(t["key"], t["effect"]): t for t in taints}.values())}
        if dice.random() < 0.15:
            spec["unschedulable"] = True
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        made.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "spec": spec,
                "status": {"allocatable": amounts},
            }
        )
    return made


def pod(dice: Random, name: str, on: str = "") -> Document:
    """A pod with random constraints, running *on* a node or pending."""
    meta: Document = {
        "name": name,
        "namespace": dice.choice(SPACES),
        "labels": _some(dice, {"app": APPS, "tier": ("1", "2")}),
        "annotations": {"scheduling.k8s.io/group-name": name},
    }
    spec: Document = {"schedulerName": "volcano-py", "containers": [{"name": "c", **_ports(dice)}]}
    spec.update(_wishes(dice))
    status = {"phase": "Pending"}
    if on:
        spec["nodeName"], status = on, {"phase": "Running"}
        if dice.random() < 0.2:
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def taint(dice: Random) -> Document:
    """A taint of one of few kinds."""
    effect = dice.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    return {"key": dice.choice(("k", "l")), "value": dice.choice(("1", "2")), "effect": effect}


def _wishes(dice: Random) -> Document:
    spec: Document = {"tolerations": [_toleration(dice) for _ in range(dice.choice((0, 0, 1, 3)))]}
    if dice.random() < 0.2:
        spec["nodeSelector"] = _some(dice, NODE_LABELS)
    affinity: Document = {}
    if dice.random() < 0.4:
        affinity["nodeAffinity"] = _node_affinity(dice)
    for side in ("podAffinity", "podAntiAffinity"):
        if dice.random() < 0.5:
            terms = [_term(dice) for _ in range(dice.choice((0, 1, 1, 2)))]
            wishes = [{"weight": dice.randint(1, 100), "podAffinityTerm": _term(dice)} for _ in range(2)]
            affinity[side] = {_REQUIRED: terms, _PREFERRED: wishes[: dice.randint(0, 2)]}
    spec["affinity"] = affinity
    spec["topologySpreadConstraints"] = [_spread(dice) for _ in range(dice.choice((0, 1, 1, 2)))]
    return spec


def _node_affinity(dice: Random) -> Document:
    terms = [_node_term(dice) for _ in range(dice.randint(1, 2))]
    found: Document = {
        _PREFERRED: [{"weight": dice.randint(1, 100), "preference": _node_term(dice)} for _ in range(2)]
    }
    if dice.random() < 0.5:
        found[_REQUIRED] = {"nodeSelectorTerms": terms}
    return found


def _node_term(dice: Random) -> Document:
    tests = []
    for _ in range(dice.randint(0, 2)):
        key = dice.choice(("zone", "rack", "disk"))
        operator = dice.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        test: Document = {"key": key, "operator": operator}
        if operator in ("In", "NotIn"):
            test["values"] = dice.sample(NODE_LABELS[key], dice.randint(1, 2))
        elif operator in ("Gt", "Lt"):
            test["values"] = [dice.choice(("1", "2", "5"))]
        tests.append(test)
    term: Document = {"matchExpressions": tests}
    if dice.random() < 0.2:
        operator = dice.choice(("In", "NotIn"))
        names = [dice.choice(("n0", "n1", "gone"))]
        term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": names}]
    return term


def _term(dice: Random) -> Document:
    term: Document = {"topologyKey": dice.choice(KEYS), "labelSelector": _selector(dice)}
    if dice.random() < 0.3:
        term["namespaces"] = [dice.choice(SPACES)]
    if dice.random() < 0.3:
        term["namespaceSelector"] = {"matchLabels": _some(dice, TEAMS)}
    return term


def _spread(dice: Random) -> Document:
    kind = dice.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"))
    rule: Document = {
        "topologyKey": dice.choice(KEYS),
        "maxSkew": dice.randint(1, 2),
        "whenUnsatisfiable": kind,
        "labelSelector": _selector(dice),
        "nodeAffinityPolicy": dice.choice(("Honor", "Ignore")),
        "nodeTaintsPolicy": dice.choice(("Honor", "Ignore")),
    }
    if kind == "DoNotSchedule" and dice.random() < 0.3:
        rule["minDomains"] = dice.randint(1, 4)
    if dice.random() < 0.3:
        rule["matchLabelKeys"] = ["tier"]
    return rule


def _selector(dice: Random) -> Document:
    if dice.random() < 0.15:
        return {}
    if dice.random() < 0.5:
        return {"matchLabels": {"app": dice.choice(APPS)}}
    operator = dice.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    test: Document = {"key": "app", "operator": operator}
    if operator in ("In", "NotIn"):
        test["values"] = dice.sample(APPS, dice.randint(1, 2))
    return {"matchExpressions": [test]}


def _toleration(dice: Random) -> Document:
    if dice.random() < 0.2:
        return {"operator": "Exists"}
    found: Document = {"key": dice.choice(("k", "l", "node.kubernetes.io/unschedulable"))}
    if dice.random() < 0.5:
        found["operator"] = "Exists"
    else:
        found["value"] = dice.choice(("1", "2"))
    if dice.random() < 0.5:
        found["effect"] = dice.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    return found


def _ports(dice: Random) -> Document:
    ports = []
    for _ in range(dice.choice((0, 0, 1, 2))):
        port: Document = {"containerPort": 1, "hostPort": dice.choice((80, 81))}
        if dice.random() < 0.5:
            port["hostIP"] = dice.choice(("10.0.0.1", "10.0.0.2"))
        if dice.random() < 0.3:
            port["protocol"] = "UDP"
        ports.append(port)
    return {"ports": ports}


def _some(dice: Random, choices: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {key: dice.choice(values) for key, values in choices.items() if dice.random() < 0.75}
