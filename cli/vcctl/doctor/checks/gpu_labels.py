"""GPU nodes that the device plugin does not select: their cards are there and nobody hands them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from volcano_py.cli.vcctl.doctor.checks.device_plugins import plugin_of
from volcano_py.cli.vcctl.doctor.finding import Document, Evidence, Finding, labels_of, name_of
from volcano_py.scheduler.model.kube.constraints import PodConstraints
from volcano_py.scheduler.model.kube.errors import ObjectError
from volcano_py.scheduler.model.kube.objects import Pod, decode
from volcano_py.scheduler.model.kube.podspec import pod_constraints
from volcano_py.scheduler.model.kube.selectors import NODE_NAME_FIELD, Requirement

SIGNS: Final = (
    "nvidia.com/gpu.present",
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.count",
    "feature.node.kubernetes.io/pci-10de.present",
    "feature.node.kubernetes.io/pci-0302_10de.present",
    "feature.node.kubernetes.io/pci-0300_10de.present",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
)
"""Labels that say a node has an NVIDIA card, whoever put them there."""


@dataclass(frozen=True, slots=True)
class _Plugin:
    """A DaemonSet that hands out cards, and the nodes that it selects."""

    name: str
    reach: PodConstraints

    def lacking(self, labels: Mapping[str, str], node: str) -> list[Requirement]:
        """What *node* with *labels* does not meet; of the affinity's terms the one that lacks least."""
        missed = [test for test in self.reach.node_selector.requirements if not test.matches(labels)]
        wanted = self.reach.node_affinity
        if wanted is None or wanted.matches(labels, node):
            return missed
        named = {NODE_NAME_FIELD: node}
        terms = [
            [test for test in term.expressions if not test.matches(labels)]
            + [test for test in term.fields if not test.matches(named)]
            for term in wanted.terms
        ]
        return missed + min(terms, key=len, default=[])


def check(evidence: Evidence) -> Iterator[Finding]:
    """One finding a node that has cards and is selected by none of the device plugins."""
    plugins = []
    for each in evidence.of("DaemonSet"):
        if not plugin_of(_template(each)):
            continue
        try:
            plugins.append(_plugin(each))
        except ObjectError as error:
            why = f"which nodes it selects can't be read: {error}"
            yield Finding("warning", f"DaemonSet {name_of(each)}", why, _edit(name_of(each)))
            return
    yield from _left_out(evidence.of("Node"), plugins)


def _left_out(nodes: Iterable[Document], plugins: Sequence[_Plugin]) -> Iterator[Finding]:
    for node in nodes if plugins else ():
        name, labels = str(node["metadata"]["name"]), labels_of(node)
        sign = next((label for label in SIGNS if labels.get(label, "false") != "false"), None)
        if sign is None or any(plugin.reach.selects_node(labels, name) for plugin in plugins):
            continue
        yield _finding(name, labels, sign, plugins[0])


def _finding(node: str, labels: Mapping[str, str], sign: str, plugin: _Plugin) -> Finding:
    lacking = plugin.lacking(labels, node)
    wanted = ", ".join(map(_text, lacking)) or "no node at all"
    return Finding(
        "error",
        f"Node {node}",
        f"has cards (label {sign}) but is not what DaemonSet {plugin.name} selects: {wanted}",
        _fix(node, labels, plugin, lacking),
    )


def _fix(node: str, labels: Mapping[str, str], plugin: _Plugin, lacking: Iterable[Requirement]) -> str:
    """The labels with which *plugin* selects *node*, if labels can do that."""
    changes = {test.key: _value(test) for test in lacking}
    after = {key: value for key, value in {**labels, **changes}.items() if value is not None}
    if not plugin.reach.selects_node(after, node):
        return _edit(plugin.name)
    told = [f"{key}-" if value is None else f"{key}={value}" for key, value in changes.items()]
    return f"kubectl label node {node} {' '.join(told)} --overwrite"


def _edit(daemon_set: str) -> str:
    namespace, _, name = daemon_set.partition("/")
    return f"change the nodes that it selects: kubectl edit daemonset {name} -n {namespace}"


def _value(test: Requirement) -> str | None:
    """The value of a label that passes *test*; None: without the label it passes."""
    match test.operator:
        case "In":
            return test.values[0]
        case "Exists":
            return "true"
        case "Gt":
            return str(int(test.values[0]) + 1)
        case "Lt":
            return str(int(test.values[0]) - 1)
    return None


def _text(test: Requirement) -> str:
    """*test* as ``kubectl get -l`` spells it."""
    values = ",".join(test.values)
    match test.operator:
        case "In" if len(test.values) == 1:
            return f"{test.key}={values}"
        case "In" | "NotIn":
            return f"{test.key} {test.operator.lower()} ({values})"
        case "Exists":
            return test.key
        case "DoesNotExist":
            return f"!{test.key}"
    return f"{test.key}{'>' if test.operator == 'Gt' else '<'}{values}"


def _plugin(daemon_set: Document) -> _Plugin:
    """*daemon_set* with what its pods ask of nodes."""
    spec = _template(daemon_set)
    nodes = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    reach = {"nodeSelector": spec.get("nodeSelector") or {}, "affinity": {"nodeAffinity": nodes}}
    pod = decode({"apiVersion": "v1", "kind": "Pod", "metadata": daemon_set["metadata"], "spec": reach})
    assert isinstance(pod, Pod)
    return _Plugin(name_of(daemon_set), pod_constraints(pod))


def _template(daemon_set: Document) -> Mapping[str, Any]:
    spec = daemon_set.get("spec") or {}
    found: Mapping[str, Any] = (spec.get("template") or {}).get("spec") or {}
    return found
