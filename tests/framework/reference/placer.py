"""A placer that is slow and plain: one pod at a time, every node, every check, every score.

It reads manifests and knows nothing of classes, ladders, columns or views. Filters and relative scores
between pods come from the plain twins in ``tests.plugins.reference``; amounts, volumes, cards, scores by
amounts, gangs and the order of things stand here. Scores are added in the order in which the engine's
configuration lists them (those of a node alone first), so that equal sums are equal floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from tests.framework.reference.cards import CardShelf, Share, ask_of
from tests.framework.reference.clusters import GROUP, PRIORITIES, Scene
from tests.plugins.reference import Cluster, name, node_affinity, node_term_holds, spreads

Document = dict[str, Any]
_UNITS = {"Gi": 2**30, "Mi": 2**20}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class Weights:
    """What the configuration says of scores."""

    binpack: int = 1
    binpack_cpu: int = 1
    binpack_memory: int = 1
    least: int = 1
    most: int = 0
    balanced: int = 1
    node_affinity: int = 2
    pod_affinity: int = 2
    taints: int = 3
    spread: int = 2
    cards: str = ""
    card_weight: int = 1

    def config(self, actions: str = "allocate") -> Document:
        """The configuration file."""
        nodeorder = {
            "leastrequested": self.least,
            "mostrequested": self.most,
            "balancedresource": self.balanced,
            "nodeaffinity": self.node_affinity,
            "podaffinity": self.pod_affinity,
            "tainttoleration": self.taints,
            "podtopologyspread": self.spread,
        }
        binpack = {
            "binpack.weight": self.binpack,
            "binpack.cpu": self.binpack_cpu,
            "binpack.memory": self.binpack_memory,
        }
        cards: Document = {"deviceshare.ScheduleWeight": self.card_weight}
        if self.cards:
            cards["deviceshare.SchedulePolicy"] = self.cards
        second = [
            {"name": "predicates"},
            {"name": "nodeorder", "arguments": {f"{key}.weight": value for key, value in nodeorder.items()}},
            {"name": "binpack", "arguments": binpack},
            {"name": "deviceshare", "arguments": cards},
        ]
        first = [{"name": "priority"}, {"name": "gang"}]
        return {"actions": actions, "tiers": [{"plugins": first}, {"plugins": second}]}


def base(resource: str, text: str) -> int:
    """Exact base units: milli-CPU, bytes, milli of everything else."""
    for suffix, unit in _UNITS.items():
        if text.endswith(suffix):
            return int(text.removesuffix(suffix)) * unit
    if text.endswith("m"):
        return int(text.removesuffix("m"))
    return int(text) * (1 if resource == "memory" else 1000)


def asked(pod: Document) -> dict[str, int]:
    """What a node must have for *pod*; parts of cards are the cards' matter."""
    given = pod["spec"]["containers"][0].get("resources", {}).get("requests", {})
    found = {key: base(key, text) for key, text in given.items() if not key.startswith("nvidia.com/gpu")}
    if "nvidia.com/gpu" in given:
        found["nvidia.com/gpu"] = base("nvidia.com/gpu", given["nvidia.com/gpu"])
    return {**found, "pods": 1000}


def asks_nothing(pod: Document) -> bool:
    """Asks for no resource and no card."""
    return asked(pod).keys() == {"pods"} and ask_of(pod) is None


def scored(pod: Document) -> tuple[int, int]:
    """CPU and memory that scores count: a container that says nothing gets a little."""
    wanted = asked(pod)
    return wanted.get("cpu", 100), wanted.get("memory", 200 * 2**20)


@dataclass
class PlainPlacer:
    """See the module.

    Attributes:
        cluster: nodes and pods on them; grows as pods are placed.
        held: slices of cards in use.
    """

    scene: Scene
    weights: Weights
    cluster: Cluster = field(init=False)
    held: list[Share] = field(default_factory=list)
    chosen: dict[str, tuple[str, tuple[Share, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        spaces = {name(space): space["metadata"].get("labels", {}) for space in self.scene.spaces}
        nodes = sorted(self.scene.nodes, key=name)
        self.cluster = Cluster(nodes, list(self.scene.placed), spaces)
        self.others = {
            (doc["kind"], doc["metadata"].get("namespace", ""), name(doc)): doc for doc in self.scene.others
        }

    # -- gangs ----------------------------------------------------------------------------------

    def run(self) -> dict[str, tuple[str, tuple[Share, ...]]]:
        """Pod -> node and cards, of all that start in one cycle."""
        jobs = [Gang(group, self.scene.pending) for group in self.scene.groups]
        line = [job for job in jobs if len(job.waiting) >= job.least]
        while line:
            job = min(line, key=Gang.rank)
            line.remove(job)
            if self.attempt(job):
                line.append(job)
        return self.chosen

    def attempt(self, job: Gang) -> bool:
        """Place pods of *job* until it is whole, or nothing; whether more are worth trying.

        Each is tried in its turn; those that found no place are tried again in their order if others
        have been placed since. Pods that ask for nothing are left alone once the gang is whole without
        them: they are backfill's.
        """
        if job.placed >= job.least and job.waiting and asks_nothing(job.waiting[0]):
            return False
        mark = len(self.cluster.placed), len(self.held), dict(self.chosen), job.placed
        while job.has_more():
            pod = job.waiting.pop(0)
            if not self.place(pod):
                job.tried.append((pod, job.placed))
                continue
            job.placed += 1
            if job.placed >= job.least:
                return job.has_more()
        placed, held, self.chosen, job.placed = mark
        del self.cluster.placed[placed:], self.held[held:]
        return False

    # -- one pod --------------------------------------------------------------------------------

    def place(self, pod: Document) -> bool:
        """Place *pod* on the best node, ties by name; whether any takes it."""
        passing = self.passing(pod)
        if not passing:
            return False
        scores = self.scores(pod, passing)
        best = max(scores.values())
        chosen = next(node for node in passing if scores[name(node)] == best)
        shares: list[Share] = []
        ask = ask_of(pod)
        if ask is not None:
            found = CardShelf(chosen, self.held).choose(ask, self.weights.cards)
            assert found is not None
            shares = found
        self.held += shares
        self.cluster.placed.append({**pod, "spec": {**pod["spec"], "nodeName": name(chosen)}})
        self.chosen[key(pod)] = name(chosen), tuple(shares)
        return True

    def passing(self, pod: Document) -> list[Document]:
        """The nodes, in name order, that pass every check."""
        filters = self.cluster.filters(pod)
        return [
            node
            for node in self.cluster.nodes
            if all(name(node) in passed for passed in filters.values())
            and self.has_room(pod, node)
            and self.reaches_volumes(pod, node)
            and self.has_cards(pod, node)
        ]

    def has_room(self, pod: Document, node: Document) -> bool:
        """Exact whole numbers; what is not asked does not matter."""
        return all(
            self.used(node, resource) + amount <= self.size(node, resource)
            for resource, amount in asked(pod).items()
            if amount
        )

    def used(self, node: Document, resource: str) -> int:
        return sum(asked(other).get(resource, 0) for other in self.cluster.on(node))

    def size(self, node: Document, resource: str) -> int:
        return base(resource, node["status"]["allocatable"].get(resource, "0"))

    def reaches_volumes(self, pod: Document, node: Document) -> bool:
        space = pod["metadata"]["namespace"]
        for claim in claims(pod):
            found = self.others["PersistentVolumeClaim", space, claim]
            volume = self.others["PersistentVolume", "", found["spec"]["volumeName"]]
            reach = volume["spec"].get("nodeAffinity", {}).get("required")
            if reach is not None and not any(node_term_holds(t, node) for t in reach["nodeSelectorTerms"]):
                return False
            if found["spec"]["accessModes"] == ["ReadWriteOncePod"] and any(
                claim in claims(other) and other["metadata"]["namespace"] == space
                for other in self.cluster.placed
            ):
                return False
        return True

    def has_cards(self, pod: Document, node: Document) -> bool:
        ask = ask_of(pod)
        return ask is None or CardShelf(node, self.held).choose(ask, self.weights.cards) is not None

    # -- scores ---------------------------------------------------------------------------------

    def scores(self, pod: Document, passing: list[Document]) -> dict[str, float]:
        """Node -> sum of all scores over the nodes that passed."""
        weights = self.weights
        total: dict[str, float] = {}
        for node in passing:
            total[name(node)] = 0.0
            for score in self.local(pod, node):
                total[name(node)] += score
        relative: list[tuple[int, dict[str, int]]] = []
        if weights.node_affinity and node_affinity(pod).get(_PREFERRED):
            relative.append((weights.node_affinity, self.cluster.affinity_scores(pod, passing)))
        if weights.pod_affinity:
            relative.append((weights.pod_affinity, self.cluster.pod_affinity_scores(pod, passing)))
        if weights.taints and self.any_discouraging():
            relative.append((weights.taints, self.cluster.taint_scores(pod, passing)))
        if weights.spread and spreads(pod, "ScheduleAnyway"):
            relative.append((weights.spread, self.cluster.spread_scores(pod, passing)))
        for weight, found in relative:
            for place, score in found.items():
                total[place] += float(weight * score)
        return total

    def any_discouraging(self) -> bool:
        return any(
            taint["effect"] == "PreferNoSchedule"
            for node in self.cluster.nodes
            for taint in node["spec"].get("taints", [])
        )

    def local(self, pod: Document, node: Document) -> list[float]:
        """Scores of the node alone, in the order of the configuration."""
        found: list[float] = []
        weights = self.weights
        if weights.least:
            found.append(float(self.emptiness(pod, node) * weights.least))
        if weights.most:
            found.append(float(self.fullness(pod, node) * weights.most))
        if weights.balanced:
            found.append(self.balance(pod, node) * weights.balanced)
        if weights.binpack:
            found.append(self.binpack(pod, node))
        ask = ask_of(pod)
        if ask is not None and weights.cards and weights.card_weight:
            found.append(CardShelf(node, self.held).score(ask, weights.cards) * weights.card_weight)
        return found

    def _scored_sums(self, pod: Document, node: Document) -> list[tuple[int, int]]:
        sums = [scored(pod), *(scored(other) for other in self.cluster.on(node))]
        sizes = self.size(node, "cpu"), self.size(node, "memory")
        return [(sum(pair[i] for pair in sums), size) for i, size in enumerate(sizes)]

    def emptiness(self, pod: Document, node: Document) -> int:
        parts = [max(size - used, 0) * 100 // size for used, size in self._scored_sums(pod, node)]
        return sum(parts) // 2

    def fullness(self, pod: Document, node: Document) -> int:
        parts = [min(used, size) * 100 // size for used, size in self._scored_sums(pod, node)]
        return sum(parts) // 2

    def balance(self, pod: Document, node: Document) -> float:
        """100 less the standard deviation of the shares in use."""
        wanted = asked(pod)
        counted = ["cpu", "memory", *(["nvidia.com/gpu"] if "nvidia.com/gpu" in wanted else [])]
        if not any(wanted.get(resource) for resource in counted):
            return 0.0
        shares = [
            min((self.used(node, each) + wanted.get(each, 0)) / self.size(node, each), 1.0)
            for each in counted
            if self.size(node, each)
        ]
        if len(shares) == 2:
            deviation = (max(shares) - min(shares)) / 2.0
        else:
            mean = (shares[0] + shares[1] + shares[2]) / 3
            squares = [(share - mean) * (share - mean) for share in shares]
            deviation = math.sqrt((squares[0] + squares[1] + squares[2]) / 3)
        return float(math.floor((1.0 - deviation) * 100.0))

    def binpack(self, pod: Document, node: Document) -> float:
        """How full the node gets in what the pod asks."""
        wanted, weights = asked(pod), self.weights
        counted = [("cpu", weights.binpack_cpu), ("memory", weights.binpack_memory)]
        counted = [(resource, weight) for resource, weight in counted if weight and wanted.get(resource)]
        if not counted:
            return 0.0
        total = 0.0
        for resource, weight in counted:
            full = (self.used(node, resource) + wanted[resource]) / self.size(node, resource)
            total += full * weight
        return total * (weights.binpack * 100.0 / sum(weight for _, weight in counted))


class Gang:
    """A PodGroup and its pods that wait, in placement order."""

    def __init__(self, group: Document, pending: list[Document]) -> None:
        self.group = group
        self.least = int(group["spec"]["minMember"])
        self.placed = 0
        self.tried: list[tuple[Document, int]] = []
        space = group["metadata"]["namespace"]
        mine = [
            pod
            for pod in pending
            if pod["metadata"]["annotations"][GROUP] == name(group) and pod["metadata"]["namespace"] == space
        ]
        self.waiting = sorted(mine, key=self.pod_rank)

    def rank(self) -> tuple[object, ...]:
        """Priority, those that wait before whole ones, age, name."""
        priority = PRIORITIES[self.group["spec"]["priorityClassName"]]
        whole = self.placed >= self.least
        return (-priority, whole, self.group["metadata"]["creationTimestamp"], key(self.group))

    def has_more(self) -> bool:
        """Somebody has not been tried, or not since others were placed."""
        self.leave_to_backfill()
        if not self.waiting and any(placed < self.placed for _, placed in self.tried):
            self.waiting = [pod for pod, _ in self.tried]
            self.tried = []
            self.leave_to_backfill()
        return bool(self.waiting)

    def leave_to_backfill(self) -> None:
        """A whole gang places no more pods that ask for nothing: they have an action of their own."""
        if self.placed >= self.least:
            self.waiting = [pod for pod in self.waiting if not is_bare(pod)]

    @staticmethod
    def pod_rank(pod: Document) -> tuple[object, ...]:
        """Those that ask something first; priority, number at the name's end."""
        return is_bare(pod), -PRIORITIES[pod["spec"]["priorityClassName"]], int(name(pod).rsplit("-", 1)[1])


def is_bare(pod: Document) -> bool:
    """Asks for nothing but to be a pod."""
    return asked(pod) == {"pods": 1000}


def claims(pod: Document) -> list[str]:
    """Names of the claims that *pod* mounts."""
    return [each["persistentVolumeClaim"]["claimName"] for each in pod["spec"].get("volumes", [])]


def key(doc: Document) -> str:
    """Namespace and name."""
    return f"{doc['metadata']['namespace']}/{name(doc)}"
