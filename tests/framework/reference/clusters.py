"""Random clusters with everything in play that decides where a pod may go: one description for both sides.

Amounts, labels, taints, cordons, cards, volumes, priorities, gangs, and pods that restrict nodes and each
other. Pods come in few kinds, so that classes hold more than one pod.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.plugins import random_clusters

Document = dict[str, Any]
GROUP = "scheduling.k8s.io/group-name"
REGISTER = "hami.io/node-nvidia-register"
PRIORITIES = {"low": 10, "high": 100}
SLOTS = 4


@dataclass
class Scene:
    """A cluster as manifests.

    Attributes:
        spaces, nodes: namespaces and nodes.
        placed: pods that run.
        groups: PodGroups; several pods each.
        pending: pods that wait.
        others: priority classes, claims and volumes.
    """

    spaces: list[Document]
    nodes: list[Document]
    placed: list[Document] = field(default_factory=list)
    groups: list[Document] = field(default_factory=list)
    pending: list[Document] = field(default_factory=list)
    others: list[Document] = field(default_factory=list)

    def documents(self) -> list[Document]:
        """All objects, in no meaningful order."""
        return [*self.spaces, *self.nodes, *self.others, *self.groups, *self.placed, *self.pending]


@dataclass(frozen=True)
class Mix:
    """How often what happens; 0 to 1."""

    wishes: float = 0.4
    cards: float = 0.3
    volumes: float = 0.2


def scene(dice: Random, mix: Mix | None = None, *, most_nodes: int = 8, most_pods: int = 20) -> Scene:
    """A random cluster."""
    mix = mix or Mix()
    made = Scene(random_clusters.namespaces(dice), nodes(dice, mix, most_nodes))
    made.others = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        for name, value in PRIORITIES.items()
    ]
    claims = storage(dice, made.nodes)
    made.others += claims
    names = [d["metadata"]["name"] for d in made.nodes]
    for number in range(dice.randint(0, most_pods // 2)):
        made.placed.append(stranger(dice, f"s{number}", dice.choice(names)))
    kinds = [kind(dice, mix) for _ in range(dice.randint(1, 5))]
    left = dice.randint(1, most_pods)
    number = 0
    while left > 0:
        size = min(left, dice.choice((1, 1, 2, 3, 5, 8)))
        add_gang(dice, made, f"g{number}", size, dice.sample(kinds, min(len(kinds), dice.randint(1, 3))))
        left, number = left - size, number + 1
    return made


def nodes(dice: Random, mix: Mix, most: int) -> list[Document]:
    """Between 3 and *most* nodes of few sizes."""
    made: list[Document] = []
    while len(made) < 3 or (len(made) < most and dice.random() < 0.75):
        plain = random_clusters.nodes(dice)[0]
        add_node(dice, made, plain, mix)
    return made


def add_node(dice: Random, made: list[Document], plain: Document, mix: Mix) -> None:
    """One more node, made from *plain*."""
    name = f"n{len(made)}"
    plain["metadata"]["name"] = name
    plain["metadata"]["labels"]["kubernetes.io/hostname"] = name
    if dice.random() < 0.5:
        plain["spec"] = {}
    amounts = {
        "cpu": dice.choice(("2", "4", "4", "7500m")),
        "memory": dice.choice(("4Gi", "8Gi", "8Gi", "12000Mi")),
        "pods": dice.choice(("3", "110", "110")),
    }
    if dice.random() < mix.cards * 1.5:
        cards = [card(dice, f"{name}-{at}") for at in range(dice.randint(1, 3))]
        plain["metadata"]["annotations"] = {REGISTER: json.dumps(cards)}
        amounts["nvidia.com/gpu"] = str(SLOTS * len(cards))
    plain["status"]["allocatable"] = amounts
    made.append(plain)


def card(dice: Random, uuid: str) -> Document:
    """One entry of a node's register."""
    return {
        "id": uuid,
        "index": int(uuid.rsplit("-", 1)[1]),
        "count": SLOTS,
        "devmem": dice.choice((8000, 8000, 16000)),
        "devcore": 100,
        "type": dice.choice(("NVIDIA-A100", "NVIDIA-T4")),
        "mode": "hami-core",
        "numa": 0,
        "health": dice.random() < 0.9,
    }


def stranger(dice: Random, name: str, on: str) -> Document:
    """A pod of another scheduler that runs on a node."""
    found = random_clusters.pod(dice, name, on)
    found["spec"]["schedulerName"] = "somebody"
    found["metadata"].pop("deletionTimestamp", None)
    found["metadata"].pop("annotations")
    found["spec"]["containers"][0]["resources"] = {"requests": request(dice)}
    return found


def request(dice: Random) -> dict[str, str]:
    """Amounts of a container; some say nothing."""
    wanted = {"cpu": dice.choice(("250m", "500m", "1", "2")), "memory": dice.choice(("512Mi", "1Gi", "3Gi"))}
    return {name: amount for name, amount in wanted.items() if dice.random() < 0.8}


def kind(dice: Random, mix: Mix) -> Document:
    """What pods of one kind have in common: labels and spec."""
    found = random_clusters.pod(dice, "kind")
    spec = found["spec"]
    if dice.random() > mix.wishes:
        spec = {"containers": [{"name": "c"}]}
    asked = request(dice)
    notes: dict[str, str] = {}
    if dice.random() < mix.cards:
        asked |= card_ask(dice)
        if dice.random() < 0.3:
            notes["nvidia.com/use-gputype"] = dice.choice(("A100", "T4"))
    spec["containers"][0]["resources"] = {"requests": asked, "limits": {}}
    if dice.random() < mix.volumes:
        spec["volumes"] = [
            {"name": "v", "persistentVolumeClaim": {"claimName": dice.choice(("c0", "c1", "c2"))}}
        ]
    return {"labels": found["metadata"]["labels"], "spec": spec, "notes": notes}


def card_ask(dice: Random) -> dict[str, str]:
    """Shares of cards: by memory, by percentage, exclusive or bare."""
    asked = {"nvidia.com/gpu": str(dice.choice((1, 1, 1, 2)))}
    memory = dice.choice(("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", ""))
    if memory:
        asked[memory] = str(
            dice.choice((2000, 4000, 9000)) if memory.endswith("mem") else dice.choice((25, 50))
        )
    if dice.random() < 0.5:
        asked["nvidia.com/gpucores"] = str(dice.choice((20, 50, 100)))
    return asked


def add_gang(dice: Random, made: Scene, name: str, size: int, kinds: list[Document]) -> None:
    """A PodGroup and its pods, of *kinds*."""
    space = dice.choice(random_clusters.SPACES)
    made.groups.append(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {
                "name": name,
                "namespace": space,
                "creationTimestamp": f"2026-01-01T00:00:0{dice.randint(0, 3)}Z",
            },
            "spec": {
                "minMember": dice.randint(1, size),
                "queue": "default",
                "priorityClassName": dice.choice(sorted(PRIORITIES)),
            },
            "status": {"phase": "Inqueue"},
        }
    )
    for number in range(size):
        made.pending.append(member(dice, name, space, number, dice.choice(kinds)))


def member(dice: Random, gang: str, space: str, number: int, of: Document) -> Document:
    """Pod *number* of *gang*, of a kind."""
    spec = json.loads(json.dumps(of["spec"]))
    spec |= {"schedulerName": "volcano-py", "priorityClassName": dice.choice(("low", "low", "high"))}
    meta = {
        "name": f"{gang}-{number}",
        "namespace": space,
        "labels": dict(of["labels"]),
        "annotations": {GROUP: gang, **of["notes"]},
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


def storage(dice: Random, machines: list[Document]) -> list[Document]:
    """Three bound claims a namespace, each with a volume that some nodes reach."""
    found: list[Document] = []
    for space in random_clusters.SPACES:
        for number in range(3):
            claim, volume = f"c{number}", f"{space}-v{number}"
            found.append(
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "metadata": {"name": claim, "namespace": space},
                    "spec": {
                        "accessModes": ["ReadWriteOncePod" if number == 0 else "ReadWriteMany"],
                        "volumeName": volume,
                        "storageClassName": "",
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                    "status": {"phase": "Bound"},
                }
            )
            found.append(volume_of(dice, machines, space, claim, volume))
    return found


def volume_of(dice: Random, machines: list[Document], space: str, claim: str, name: str) -> Document:
    """A volume bound to *claim*; most are reachable from some of the nodes only."""
    spec: Document = {
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": "",
        "claimRef": {"namespace": space, "name": claim},
        "csi": {"driver": "d", "volumeHandle": name},
    }
    if dice.random() < 0.7:
        hosts = [each["metadata"]["name"] for each in machines]
        values = dice.sample(hosts, dice.randint(1, len(hosts)))
        test = {"key": "kubernetes.io/hostname", "operator": "In", "values": values}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [test]}]}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"phase": "Bound"},
    }
