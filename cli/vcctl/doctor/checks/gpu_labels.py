"""GPU nodes that the device plugin does not select: their cards are there and nobody hands them out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from volcano_py.cli.vcctl.doctor.checks.device_plugins import plugin_of
from volcano_py.cli.vcctl.doctor.finding import Document, Evidence, Finding, labels_of, name_of

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


def check(evidence: Evidence) -> Iterator[Finding]:
    """One finding a node that has cards and is selected by none of the device plugins."""
    selecting = [(name_of(ds), _selector(ds)) for ds in evidence.of("DaemonSet") if _is_plugin(ds)]
    if not selecting:
        return
    for node in evidence.of("Node"):
        labels = labels_of(node)
        sign = next((label for label in SIGNS if labels.get(label, "false") != "false"), None)
        if sign is None or any(_selects(selector, labels) for _, selector in selecting):
            continue
        name, selector = selecting[0]
        lacking = [f"{key}={value}" for key, value in selector.items() if labels.get(key) != value]
        yield Finding(
            "error",
            f"Node {node['metadata']['name']}",
            f"has cards (label {sign}) but not the label that DaemonSet {name} selects: {', '.join(lacking)}",
            f"kubectl label node {node['metadata']['name']} {' '.join(lacking)} --overwrite",
        )


def _template(daemon_set: Document) -> Mapping[str, Any]:
    spec = daemon_set.get("spec") or {}
    found: Mapping[str, Any] = (spec.get("template") or {}).get("spec") or {}
    return found


def _is_plugin(daemon_set: Document) -> bool:
    return bool(plugin_of(_template(daemon_set)))


def _selector(daemon_set: Document) -> Mapping[str, str]:
    return _template(daemon_set).get("nodeSelector") or {}


def _selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())
