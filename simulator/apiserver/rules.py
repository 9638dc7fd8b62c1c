"""What a write may touch, kind by kind: spec and status apart, generations, what only the server sets."""

from __future__ import annotations

from typing import Final

from volcano_py.simulator.apiserver.schema.kinds import ServedKind
from volcano_py.simulator.apiserver.status import Document

_WITH_GENERATION: Final = frozenset(
    [
        "pods",
        "replicationcontrollers",
        "deployments.apps",
        "replicasets.apps",
        "statefulsets.apps",
        "daemonsets.apps",
        "jobs.batch",
        "cronjobs.batch",
        "poddisruptionbudgets.policy",
        "ingresses.networking.k8s.io",
        "networkpolicies.networking.k8s.io",
        "endpointslices.discovery.k8s.io",
        "priorityclasses.scheduling.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    ]
)
_VERSION_NEEDED: Final = frozenset(
    [
        "customresourcedefinitions.apiextensions.k8s.io",
        "leases.coordination.k8s.io",
        "poddisruptionbudgets.policy",
        "runtimeclasses.node.k8s.io",
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    ]
)
"""Built-in kinds that nobody replaces without saying which version is meant."""
_BORN_BY_UPDATE: Final = frozenset(
    [
        "leases.coordination.k8s.io",
        "runtimeclasses.node.k8s.io",
        "endpoints",
        "events",
        "limitranges",
        "services",
        "clusterroles.rbac.authorization.k8s.io",
        "clusterrolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
    ]
)
"""Kinds whose PUT makes the object where there is none."""
_STATUS_AT_BIRTH: Final = frozenset(["nodes"])
"""Built-in kinds whose creator may say the status."""


def separates_status(kind: ServedKind) -> bool:
    """Whether spec and status are written by different requests."""
    return "status" in kind.subresources


def needs_version(kind: ServedKind) -> bool:
    """Whether a replacement has to name the version that it replaces."""
    return kind.custom or kind.bucket in _VERSION_NEEDED


def born_by_update(kind: ServedKind) -> bool:
    """Whether a replacement of what is not there makes it."""
    return kind.bucket in _BORN_BY_UPDATE


def prepare_create(kind: ServedKind, document: Document) -> None:
    """Take out of a new object what its creator can't say, before defaults are filled in."""
    if separates_status(kind) and kind.bucket not in _STATUS_AT_BIRTH:
        document.pop("status", None)
    if kind.custom or kind.bucket in _WITH_GENERATION:
        document["metadata"]["generation"] = 1


def prepare_update(kind: ServedKind, new: Document, old: Document, subresource: str) -> Document:
    """What an update amounts to: the parts of *new* that the request may change, the rest as it was."""
    if subresource == "status":
        return _status_update(kind, new, old)
    if separates_status(kind):
        _restore(new, old, "status")
    if kind.bucket == "namespaces" and subresource != "finalize":
        new.setdefault("spec", {})["finalizers"] = old.get("spec", {}).get("finalizers", [])
    if _has_generation(kind, old) and _body_differs(kind, new, old):
        new["metadata"]["generation"] = int(old["metadata"].get("generation") or 0) + 1
    return new


def _status_update(kind: ServedKind, new: Document, old: Document) -> Document:
    """Only the status; of a built-in object also labels, annotations and finalizers."""
    updated = dict(old)
    _restore(updated, new, "status")
    metadata = dict(new["metadata"])
    if kind.custom:
        metadata = dict(old["metadata"])
        _restore(metadata, new["metadata"], "managedFields")
    else:
        _restore(metadata, old["metadata"], "ownerReferences")
        if kind.bucket == "pods":
            _complete_pod_status(updated.setdefault("status", {}), old.get("status") or {})
    updated["metadata"] = metadata
    return updated


def _complete_pod_status(status: Document, old: Document) -> None:
    """The class never changes, and the one address is the first of all."""
    if not status.get("qosClass") and old.get("qosClass"):
        status["qosClass"] = old["qosClass"]
    if status.get("podIP") and not status.get("podIPs"):
        status["podIPs"] = [{"ip": status["podIP"]}]


def _restore(new: Document, old: Document, name: str) -> None:
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def _has_generation(kind: ServedKind, old: Document) -> bool:
    return kind.custom or kind.bucket in _WITH_GENERATION or bool(old["metadata"].get("generation"))


def _body_differs(kind: ServedKind, new: Document, old: Document) -> bool:
    apart = {"metadata", "status"} if separates_status(kind) else {"metadata"}
    return {name: value for name, value in new.items() if name not in apart} != {
        name: value for name, value in old.items() if name not in apart
    }
