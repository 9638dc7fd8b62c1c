"""ConfigMaps, secrets, services, volumes, storage classes and roles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from volcano_py.crds.quantity import parse_quantity
from volcano_py.simulator.apiserver.schema.checks.causes import (
    each,
    forbidden,
    immutable,
    invalid,
    one_of,
    required,
    unsupported,
)
from volcano_py.simulator.apiserver.schema.checks.containers import PROTOCOLS, port_number_faults
from volcano_py.simulator.apiserver.schema.checks.names import (
    config_key_faults,
    label_faults,
    port_name_faults,
    qualified_faults,
    subdomain_faults,
)
from volcano_py.simulator.apiserver.schema.checks.selectors import label_map_faults, node_selector_faults
from volcano_py.simulator.apiserver.schema.kinds import Cause, Document

Part = Mapping[str, Any]

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_VOLUME_MODES = ("Block", "Filesystem")
# What a volume says beside the kind of storage it stands for.
_NOT_A_SOURCE = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)
_RBAC = "rbac.authorization.k8s.io"


def config_map_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """Keys, each in one of the two maps."""
    plain, binary = new.get("data") or {}, new.get("binaryData") or {}
    for key in plain:
        yield from each(f"data[{key}]", key, config_key_faults(key))
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binary:
        yield from each(f"binaryData[{key}]", key, config_key_faults(key))
    yield from _frozen_faults(new, old, ("data", "binaryData"))


def secret_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """Keys, and a type that stays."""
    for key in new.get("data") or {}:
        yield from each(f"data[{key}]", key, config_key_faults(key))
    if old is not None:
        yield from immutable("type", new.get("type"), old.get("type"))
    yield from _frozen_faults(new, old, ("data",))


def _frozen_faults(new: Document, old: Document | None, fields: tuple[str, ...]) -> Iterator[Cause]:
    if old is None or not old.get("immutable"):
        return
    detail = "field is immutable when `immutable` is set"
    if not new.get("immutable"):
        yield forbidden("immutable", detail)
    for field in fields:
        if new.get(field) != old.get(field):
            yield forbidden(field, detail)


def service_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """Ports and type of a service."""
    spec = new.get("spec") or {}
    kind = spec.get("type") or "ClusterIP"
    ports = spec.get("ports") or ()
    if not ports and kind != "ExternalName" and spec.get("clusterIP") != "None":
        yield required("spec.ports")
    for position, port in enumerate(ports):
        yield from _service_port_faults(port, f"spec.ports[{position}]", named=len(ports) > 1)
    yield from label_map_faults(spec.get("selector") or {}, "spec.selector")
    yield from one_of("spec.type", kind, _SERVICE_TYPES)
    if old is not None:
        before = (old.get("spec") or {}).get("clusterIP")
        if before and spec.get("clusterIP") not in (None, "", before) and kind != "ExternalName":
            yield invalid("spec.clusterIPs[0]", [spec["clusterIP"]], "may not change once set")


def _service_port_faults(port: Part, at: str, *, named: bool) -> Iterator[Cause]:
    name = port.get("name", "")
    if named and not name:
        yield required(f"{at}.name")
    elif name:
        yield from each(f"{at}.name", name, label_faults(name))
    yield from port_number_faults(f"{at}.port", port.get("port", 0))
    yield from one_of(f"{at}.protocol", port.get("protocol"), PROTOCOLS)
    target = port.get("targetPort", port.get("port", 0))
    if isinstance(target, str):
        yield from each(f"{at}.targetPort", target, port_name_faults(target))
    else:
        yield from port_number_faults(f"{at}.targetPort", target)


def claim_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """What a claim asks of a volume."""
    spec = new.get("spec") or {}
    if subresource == "status":
        return
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    for mode in spec.get("accessModes") or ():
        yield from one_of("spec.accessModes", mode, _ACCESS_MODES)
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if asked is None:
        yield required("spec.resources[storage]")
    elif parse_quantity(asked) <= 0:
        yield invalid("spec.resources[storage]", asked, "must be greater than zero")
    if name := spec.get("storageClassName"):
        yield from each("spec.storageClassName", name, subdomain_faults(name))
    yield from one_of("spec.volumeMode", spec.get("volumeMode"), _VOLUME_MODES)
    if old is not None:
        yield from _claim_update_faults(spec, old.get("spec") or {})


def _claim_update_faults(spec: Part, before: Part) -> Iterator[Cause]:
    free = {"resources", "volumeAttributesClassName"}
    free |= set() if before.get("volumeName") else {"volumeName"}
    # A claim that named no class may be given one later, as the volume controller does.
    free |= set() if "storageClassName" in before or "storageClassName" not in spec else {"storageClassName"}
    if {k: v for k, v in spec.items() if k not in free} != {k: v for k, v in before.items() if k not in free}:
        free_ones = "resources.requests and volumeAttributesClassName for bound claims"
        detail = f"spec is immutable after creation except {free_ones}"
        yield forbidden("spec", detail)


def volume_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """What a volume offers."""
    if subresource == "status":
        return
    spec = new.get("spec") or {}
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    for mode in spec.get("accessModes") or ():
        yield from one_of("spec.accessModes", mode, _ACCESS_MODES)
    capacity = spec.get("capacity") or None
    if capacity is None:
        yield required("spec.capacity")
    if set(capacity or ()) != {"storage"}:
        yield unsupported("spec.capacity", capacity, ("storage",))
    policies = ("Delete", "Recycle", "Retain")
    yield from one_of(
        "spec.persistentVolumeReclaimPolicy", spec.get("persistentVolumeReclaimPolicy"), policies
    )
    if affinity := spec.get("nodeAffinity"):
        yield from node_selector_faults(affinity.get("required") or {}, "spec.nodeAffinity.required")
    if not set(spec) - _NOT_A_SOURCE:
        yield required("spec", "must specify a volume type")
    if name := spec.get("storageClassName"):
        yield from each("spec.storageClassName", name, subdomain_faults(name))
    yield from one_of("spec.volumeMode", spec.get("volumeMode"), _VOLUME_MODES)


def storage_class_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """Where volumes of a class come from."""
    provisioner = new.get("provisioner", "")
    if not provisioner:
        yield required("provisioner")
    else:
        lower = provisioner.lower()
        yield from each("provisioner", lower, qualified_faults(lower))
    yield from one_of("reclaimPolicy", new.get("reclaimPolicy"), ("Delete", "Retain"))
    yield from one_of(
        "volumeBindingMode", new.get("volumeBindingMode"), ("Immediate", "WaitForFirstConsumer")
    )
    if old is None:
        return
    for name in ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"):
        if new.get(name) != old.get(name):
            yield forbidden(name, f"updates to {name} are forbidden.")


def role_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """Rules of a role: verbs on resources, or on paths."""
    for position, one in enumerate(new.get("rules") or ()):
        at = f"rules[{position}]"
        if not one.get("verbs"):
            yield required(f"{at}.verbs", "verbs must contain at least one value")
        if one.get("nonResourceURLs"):
            continue
        if not one.get("apiGroups"):
            yield required(f"{at}.apiGroups", "resource rules must supply at least one api group")
        if not one.get("resources"):
            yield required(f"{at}.resources", "resource rules must supply at least one resource")


def cluster_binding_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """Whom a ClusterRoleBinding gives what."""
    return _binding_faults(new, old, ("ClusterRole",))


def binding_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """Whom a RoleBinding gives what."""
    return _binding_faults(new, old, ("Role", "ClusterRole"))


def _binding_faults(new: Document, old: Document | None, kinds: tuple[str, ...]) -> Iterator[Cause]:
    role = new.get("roleRef") or {}
    yield from one_of("roleRef.apiGroup", role.get("apiGroup", _RBAC), (_RBAC,))
    yield from one_of("roleRef.kind", role.get("kind", ""), kinds)
    if not role.get("name"):
        yield required("roleRef.name")
    for position, one in enumerate(new.get("subjects") or ()):
        at = f"subjects[{position}]"
        if not one.get("name"):
            yield required(f"{at}.name")
        yield from one_of(f"{at}.kind", one.get("kind", ""), ("ServiceAccount", "User", "Group"))
        if one.get("kind") == "ServiceAccount" and not one.get("namespace"):
            yield required(f"{at}.namespace")
    if old is not None and role != old.get("roleRef"):
        yield invalid("roleRef", role, "cannot change roleRef")
