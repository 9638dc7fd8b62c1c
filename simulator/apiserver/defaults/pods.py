"""Pods and pod templates."""

from __future__ import annotations

from typing import Any, Final

from volcano_py.simulator.apiserver.status import Document

_MODE: Final = 0o644
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")


def default_pod(pod: Document) -> None:
    """Fill in a Pod's defaults."""
    spec = pod.setdefault("spec", {})
    if isinstance(spec, dict):
        default_pod_spec(spec)
        spec.setdefault("enableServiceLinks", True)
    for condition in (pod.get("status") or {}).get("conditions") or ():
        condition.setdefault("lastProbeTime", None)
        condition.setdefault("lastTransitionTime", None)


def default_template(template: Any) -> None:
    """Fill in the defaults of a pod template."""
    if isinstance(template, dict):
        template.setdefault("metadata", {})
        spec = template.setdefault("spec", {})
        if isinstance(spec, dict):
            default_pod_spec(spec)


def default_pod_spec(spec: Document) -> None:
    """Fill in a PodSpec's defaults."""
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    for place in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(place) or ():
            _default_container(container, bool(spec.get("hostNetwork")))
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    if spec.get("serviceAccountName"):
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]


def _default_container(container: Document, host_network: bool) -> None:
    container.setdefault("resources", {})
    _requests_from_limits(container["resources"])
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", _pull_policy(str(container.get("image") or "")))
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host_network:
            port.setdefault("hostPort", port.get("containerPort"))
    for variable in container.get("env") or ():
        field = (variable.get("valueFrom") or {}).get("fieldRef")
        if field is not None:
            field.setdefault("apiVersion", "v1")
    for name in _PROBES:
        if container.get(name):
            _default_probe(container[name])


def _requests_from_limits(resources: Document) -> None:
    limits = resources.get("limits")
    if limits:
        requests = resources.setdefault("requests", {})
        for name, amount in limits.items():
            requests.setdefault(name, amount)


def _pull_policy(image: str) -> str:
    last = image.rpartition("/")[2]
    if "@" in image:
        return "IfNotPresent"
    tag = last.partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _default_probe(probe: Document) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    if probe.get("httpGet"):
        probe["httpGet"].setdefault("path", "/")
        probe["httpGet"].setdefault("scheme", "HTTP")


def _default_volume(volume: Document) -> None:
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        if volume.get(name) is not None:
            volume[name].setdefault("defaultMode", _MODE)
    if volume.get("hostPath") is not None:
        volume["hostPath"].setdefault("type", "")
    if set(volume) == {"name"}:
        volume["emptyDir"] = {}
    for source in (volume.get("projected") or {}).get("sources") or ():
        if source.get("serviceAccountToken") is not None:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
    ephemeral = volume.get("ephemeral")
    if ephemeral and ephemeral.get("volumeClaimTemplate"):
        ephemeral["volumeClaimTemplate"].setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
