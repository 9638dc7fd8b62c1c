"""Two device plugins that report the same cards: each hands them out without knowing of the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from volcano_py.cli.vcctl.doctor.finding import Document, Evidence, Finding, annotations_of, some
from volcano_py.crds.cards.register import HAMI_REGISTER, VOLCANO_REGISTER
from volcano_py.crds.quantity import QuantityError, to_base

PLUGINS: Final = {
    "nvidia": ("nvidia/k8s-device-plugin", "nvidia-gpu-device-plugin", "nvidia-device-plugin"),
    "hami": ("hami",),
    "volcano-vgpu": ("volcano-vgpu-device-plugin", "volcano-device-plugin"),
}
"""Device plugin -> parts of its images."""
AGENT: Final = ["volcano-py", "agent"]
"""The command of ours; its image is named by who builds it."""
NAME: Final = "device-plugin"
"""In the name of a container that is one."""
FAMILIES: Final = {
    "nvidia.com": ("nvidia.com/gpu",),
    "volcano.sh": ("volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"),
}
"""Who reports -> resources that stand for the cards of a node."""
SHARED: Final = (HAMI_REGISTER, VOLCANO_REGISTER)
"""Annotations of a plugin that reports in both families on purpose."""
FIX: Final = (
    "keep one of them on that node, by a nodeSelector that leaves it out of the other's reach "
    "(kubectl get daemonsets -A)"
)


def check(evidence: Evidence) -> Iterator[Finding]:
    """One finding a node: two plugins' pods on it, or its cards under two names."""
    on_node = _plugins(evidence)
    for node in evidence.of("Node"):
        name = node["metadata"]["name"]
        found = on_node.get(name, {})
        if len(found) > 1:
            pods = [pod for plugin in sorted(found) for pod in found[plugin]]
            yield Finding(
                "error", f"Node {name}", f"{len(found)} device plugins run on it: {some(pods, 4)}", FIX
            )
        elif len(families := _families(node)) > 1 and not _on_purpose(node):
            told = ", ".join(f"{amount} {resource}" for resource, amount in families.items())
            yield Finding("error", f"Node {name}", f"reports its cards twice: {told}", FIX)


def _plugins(evidence: Evidence) -> Mapping[str, Mapping[str, list[str]]]:
    """Node -> device plugin -> its pods there."""
    found: dict[str, dict[str, list[str]]] = {}
    for pod in evidence.of("Pod"):
        spec, phase = pod.get("spec") or {}, (pod.get("status") or {}).get("phase")
        if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
            continue
        plugin = plugin_of(spec)
        if plugin:
            meta = pod["metadata"]
            of_node = found.setdefault(spec["nodeName"], {})
            of_node.setdefault(plugin, []).append(f"{meta['namespace']}/{meta['name']} ({plugin})")
    return found


def plugin_of(pod_spec: Mapping[str, Any]) -> str:
    """The GPU device plugin that a pod's spec runs, "" for none."""
    for container in pod_spec.get("containers") or []:
        if (container.get("command") or [])[:2] == AGENT:
            return AGENT[0]
        image = str(container.get("image", "")).partition("@")[0]
        for plugin, parts in PLUGINS.items():
            # HAMi's scheduler comes in the same image as its device plugin.
            named = plugin != "hami" or NAME in str(container.get("name", ""))
            if named and any(part in image for part in parts):
                return plugin
    return ""


def _families(node: Document) -> dict[str, str]:
    """The first resource of each family that *node* has some of."""
    amounts = (node.get("status") or {}).get("allocatable") or {}
    found = {}
    for resources in FAMILIES.values():
        for resource in resources:
            if _some(resource, amounts.get(resource)):
                found[resource] = str(amounts[resource])
                break
    return found


def _some(resource: str, amount: Any) -> bool:
    try:
        return amount is not None and to_base(resource, amount) > 0
    except QuantityError:
        return False


def _on_purpose(node: Document) -> bool:
    return all(key in annotations_of(node) for key in SHARED)
