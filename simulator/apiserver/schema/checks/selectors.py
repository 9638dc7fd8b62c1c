"""Selectors of labels and nodes, and the affinities made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from volcano_py.simulator.apiserver.schema.checks.causes import each, forbidden, invalid, required
from volcano_py.simulator.apiserver.schema.checks.names import (
    label_faults,
    label_value_faults,
    qualified_faults,
)
from volcano_py.simulator.apiserver.schema.kinds import Cause

Part = Mapping[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def label_map_faults(chosen: Mapping[str, str], field: str) -> Iterator[Cause]:
    """Labels as they are written in a map: keys and values."""
    for key, value in chosen.items():
        yield from each(field, key, qualified_faults(key))
        yield from each(field, value, label_value_faults(value))


def label_selector_faults(selector: Part | None, field: str) -> Iterator[Cause]:
    """``matchLabels`` and ``matchExpressions``."""
    if not selector:
        return
    yield from label_map_faults(selector.get("matchLabels") or {}, f"{field}.matchLabels")
    for position, one in enumerate(selector.get("matchExpressions") or ()):
        at = f"{field}.matchExpressions[{position}]"
        yield from _operator_faults(one, at, f"{at}.operator", numbers=False)
        yield from each(f"{at}.key", one.get("key", ""), qualified_faults(one.get("key", "")))
        for index, value in enumerate(one.get("values") or ()):
            yield from each(f"{at}.values[{index}]", value, label_value_faults(value))


def _operator_faults(one: Part, at: str, operator_at: str, *, numbers: bool) -> Iterator[Cause]:
    operator, values = one.get("operator", ""), one.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(
                f"{at}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            )
    elif numbers and operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield required(f"{at}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield invalid(operator_at, operator, "not a valid selector operator")


def node_selector_faults(selector: Part, field: str) -> Iterator[Cause]:
    """``nodeSelectorTerms``: at least one."""
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        yield required(f"{field}.nodeSelectorTerms", "must have at least one node selector term")
    for position, term in enumerate(terms):
        yield from node_term_faults(term, f"{field}.nodeSelectorTerms[{position}]")


def node_term_faults(term: Part, field: str) -> Iterator[Cause]:
    """One term: expressions over labels, and over the node's name."""
    for position, one in enumerate(term.get("matchExpressions") or ()):
        at = f"{field}.matchExpressions[{position}]"
        yield from _operator_faults(one, at, f"{at}.operator", numbers=True)
        yield from each(f"{at}.key", one.get("key", ""), qualified_faults(one.get("key", "")))
        for index, value in enumerate(one.get("values") or ()):
            yield from each(f"{at}.values[{index}]", value, label_value_faults(value))
    for position, one in enumerate(term.get("matchFields") or ()):
        yield from _match_field_faults(one, f"{field}.matchFields[{position}]")


def _match_field_faults(one: Part, at: str) -> Iterator[Cause]:
    if one.get("operator") not in ("In", "NotIn"):
        yield invalid(f"{at}.operator", one.get("operator", ""), "not a valid selector operator")
    elif len(one.get("values") or ()) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{at}.values", detail)
    if one.get("key") != "metadata.name":
        yield invalid(f"{at}.key", one.get("key", ""), "not a valid field selector key")


def affinity_faults(affinity: Part, field: str) -> Iterator[Cause]:
    """All three affinities of a pod."""
    if nodes := affinity.get("nodeAffinity"):
        yield from _node_affinity_faults(nodes, f"{field}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        if pods := affinity.get(name):
            yield from _pod_affinity_faults(pods, f"{field}.{name}")


def _node_affinity_faults(nodes: Part, field: str) -> Iterator[Cause]:
    if (must := nodes.get(_REQUIRED)) is not None:
        yield from node_selector_faults(must, f"{field}.{_REQUIRED}")
    for position, one in enumerate(nodes.get(_PREFERRED) or ()):
        at = f"{field}.{_PREFERRED}[{position}]"
        yield from _weight_faults(one, at)
        yield from node_term_faults(one.get("preference") or {}, f"{at}.preference")


def _weight_faults(one: Part, at: str) -> Iterator[Cause]:
    if not 1 <= one.get("weight", 0) <= 100:
        yield invalid(f"{at}.weight", one.get("weight", 0), "must be in the range 1-100")


def _pod_affinity_faults(pods: Part, field: str) -> Iterator[Cause]:
    for position, term in enumerate(pods.get(_REQUIRED) or ()):
        yield from _pod_term_faults(term, f"{field}.{_REQUIRED}[{position}]")
    for position, one in enumerate(pods.get(_PREFERRED) or ()):
        at = f"{field}.{_PREFERRED}[{position}]"
        yield from _weight_faults(one, at)
        yield from _pod_term_faults(one.get("podAffinityTerm") or {}, f"{at}.podAffinityTerm")


def _pod_term_faults(term: Part, at: str) -> Iterator[Cause]:
    yield from label_selector_faults(term.get("labelSelector"), f"{at}.labelSelector")
    yield from label_selector_faults(term.get("namespaceSelector"), f"{at}.namespaceSelector")
    for name in term.get("namespaces") or ():
        yield from each(f"{at}.namespace", name, label_faults(name))
    key = term.get("topologyKey", "")
    if not key:
        yield required(f"{at}.topologyKey", "can not be empty")
    yield from each(f"{at}.topologyKey", key, qualified_faults(key))
