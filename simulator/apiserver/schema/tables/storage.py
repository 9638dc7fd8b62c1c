"""Rows of services, volumes and storage classes."""

from __future__ import annotations

from collections.abc import Iterable

from volcano_py.simulator.apiserver.schema.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Column,
    Document,
    at,
    count,
    field,
    joined,
    labels,
    text,
    wide,
)

_ACCESS = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _access(modes: Iterable[str]) -> str:
    given = set(modes)
    return joined(short for mode, short in _ACCESS.items() if mode in given)


def _phase(document: Document, now: float) -> str:
    if field(document, "metadata", "deletionTimestamp"):
        return "Terminating"
    return str(field(document, "status", "phase", default=""))


def _class(document: Document, now: float) -> str:
    annotations = field(document, "metadata", "annotations", default={})
    return str(annotations.get(_CLASS_ANNOTATION) or field(document, "spec", "storageClassName", default=""))


def _claimed(document: Document, now: float) -> str:
    # An unbound claim shows nothing of what it will get.
    return str(field(document, "status", "capacity", "storage", default="")) if _is_bound(document) else ""


def _claimed_access(document: Document, now: float) -> str:
    return _access(field(document, "status", "accessModes", default=())) if _is_bound(document) else ""


def _is_bound(claim: Document) -> bool:
    return bool(field(claim, "spec", "volumeName"))


def _claim(volume: Document, now: float) -> str:
    claim = field(volume, "spec", "claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _class_name(document: Document, now: float) -> str:
    annotations = field(document, "metadata", "annotations", default={})
    name = str(field(document, "metadata", "name"))
    return (
        f"{name} (default)" if any(annotations.get(key) == "true" for key in _DEFAULT_ANNOTATIONS) else name
    )


def _external(service: Document, now: float) -> str:
    chosen = field(service, "spec", "externalIPs", default=[])
    kind = field(service, "spec", "type", default="ClusterIP")
    if kind == "ExternalName":
        return str(field(service, "spec", "externalName", default=""))
    if kind == "LoadBalancer":
        given = field(service, "status", "loadBalancer", "ingress", default=())
        reached = [one.get("ip") or one.get("hostname", "") for one in given] + list(chosen)
        return joined(reached) or "<pending>"
    return joined(chosen) or NONE


def _ports(service: Document, now: float) -> str:
    def one(port: Document) -> str:
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port['port']}{node_port}/{port.get('protocol', 'TCP')}"

    return joined(one(port) for port in field(service, "spec", "ports", default=())) or NONE


def _tokens(driver: Document, now: float) -> str:
    requests = field(driver, "spec", "tokenRequests", default=())
    return joined(one.get("audience", "") for one in requests) or UNSET


def _modes(driver: Document, now: float) -> str:
    return joined(field(driver, "spec", "volumeLifecycleModes", default=()))


_VOLUME_MODE = wide("VolumeMode", text("spec", "volumeMode", default=UNSET))
_ATTRIBUTES_CLASS = Column("VolumeAttributesClass", text("spec", "volumeAttributesClassName", default=UNSET))

CLAIMS = [
    NAME,
    Column("Status", _phase),
    Column("Volume", text("spec", "volumeName")),
    Column("Capacity", _claimed),
    Column("Access Modes", _claimed_access),
    Column("StorageClass", _class),
    _ATTRIBUTES_CLASS,
    AGE,
    _VOLUME_MODE,
]
VOLUMES = [
    NAME,
    Column("Capacity", text("spec", "capacity", "storage")),
    Column("Access Modes", lambda volume, now: _access(field(volume, "spec", "accessModes", default=()))),
    Column("Reclaim Policy", text("spec", "persistentVolumeReclaimPolicy")),
    Column("Status", _phase),
    Column("Claim", _claim),
    Column("StorageClass", _class),
    _ATTRIBUTES_CLASS,
    Column("Reason", text("status", "reason")),
    AGE,
    _VOLUME_MODE,
]
CLASSES = [
    NAME._replace(cell=_class_name),
    Column("Provisioner", text("provisioner")),
    Column("ReclaimPolicy", text("reclaimPolicy", default="Delete")),
    Column("VolumeBindingMode", text("volumeBindingMode", default="Immediate")),
    Column("AllowVolumeExpansion", at("allowVolumeExpansion", default=False)),
    AGE,
]
CSI_NODES = [NAME, Column("Drivers", count("spec", "drivers"), "integer"), AGE]
CSI_DRIVERS = [
    NAME,
    Column("AttachRequired", at("spec", "attachRequired", default=True), "boolean"),
    Column("PodInfoOnMount", at("spec", "podInfoOnMount", default=False), "boolean"),
    Column("StorageCapacity", at("spec", "storageCapacity", default=False), "boolean"),
    Column("TokenRequests", _tokens),
    Column("RequiresRepublish", at("spec", "requiresRepublish", default=False), "boolean"),
    Column("Modes", _modes),
    AGE,
]
SERVICES = [
    NAME,
    Column("Type", text("spec", "type", default="ClusterIP")),
    Column("Cluster-IP", text("spec", "clusterIP", default=NONE)),
    Column("External-IP", _external),
    Column("Port(s)", _ports),
    AGE,
    wide("Selector", lambda service, now: labels(field(service, "spec", "selector"))),
]
