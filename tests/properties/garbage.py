"""A sound little cluster, and ways to spoil one object of it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.clusters import Document, group, node, pod, queue

HUGE = (2**31, 2**53, 2**62, 2**63 - 1, 2**63, 2**70, -1, -(2**63), 1e308, float("nan"), float("inf"))
WORDS = (
    "",
    "²",
    "--5",
    "-1",
    "0",
    "9223372036854775807",
    "8Ei",
    "1e30",
    "1e-30",
    "NaN",
    "true",
    "n0",
    "a/b/c",
    "é\u0000\ud800",
    "x" * 3000,
    "{",
    "[]",
    ",,;:;,",
)
OTHERS: tuple[Any, ...] = (
    None,
    True,
    [],
    {},
    [None],
    [[]],
    {"": {}},
    {"cpu": {"cpu": 1}},
    ["a", 1],
    [{}],
    {"a": "b"},
)
NOTES = (
    "scheduling.k8s.io/group-name",
    "volcano.sh/preemptable",
    "volcano.sh/cooldown-time",
    "volcano.sh/task-spec",
    "volcano.sh/task-priority",
    "volcano.sh/job-version",
    "volcano-py.io/last-checkpoint",
    "hami.io/vgpu-devices-allocated",
    "hami.io/node-nvidia-register",
    "hami.io/gpu-scheduler-policy",
    "volcano.sh/node-vgpu-register",
    "volcano.sh/vgpu-ids-new",
    "nvidia.com/use-gputype",
    "nvidia.com/numa-bind",
)
AMOUNTS = ("cpu", "memory", "pods", "nvidia.com/gpu", "nvidia.com/gpumem", "hugepages-2Mi", "x.io/y", "")
_OF_AMOUNTS = ("requests", "limits", "allocatable", "min", "max")
_IDENTITY = ("kind", "apiVersion", "name", "namespace", "metadata")
ZONE = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def cluster() -> list[Document]:
    """Objects of every kind, all sound; names of gangs tell their queue."""
    cards = [
        {
            "id": f"c{at}",
            "index": at,
            "count": 4,
            "devmem": 8000,
            "devcore": 100,
            "type": "A100",
            "health": True,
        }
        for at in range(2)
    ]
    notes = {"hami.io/node-nvidia-register": json.dumps(cards)}
    made = [
        node("n0", labels={"zone": "z0"}, taints=[{"key": "k", "value": "v", "effect": "PreferNoSchedule"}]),
        node("n1", labels={"zone": "z1"}, annotations=notes, amounts={"nvidia.com/gpu": "8"}),
        node("n2", labels={"zone": "z1"}),
        queue("a", min={"cpu": "2"}, max={"cpu": "10"}),
        queue("b", 2, deserved={"cpu": "4"}),
        queue("default"),
        group("ga", 2, "a"),
        group("gb", 1, "b", priorityClassName="high", minResources={"cpu": "1"}),
        group("gc", 1, "default", minTaskMember={"ps": 1}),
        group("gr", 1, "b", "Running"),
        pod("gr-0", "gr", "2", on="n0"),
        pod("gr-1", "gr", "2", on="n1", requests={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}),
    ]
    made += [pod(f"ga-{i}", "ga", labels={"app": "x"}, affinity=affinity()) for i in range(3)]
    made += [pod(f"gb-{i}", "gb", topologySpreadConstraints=[spread()], volumes=[volume()]) for i in range(2)]
    asked = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2000"}
    marks = {"volcano.sh/task-spec": "ps", "volcano.sh/task-priority": "5"}
    made.append(pod("gc-0", "gc", requests=asked, annotations=marks, nodeSelector={"zone": "z1"}))
    return [*made, *others()]


def affinity() -> Document:
    """One of each kind."""
    test = {"key": "zone", "operator": "In", "values": ["z0", "z1"]}
    term = {"matchExpressions": [test]}
    return {
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [term]},
            PREFERRED: [{"weight": 5, "preference": term}],
        },
        "podAffinity": {PREFERRED: [{"weight": 3, "podAffinityTerm": ZONE}]},
        "podAntiAffinity": {REQUIRED: [{**ZONE, "topologyKey": "kubernetes.io/hostname"}]},
    }


def spread() -> Document:
    """A hard topology spread constraint."""
    selector = {"matchLabels": {"app": "y"}}
    rule = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {**rule, "labelSelector": selector, "minDomains": 1}


def volume() -> Document:
    """The use of a claim."""
    return {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}


def others() -> list[Document]:
    """A priority class, a namespace, a budget, and storage."""
    test = {"key": "zone", "operator": "Exists"}
    reach = {"required": {"nodeSelectorTerms": [{"matchExpressions": [test]}]}}
    kinds: list[tuple[str, str, Document]] = [
        ("scheduling.k8s.io/v1", "PriorityClass", {"value": 100}),
        ("v1", "Namespace", {}),
        ("policy/v1", "PodDisruptionBudget", {"spec": {"selector": {"matchLabels": {"app": "x"}}}}),
        (
            "storage.k8s.io/v1",
            "StorageClass",
            {"provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer"},
        ),
        ("storage.k8s.io/v1", "CSINode", {"spec": {"drivers": [{"name": "d", "allocatable": {"count": 3}}]}}),
        (
            "v1",
            "PersistentVolume",
            {
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteMany"],
                    "claimRef": {"namespace": "ml", "name": "c"},
                    "csi": {"driver": "d", "volumeHandle": "h"},
                    "nodeAffinity": reach,
                }
            },
        ),
        (
            "v1",
            "PersistentVolumeClaim",
            {
                "spec": {"accessModes": ["ReadWriteMany"], "volumeName": "pv", "storageClassName": ""},
                "status": {"phase": "Bound"},
            },
        ),
    ]
    names = {
        "PriorityClass": "high",
        "Namespace": "ml",
        "PersistentVolume": "pv",
        "PersistentVolumeClaim": "c",
    }
    spaced = ("PodDisruptionBudget", "PersistentVolumeClaim")
    return [
        {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": names.get(kind, "n0"), **({"namespace": "ml"} if kind in spaced else {})},
            **rest,
        }
        for version, kind, rest in kinds
    ]


def spoil(dice: Random, document: Document, *, identity: bool = False) -> Document:
    """*document* with one to three places spoiled; *identity*: its name and kind too."""
    spoiled = copy.deepcopy(document)
    for _ in range(dice.choice((1, 1, 2, 3))):
        _spoil_once(dice, spoiled, identity=identity)
    return spoiled


def _spoil_once(dice: Random, spoiled: Document, *, identity: bool) -> None:
    places = list(_places(spoiled))
    if dice.random() < 0.25:
        meta = spoiled.get("metadata")
        if isinstance(meta, dict):
            notes = meta.setdefault("annotations", {})
            if isinstance(notes, dict):
                notes[dice.choice(NOTES)] = junk(dice)
        return
    if dice.random() < 0.25:
        maps = [
            holder[at] for holder, at in places if at in ("requests", "limits", "allocatable", "min", "max")
        ]
        maps = [each for each in maps if isinstance(each, dict)]
        if maps:
            dice.choice(maps)[dice.choice(AMOUNTS)] = junk(dice)
            return
    holder, at = dice.choice(places)
    head = holder is spoiled or holder is spoiled.get("metadata")
    if head and at in _IDENTITY and not identity:
        return
    if dice.random() < 0.2:
        del holder[at]
    else:
        holder[at] = junk(dice)


def _places(holder: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in *holder*."""
    keys: Any = list(holder) if isinstance(holder, dict) else range(len(holder))
    for key in keys:
        yield holder, key
        if isinstance(holder[key], dict | list):
            yield from _places(holder[key])


def junk(dice: Random) -> Any:
    """Something that should not be there."""
    kinds: tuple[tuple[Any, ...], ...] = (HUGE, WORDS, OTHERS)
    return copy.deepcopy(dice.choice(dice.choice(kinds)))
