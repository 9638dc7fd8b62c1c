"""What a new object gets from the server that is nobody's to own."""

from __future__ import annotations

from volcano_py.simulator.apiserver.pods import finish_new_pod
from volcano_py.simulator.apiserver.status import Document

_NAMESPACE_FINALIZER = "kubernetes"


def finish_new(bucket: str, document: Document) -> None:
    """Complete a new object, in place, after its creator's fields have been recorded."""
    match bucket:
        case "pods":
            finish_new_pod(document)
        case "namespaces":
            finalizers = document.setdefault("spec", {}).setdefault("finalizers", [])
            if _NAMESPACE_FINALIZER not in finalizers:
                finalizers.append(_NAMESPACE_FINALIZER)
        case "services":
            _finish_service(document.get("spec") or {})
        case "persistentvolumes":
            status = document.setdefault("status", {})
            status["lastPhaseTransitionTime"] = document["metadata"]["creationTimestamp"]


def _finish_service(spec: Document) -> None:
    """Addresses are not handed out here; what is said of them is consistent."""
    if spec.get("type") != "ExternalName":
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
