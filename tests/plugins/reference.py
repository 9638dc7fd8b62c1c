"""Kube-scheduler's rules written down plainly: loops over manifests, nothing kept, nothing shared.

The slow twin of ``plugins/predicates`` and ``plugins/nodeorder``. It reads manifests only, never the
engine's compiled selectors, so that both would have to be wrong in the same way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

Document = dict[str, Any]
HOSTNAME = "kubernetes.io/hostname"
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def labels(doc: Document) -> dict[str, str]:
    found: dict[str, str] = doc["metadata"].get("labels", {})
    return found


def name(doc: Document) -> str:
    return str(doc["metadata"]["name"])


def expression_holds(test: Document, have: dict[str, str]) -> bool:
    value, operator, values = have.get(test["key"]), test["operator"], test.get("values", [])
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if value is None or not value.lstrip("-").isdigit():
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])


def selects(selector: Document | None, have: dict[str, str]) -> bool:
    if selector is None:
        return False
    pairs = selector.get("matchLabels", {}).items()
    return all(have.get(key) == value for key, value in pairs) and all(
        expression_holds(test, have) for test in selector.get("matchExpressions", [])
    )


def node_term_holds(term: Document, node: Document) -> bool:
    tests, fields = term.get("matchExpressions", []), term.get("matchFields", [])
    if not tests and not fields:
        return False
    return all(expression_holds(test, labels(node)) for test in tests) and all(
        expression_holds(test, {"metadata.name": name(node)}) for test in fields
    )


def node_affinity(pod: Document) -> Document:
    found: Document = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    return found


def node_wanted(pod: Document, node: Document) -> bool:
    have = labels(node)
    if any(have.get(key) != value for key, value in pod["spec"].get("nodeSelector", {}).items()):
        return False
    required = node_affinity(pod).get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(node_term_holds(term, node) for term in required["nodeSelectorTerms"])


def tolerates(toleration: Document, taint: Document) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("value", "") == taint.get("value", ""))


def untolerated(pod: Document, node: Document, effects: set[str]) -> list[Document]:
    taints = list(node["spec"].get("taints", []))
    if node["spec"].get("unschedulable"):
        taints.append(CORDON)
    wishes = pod["spec"].get("tolerations", [])
    return [
        taint
        for taint in taints
        if taint["effect"] in effects and not any(tolerates(wish, taint) for wish in wishes)
    ]


def host_ports(pod: Document) -> list[tuple[str, str, int]]:
    found = []
    for container in pod["spec"]["containers"]:
        for port in container.get("ports", []):
            if port.get("hostPort"):
                address = port.get("hostIP", "0.0.0.0")
                found.append((address, port.get("protocol", "TCP"), port["hostPort"]))
    return found


def ports_conflict(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    same_address = one[0] == other[0] or "0.0.0.0" in (one[0], other[0])
    return same_address and one[1:] == other[1:]


@dataclass
class Cluster:
    """Nodes, pods on them, and namespaces with their labels."""

    nodes: list[Document]
    placed: list[Document]
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)

    def on(self, node: Document) -> list[Document]:
        return [pod for pod in self.placed if pod["spec"]["nodeName"] == name(node)]

    def node_of(self, pod: Document) -> Document | None:
        return next((node for node in self.nodes if name(node) == pod["spec"]["nodeName"]), None)

    # -- filters --------------------------------------------------------------------------------

    def filters(self, pod: Document) -> dict[str, set[str]]:
        """Filter -> nodes that pass it."""
        judges = {
            "NodeUnschedulable": self.not_cordoned,
            "NodeAffinity": node_wanted,
            "TaintToleration": lambda p, n: not untolerated(p, n, {"NoSchedule", "NoExecute"}),
            "NodePorts": self.ports_free,
            "PodTopologySpread": self.spread_allows,
            "InterPodAffinity": self.near_enough,
            "InterPodAntiAffinity": self.away_enough,
            "ExistingPodsAntiAffinity": self.not_repelled,
        }
        return {
            check: {name(node) for node in self.nodes if judge(pod, node)} for check, judge in judges.items()
        }

    def not_cordoned(self, pod: Document, node: Document) -> bool:
        wishes = pod["spec"].get("tolerations", [])
        return not node["spec"].get("unschedulable") or any(tolerates(wish, CORDON) for wish in wishes)

    def ports_free(self, pod: Document, node: Document) -> bool:
        taken = [port for other in self.on(node) for port in host_ports(other)]
        return not any(ports_conflict(one, other) for one in host_ports(pod) for other in taken)

    def spread_allows(self, pod: Document, node: Document) -> bool:
        return all(self.skew_fits(rule, pod, node) for rule in spreads(pod, "DoNotSchedule"))

    def skew_fits(self, rule: Document, pod: Document, node: Document) -> bool:
        key = rule["topologyKey"]
        if key not in labels(node):
            return False
        counts = self.spread_counts(rule, pod, spreads(pod, "DoNotSchedule"))
        if not counts:
            return True
        least = min(counts.values()) if len(counts) >= rule.get("minDomains", 1) else 0
        own = 1 if selects(spread_selector(rule, pod), labels(pod)) else 0
        return bool(counts.get(labels(node)[key], 0) + own - least <= rule["maxSkew"])

    def spread_counts(self, rule: Document, pod: Document, rules: list[Document]) -> dict[str, int]:
        """Domain -> selected pods there, over the nodes that count."""
        counts: dict[str, int] = {}
        for node in self.nodes:
            if all(each["topologyKey"] in labels(node) for each in rules) and spread_counts_node(
                rule, pod, node
            ):
                value = labels(node)[rule["topologyKey"]]
                counts[value] = counts.get(value, 0) + self.spread_pods_on(rule, pod, node)
        return counts

    def spread_pods_on(self, rule: Document, pod: Document, node: Document) -> int:
        chosen = spread_selector(rule, pod)
        return sum(
            selects(chosen, labels(other))
            and other["metadata"]["namespace"] == pod["metadata"]["namespace"]
            and "deletionTimestamp" not in other["metadata"]
            for other in self.on(node)
        )

    def near_enough(self, pod: Document, node: Document) -> bool:
        terms = required(pod, "podAffinity")
        counts: dict[tuple[str, str], int] = {}
        for other in self.placed:
            where = self.node_of(other)
            if where is not None and all(self.selects_pod(term, pod, other) for term in terms):
                for term in terms:
                    if term["topologyKey"] in labels(where):
                        pair = (term["topologyKey"], labels(where)[term["topologyKey"]])
                        counts[pair] = counts.get(pair, 0) + 1
        if any(term["topologyKey"] not in labels(node) for term in terms):
            return False
        pairs = [(term["topologyKey"], labels(node)[term["topologyKey"]]) for term in terms]
        if all(pair in counts for pair in pairs):
            return True
        return not counts and all(self.selects_pod(term, pod, pod) for term in terms)

    def away_enough(self, pod: Document, node: Document) -> bool:
        return not any(
            self.selects_pod(term, pod, other) and self.same_domain(term["topologyKey"], node, other)
            for term in required(pod, "podAntiAffinity")
            for other in self.placed
        )

    def not_repelled(self, pod: Document, node: Document) -> bool:
        return not any(
            self.selects_pod(term, other, pod) and self.same_domain(term["topologyKey"], node, other)
            for other in self.placed
            for term in required(other, "podAntiAffinity")
        )

    def selects_pod(self, term: Document, owner: Document, other: Document) -> bool:
        """Whether *term* of *owner* means *other*."""
        named, chosen = term.get("namespaces", []), term.get("namespaceSelector")
        if not named and chosen is None:
            named = [owner["metadata"]["namespace"]]
        space = other["metadata"]["namespace"]
        have = {"kubernetes.io/metadata.name": space, **self.namespaces.get(space, {})}
        if space not in named and not selects(chosen, have):
            return False
        return selects(term.get("labelSelector"), labels(other))

    def same_domain(self, key: str, node: Document, other: Document) -> bool:
        where = self.node_of(other)
        if where is None or key not in labels(node) or key not in labels(where):
            return False
        return labels(node)[key] == labels(where)[key]

    # -- scores ---------------------------------------------------------------------------------

    def affinity_scores(self, pod: Document, nodes: list[Document]) -> dict[str, int]:
        raw = {}
        for node in nodes:
            wishes = node_affinity(pod).get("preferredDuringSchedulingIgnoredDuringExecution", [])
            raw[name(node)] = sum(w["weight"] for w in wishes if node_term_holds(w["preference"], node))
        return largest_best(raw)

    def taint_scores(self, pod: Document, nodes: list[Document]) -> dict[str, int]:
        raw = {name(node): len(untolerated(pod, node, {"PreferNoSchedule"})) for node in nodes}
        return {node: 100 - score for node, score in largest_best(raw).items()}

    def pod_affinity_scores(self, pod: Document, nodes: list[Document]) -> dict[str, int]:
        raw = {name(node): sum(self.liking(pod, node, other) for other in self.placed) for node in nodes}
        least, most = min(raw.values()), max(raw.values())
        if least == most:
            return dict.fromkeys(raw, 0)
        return {node: int(100.0 * ((score - least) / (most - least))) for node, score in raw.items()}

    def liking(self, pod: Document, node: Document, other: Document) -> int:
        total = 0
        for owner, target in ((pod, other), (other, pod)):
            for sign, side in ((1, "podAffinity"), (-1, "podAntiAffinity")):
                for wish in preferred(owner, side):
                    term = wish["podAffinityTerm"]
                    if self.selects_pod(term, owner, target) and self.same_domain(
                        term["topologyKey"], node, other
                    ):
                        total += sign * wish["weight"]
        for term in required(other, "podAffinity"):
            if self.selects_pod(term, other, pod) and self.same_domain(term["topologyKey"], node, other):
                total += 1
        return total

    def spread_scores(self, pod: Document, nodes: list[Document]) -> dict[str, int]:
        rules = spreads(pod, "ScheduleAnyway")
        known = [node for node in nodes if all(rule["topologyKey"] in labels(node) for rule in rules)]
        raw: dict[str, int] = {}
        for node in known:
            total = 0.0
            for rule in rules:
                key = rule["topologyKey"]
                if key == HOSTNAME:
                    count, size = self.spread_pods_on(rule, pod, node), len(known)
                else:
                    count = self.spread_counts(rule, pod, rules).get(labels(node)[key], 0)
                    size = len({labels(each)[key] for each in known})
                total += count * math.log(size + 2) + (rule["maxSkew"] - 1)
            raw[name(node)] = math.floor(total + 0.5)
        scores = {name(node): 0 for node in nodes}
        least, most = min(raw.values(), default=0), max(raw.values(), default=0)
        for place, score in raw.items():
            scores[place] = 100 if most == 0 else 100 * (most + least - score) // most
        return scores


def required(pod: Document, side: str) -> list[Document]:
    terms = pod["spec"].get("affinity", {}).get(side, {})
    found: list[Document] = terms.get("requiredDuringSchedulingIgnoredDuringExecution", [])
    return found


def preferred(pod: Document, side: str) -> list[Document]:
    terms = pod["spec"].get("affinity", {}).get(side, {})
    found: list[Document] = terms.get("preferredDuringSchedulingIgnoredDuringExecution", [])
    return found


def spreads(pod: Document, kind: str) -> list[Document]:
    rules = pod["spec"].get("topologySpreadConstraints", [])
    return [rule for rule in rules if rule["whenUnsatisfiable"] == kind]


def spread_selector(rule: Document, pod: Document) -> Document:
    """The selector with what ``matchLabelKeys`` add."""
    own = labels(pod)
    added = [
        {"key": key, "operator": "In", "values": [own[key]]}
        for key in rule.get("matchLabelKeys", [])
        if key in own
    ]
    chosen = rule["labelSelector"]
    return {**chosen, "matchExpressions": [*chosen.get("matchExpressions", []), *added]}


def spread_counts_node(rule: Document, pod: Document, node: Document) -> bool:
    if rule.get("nodeAffinityPolicy", "Honor") == "Honor" and not node_wanted(pod, node):
        return False
    honours = rule.get("nodeTaintsPolicy", "Ignore") == "Honor"
    return not (honours and untolerated(pod, node, {"NoSchedule", "NoExecute"}))


def largest_best(raw: dict[str, int]) -> dict[str, int]:
    most = max(raw.values(), default=0)
    return raw if most == 0 else {node: score * 100 // most for node, score in raw.items()}
