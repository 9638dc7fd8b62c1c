"""Nodes, priority classes, disruption budgets, leases and quotas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from volcano_py.simulator.apiserver.schema.checks.causes import (
    at_least,
    each,
    forbidden,
    immutable,
    invalid,
    one_of,
    required,
    shown,
    unsupported,
)
from volcano_py.simulator.apiserver.schema.checks.names import (
    cidr_faults,
    label_value_faults,
    qualified_faults,
)
from volcano_py.simulator.apiserver.schema.checks.pods import EFFECTS
from volcano_py.simulator.apiserver.schema.checks.resources import (
    node_resource_faults,
    quota_faults,
    range_faults,
)
from volcano_py.simulator.apiserver.schema.checks.selectors import label_selector_faults
from volcano_py.simulator.apiserver.schema.kinds import Cause, Document

_MOST_PRIORITY = 10**9
_SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_SCOPES = frozenset(
    {
        "BestEffort",
        "CrossNamespacePodAffinity",
        "NotBestEffort",
        "NotTerminating",
        "PriorityClass",
        "Terminating",
        "VolumeAttributesClass",
    }
)
_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_PERCENT_RULE = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
    "used for validation is '[0-9]+%')"
)


def node_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """Taints, address ranges and amounts of a node."""
    spec, status = new.get("spec") or {}, new.get("status") or {}
    yield from _taint_faults(spec.get("taints") or ())
    for position, one in enumerate(
        spec.get("podCIDRs") or ([spec["podCIDR"]] if spec.get("podCIDR") else ())
    ):
        yield from each(f"spec.podCIDRs[{position}]", one, cidr_faults(one))
    for name in ("capacity", "allocatable"):
        yield from node_resource_faults(status.get(name) or {}, f"status.{name}")
    if old is not None:
        before = (old.get("spec") or {}).get("providerID")
        if before and spec.get("providerID") != before:
            yield forbidden(
                "spec.providerID", 'node updates may not change providerID except from "" to valid'
            )


def _taint_faults(taints: Any) -> Iterator[Cause]:
    pairs: set[tuple[str, str]] = set()
    for position, one in enumerate(taints):
        at = f"metadata.taints[{position}]"
        key, value, effect = one.get("key", ""), one.get("value", ""), one.get("effect", "")
        yield from each(f"{at}.key", key, qualified_faults(key))
        yield from each(f"{at}.value", value, label_value_faults(value))
        if not effect:
            yield required(f"{at}.effect")
        else:
            yield from one_of(f"{at}.effect", effect, EFFECTS)
        if (key, effect) in pairs:
            quoted = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": one.get("timeAdded")}
            detail = f"Duplicate value: {shown(quoted)}: taints must be unique by key and effect pair"
            yield Cause("FieldValueDuplicate", detail, at)
        pairs.add((key, effect))


def priority_class_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """A class's number is bounded, and never changes."""
    name, value = new["metadata"].get("name", ""), new.get("value", 0)
    policies = ("PreemptLowerPriority", "Never")
    if old is not None:
        if value != old.get("value", 0):
            yield forbidden("value", "may not be changed in an update.")
        policy = "preemptionPolicy"
        yield from immutable(policy, new.get(policy, policies[0]), old.get(policy, policies[0]))
        return
    if name.startswith("system-"):
        if _SYSTEM_CLASSES.get(name) != value:
            known = f"{name} is not a known system priority class"
            prefix = "priority class names with 'system-' prefix are reserved for system use only. error:"
            yield forbidden("metadata.name", f"{prefix} {known}")
    elif value > _MOST_PRIORITY:
        yield forbidden("value", f"maximum allowed value of a user defined priority is {_MOST_PRIORITY}")
    if (chosen := new.get("preemptionPolicy")) and chosen not in policies:
        yield unsupported("preemptionPolicy", chosen, policies)


def budget_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """A budget says one number, whole or in percent."""
    if subresource == "status":
        return
    spec = new.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        quoted = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        yield invalid("spec", quoted, "minAvailable and maxUnavailable cannot be both set")
    for name, value in (("minAvailable", least), ("maxUnavailable", most)):
        yield from amount_or_percent_faults(f"spec.{name}", value)
    policies = ("AlwaysAllow", "IfHealthyBudget")
    yield from one_of("spec.unhealthyPodEvictionPolicy", spec.get("unhealthyPodEvictionPolicy"), policies)
    yield from label_selector_faults(spec.get("selector"), "spec.selector")


def amount_or_percent_faults(field: str, value: int | str | None) -> Iterator[Cause]:
    """A count, or a share such as ``25%`` that is no more than the whole."""
    if isinstance(value, int):
        yield from at_least(field, value)
    elif isinstance(value, str):
        if not re.fullmatch(r"[0-9]+%", value):
            yield invalid(field, value, _PERCENT_RULE)
        elif int(value[:-1]) > 100:
            yield invalid(field, value, "must not be greater than 100%")


def lease_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """Numbers of a lease."""
    spec = new.get("spec") or {}
    length = spec.get("leaseDurationSeconds")
    if length is not None and length <= 0:
        yield invalid("spec.leaseDurationSeconds", length, "must be greater than 0")
    yield from at_least("spec.leaseTransitions", spec.get("leaseTransitions"))


def resource_quota_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """Which amounts a quota may limit."""
    spec = new.get("spec") or {}
    yield from quota_faults(spec.get("hard") or {}, "spec.hard")
    scopes = spec.get("scopes") or []
    if any(scope not in _SCOPES for scope in scopes):
        yield invalid("spec.scopes", scopes, "unsupported scope")
    if old is not None:
        yield from immutable("spec.scopes", scopes, (old.get("spec") or {}).get("scopes") or [])


def limit_range_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """Bounds of a LimitRange, in order."""
    for position, one in enumerate((new.get("spec") or {}).get("limits") or ()):
        at, kind = f"spec.limits[{position}]", one.get("type", "")
        yield from each(f"{at}.type", kind, qualified_faults(kind))
        if "/" not in kind and kind not in _LIMIT_TYPES:
            yield invalid(f"{at}.type", kind, "must be a standard limit type or fully qualified")
        bounds: Mapping[str, Mapping[str, str]] = {
            name: one[name] for name in ("min", "defaultRequest", "default", "max") if one.get(name)
        }
        yield from range_faults(bounds, at)


def event_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """An event stands in the namespace of what it is about; one with an event time is complete."""
    yield from _event_faults(new, old, new.get("involvedObject") or {}, "reportingComponent")


def new_event_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """An event of events.k8s.io, which has an event time."""
    yield from _event_faults(new, old, new.get("regarding") or {}, "reportingController")
    if old is None and not new.get("eventTime"):
        yield required("eventTime")
    if old is None and new.get("type") not in ("Normal", "Warning"):
        yield invalid("type", new.get("type", ""), f"has invalid value: {new.get('type', '')}")


def _event_faults(new: Document, old: Document | None, about: Document, reporter: str) -> Iterator[Cause]:
    namespace = about.get("namespace", "")
    # What belongs to no namespace has its events in this one.
    if new["metadata"].get("namespace", "default") != (namespace or "default"):
        yield invalid("involvedObject.namespace", namespace, "does not match event.namespace")
    if old is None and new.get("eventTime"):
        for name in (reporter, "reportingInstance", "action", "reason"):
            if not new.get(name):
                yield required("reportingController" if name == reporter else name)
