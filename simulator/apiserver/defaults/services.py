"""Services."""

from __future__ import annotations

from volcano_py.simulator.apiserver.status import Document


def default_service(service: Document) -> None:
    """Fill in a Service's defaults; addresses are not handed out."""
    spec = service.setdefault("spec", {})
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    service.setdefault("status", {}).setdefault("loadBalancer", {})
