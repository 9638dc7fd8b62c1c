"""Pods and pod templates, when they are made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from volcano_py.simulator.apiserver.schema.checks.causes import (
    duplicate,
    each,
    forbidden,
    invalid,
    one_of,
    required,
    unsupported,
)
from volcano_py.simulator.apiserver.schema.checks.containers import PodParts, container_list_faults
from volcano_py.simulator.apiserver.schema.checks.names import (
    ip_faults,
    label_faults,
    label_value_faults,
    qualified_faults,
    subdomain_faults,
)
from volcano_py.simulator.apiserver.schema.checks.pod_updates import pod_update_faults, status_faults
from volcano_py.simulator.apiserver.schema.checks.selectors import (
    affinity_faults,
    label_map_faults,
    label_selector_faults,
)
from volcano_py.simulator.apiserver.schema.kinds import Cause, Document

Part = Mapping[str, Any]

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MOST_SECONDS = 2**31 - 1
# What names the thing that a volume is made of.
_VOLUME_NAMES = {
    "configMap": "name",
    "csi": "driver",
    "hostPath": "path",
    "persistentVolumeClaim": "claimName",
    "secret": "secretName",
}


def pod_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """Everything that is wrong with a pod, or with its change."""
    if old is None:
        yield from pod_spec_faults(new.get("spec") or {}, "spec")
    elif subresource == "status":
        yield from status_faults(new, old)
    elif subresource == "":
        yield from pod_update_faults(new, old)
        yield from toleration_faults((new.get("spec") or {}).get("tolerations") or (), "spec.tolerations")


def pod_spec_faults(spec: Part, field: str) -> Iterator[Cause]:
    """Everything that is wrong with a pod spec at *field*."""
    volumes = frozenset(one.get("name", "") for one in spec.get("volumes") or ())
    claims = tuple(one.get("name", "") for one in spec.get("resourceClaims") or ())
    parts = PodParts(volumes, claims, bool(spec.get("hostNetwork")))
    yield from _volume_faults(spec.get("volumes") or (), f"{field}.volumes")
    yield from container_list_faults(spec, field, parts)
    yield from one_of(f"{field}.restartPolicy", spec.get("restartPolicy"), ("Always", "OnFailure", "Never"))
    yield from one_of(f"{field}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES)
    yield from label_map_faults(spec.get("nodeSelector") or {}, f"{field}.nodeSelector")
    yield from _security_faults(spec.get("securityContext") or {}, f"{field}.securityContext")
    yield from affinity_faults(spec.get("affinity") or {}, f"{field}.affinity")
    yield from _name_faults(spec, field)
    yield from toleration_faults(spec.get("tolerations") or (), f"{field}.tolerations")
    yield from _alias_faults(spec.get("hostAliases") or (), f"{field}.hostAliases")
    yield from _readiness_faults(spec.get("readinessGates") or (), f"{field}.readinessGates")
    yield from _gate_faults(spec, field)
    yield from _spread_faults(
        spec.get("topologySpreadConstraints") or (), f"{field}.topologySpreadConstraints"
    )
    if (system := (spec.get("os") or {}).get("name")) is not None and system not in ("linux", "windows"):
        yield unsupported(f"{field}.os", system, ("linux", "windows"))


def _name_faults(spec: Part, field: str) -> Iterator[Cause]:
    for name in ("nodeName", "serviceAccountName", "priorityClassName", "runtimeClassName"):
        if value := spec.get(name):
            yield from each(f"{field}.{name}", value, subdomain_faults(value))
    for name in ("hostname", "subdomain"):
        if value := spec.get(name):
            yield from each(f"{field}.{name}", value, label_faults(value))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MOST_SECONDS:
        detail = f"must be between 1 and {_MOST_SECONDS}, inclusive"
        yield invalid(f"{field}.activeDeadlineSeconds", deadline, detail)
    for position, one in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        yield from each(f"{field}.dnsConfig.nameservers[{position}]", one, ip_faults(one))


def _volume_faults(volumes: Any, field: str) -> Iterator[Cause]:
    names: set[str] = set()
    for position, volume in enumerate(volumes):
        at = f"{field}[{position}]"
        name = volume.get("name", "")
        if not name:
            yield required(f"{at}.name")
        else:
            yield from each(f"{at}.name", name, label_faults(name))
        if name in names:
            yield duplicate(f"{at}.name", name)
        names.add(name)
        kinds = [key for key in volume if key != "name"]
        for extra in kinds[1:]:
            yield forbidden(f"{at}.{extra}", "may not specify more than 1 volume type")
        for kind in kinds[:1]:
            key = _VOLUME_NAMES.get(kind)
            if key and not volume[kind].get(key):
                yield required(f"{at}.{kind}.{key}")


def _security_faults(context: Part, field: str) -> Iterator[Cause]:
    for name in ("runAsUser", "runAsGroup", "fsGroup"):
        value = context.get(name)
        if value is not None and not 0 <= value <= _MOST_SECONDS:
            yield invalid(f"{field}.{name}", value, f"must be between 0 and {_MOST_SECONDS}, inclusive")


def toleration_faults(tolerations: Any, field: str) -> Iterator[Cause]:
    """What a pod tolerates."""
    for position, one in enumerate(tolerations):
        at = f"{field}[{position}]"
        key, operator, value = one.get("key", ""), one.get("operator", ""), one.get("value", "")
        if key:
            yield from each(f"{at}.key", key, qualified_faults(key))
        elif operator != "Exists":
            detail = (
                'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            )
            yield invalid(f"{at}.operator", operator, detail)
        if one.get("tolerationSeconds") is not None and one.get("effect") != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(f"{at}.effect", one.get("effect", ""), detail)
        if operator in ("", "Equal"):
            yield from each(f"{at}.operator", value, label_value_faults(value))
        elif operator == "Exists":
            if value:
                yield invalid(f"{at}.operator", value, "value must be empty when `operator` is 'Exists'")
        else:
            yield unsupported(f"{at}.operator", operator, ("Equal", "Exists"))
        yield from one_of(f"{at}.effect", one.get("effect") or None, EFFECTS)


def _alias_faults(aliases: Any, field: str) -> Iterator[Cause]:
    for position, one in enumerate(aliases):
        yield from each(f"{field}[{position}].ip", one.get("ip", ""), ip_faults(one.get("ip", "")))


def _readiness_faults(gates: Any, field: str) -> Iterator[Cause]:
    for position, one in enumerate(gates):
        kind = one.get("conditionType", "")
        yield from each(f"{field}[{position}].conditionType", kind, qualified_faults(kind))


def _gate_faults(spec: Part, field: str) -> Iterator[Cause]:
    names: set[str] = set()
    for position, one in enumerate(spec.get("schedulingGates") or ()):
        at, name = f"{field}.schedulingGates[{position}]", one.get("name", "")
        yield from each(at, name, qualified_faults(name))
        if name in names:
            yield duplicate(at, name)
        names.add(name)
    if names and spec.get("nodeName"):
        yield forbidden(f"{field}.nodeName", "cannot be set until all schedulingGates have been cleared")


def _spread_faults(constraints: Any, field: str) -> Iterator[Cause]:
    pairs = [(one.get("topologyKey", ""), one.get("whenUnsatisfiable", "")) for one in constraints]
    for position, one in enumerate(constraints):
        at = f"{field}[{position}]"
        yield from _one_spread_faults(one, at)
        if pairs[position] in pairs[position + 1 :]:
            yield duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{', '.join(pairs[position])}}}")


def _one_spread_faults(one: Part, at: str) -> Iterator[Cause]:
    if one.get("maxSkew", 0) <= 0:
        yield invalid(f"{at}.maxSkew", one.get("maxSkew", 0), "must be greater than zero")
    if key := one.get("topologyKey"):
        yield from each(f"{at}.topologyKey", key, qualified_faults(key))
    else:
        yield required(f"{at}.topologyKey", "can not be empty")
    action = one.get("whenUnsatisfiable", "")
    yield from one_of(f"{at}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
    if (least := one.get("minDomains")) is not None:
        if least <= 0:
            yield invalid(f"{at}.minDomains", least, "must be greater than zero")
        if action != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            yield invalid(f"{at}.minDomains", least, detail)
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        yield from one_of(f"{at}.{name}", one.get(name), ("Honor", "Ignore"))
    yield from label_selector_faults(one.get("labelSelector"), f"{at}.labelSelector")


def template_faults(template: Part, field: str, restart_policies: tuple[str, ...]) -> Iterator[Cause]:
    """A pod template at *field*, whose pods restart as one of *restart_policies* says."""
    spec = template.get("spec") or {}
    metadata = template.get("metadata") or {}
    yield from label_map_faults(metadata.get("labels") or {}, f"{field}.metadata.labels")
    yield from pod_spec_faults(spec, f"{field}.spec")
    policy = spec.get("restartPolicy") or None
    if policy in ("Always", "OnFailure", "Never"):
        yield from one_of(f"{field}.spec.restartPolicy", policy, restart_policies)
