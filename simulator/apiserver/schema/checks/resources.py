"""Amounts of resources: of containers, nodes and quotas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from volcano_py.crds.quantity import parse_quantity
from volcano_py.simulator.apiserver.schema.checks.causes import (
    duplicate,
    each,
    forbidden,
    invalid,
    not_found,
    required,
)
from volcano_py.simulator.apiserver.schema.checks.names import qualified_faults
from volcano_py.simulator.apiserver.schema.kinds import Cause

Amounts = Mapping[str, str]

_OF_CONTAINERS = frozenset({"cpu", "memory", "ephemeral-storage"})
_OF_QUOTAS = frozenset(
    {
        "configmaps",
        "cpu",
        "ephemeral-storage",
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "memory",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
        "requests.storage",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    }
)
_HUGE = ("hugepages-", "requests.hugepages-")
_NOT_STANDARD = "must be a standard resource type or fully qualified"


@lru_cache(maxsize=4096)
def _amount(text: str) -> Fraction:
    return parse_quantity(text)


def is_extended(name: str) -> bool:
    """A resource that a device plugin reports: domain-qualified and not Kubernetes' own."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def _is_overcommittable(name: str) -> bool:
    return not is_extended(name) and not name.startswith("hugepages-")


def amount_faults(name: str, text: str, field: str) -> Iterator[Cause]:
    """An amount must not be negative, and whole where the resource cannot be divided."""
    value = _amount(text)
    if value < 0:
        yield invalid(field, text, "must be greater than or equal to 0")
    elif (is_extended(name) or name in _COUNTED) and value.denominator != 1:
        yield invalid(field, text, "must be an integer")


_COUNTED = frozenset(
    {"pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"}
)


def container_resource_faults(
    resources: Mapping[str, Any], field: str, claims: Iterable[str]
) -> Iterator[Cause]:
    """What a container may ask for.

    Args:
        resources: Its ``resources``.
        field: Where they stand.
        claims: Names of the pod's resource claims.
    """
    limits: Amounts = resources.get("limits") or {}
    requests: Amounts = resources.get("requests") or {}
    for name, text in limits.items():
        yield from _named_faults(name, f"{field}.limits[{name}]")
        yield from amount_faults(name, text, f"{field}.limits[{name}]")
    for name, text in requests.items():
        yield from _named_faults(name, f"{field}.requests[{name}]")
        yield from amount_faults(name, text, f"{field}.requests[{name}]")
        yield from _limit_faults(name, text, limits.get(name), field)
    asked = {*limits, *requests}
    if any(name.startswith("hugepages-") for name in asked) and not asked & {"cpu", "memory"}:
        yield forbidden(field, "HugePages require cpu or memory")
    yield from _claim_faults(resources.get("claims") or [], f"{field}.claims", list(claims))


def _named_faults(name: str, field: str) -> Iterator[Cause]:
    wrong = qualified_faults(name)
    yield from each(field, name, wrong)
    if wrong and "/" in name:
        yield invalid(field, name, "doesn't follow extended resource name standard")
    elif "/" not in name and name not in _OF_CONTAINERS and not name.startswith("hugepages-"):
        yield invalid(field, name, _NOT_STANDARD)
        yield invalid(field, name, "must be a standard resource for containers")


def _limit_faults(name: str, text: str, limit: str | None, field: str) -> Iterator[Cause]:
    if limit is None:
        if not _is_overcommittable(name):
            yield required(f"{field}.limits", "Limit must be set for non overcommitable resources")
        return
    asked, allowed = _amount(text), _amount(limit)
    if asked != allowed and not _is_overcommittable(name):
        yield invalid(f"{field}.requests", text, f"must be equal to {name} limit of {limit}")
    elif asked > allowed:
        yield invalid(f"{field}.requests", text, f"must be less than or equal to {name} limit of {limit}")


def _claim_faults(used: list[Mapping[str, str]], field: str, known: list[str]) -> Iterator[Cause]:
    seen: set[str] = set()
    for position, claim in enumerate(used):
        name = claim.get("name", "")
        if not name:
            yield required(f"{field}[{position}]")
        elif name in seen:
            yield duplicate(f"{field}[{position}]", name)
        elif name not in known:
            there = "which is empty" if not known else f"[{' '.join(known)}]"
            cause = not_found(f"{field}[{position}]", name)
            detail = f"{cause.message}: must be one of the names in pod.spec.resourceClaims {there}"
            yield cause._replace(message=detail)
        seen.add(name)


def node_resource_faults(amounts: Amounts, field: str) -> Iterator[Cause]:
    """What a node may report."""
    for name, text in amounts.items():
        yield from amount_faults(name, text, f"{field}.{name}")


def quota_faults(hard: Amounts, field: str) -> Iterator[Cause]:
    """What a ResourceQuota may limit."""
    for name, text in hard.items():
        at = f"{field}[{name}]"
        yield from each(at, name, qualified_faults(name))
        if "/" not in name and name not in _OF_QUOTAS and not name.startswith(_HUGE):
            yield invalid(at, name, _NOT_STANDARD)
            yield invalid(at, name, "must be a standard resource for quota")
        yield from amount_faults(name, text, at)


def range_faults(limits: Mapping[str, Amounts], field: str) -> Iterator[Cause]:
    """A LimitRange's bounds must be in order: min, defaultRequest, default, max."""
    order = [name for name in ("min", "defaultRequest", "default", "max") if limits.get(name)]
    for position, low in enumerate(order):
        for high in order[position + 1 :]:
            for name, text in limits[low].items():
                if name in limits[high] and _amount(text) > _amount(limits[high][name]):
                    bound = f"{_WORDS[high]} value {limits[high][name]}"
                    detail = f"{_WORDS[low]} value {text} is greater than {bound}"
                    yield invalid(f"{field}.{low}[{name}]", text, detail)


_WORDS = {"min": "min", "defaultRequest": "default request", "default": "default", "max": "max"}
