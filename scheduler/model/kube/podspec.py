"""Reads a pod's spec into its constraints: checked, completed with Kubernetes' defaults, in canonical order.

Pods come in large groups of equals, so the answer is kept under an encoding of all that it depends on, and
a group shares one ``PodConstraints`` instance. The values are described in ``constraints.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from volcano_py.scheduler.model.kube.constraints import (
    ANY_ADDRESS,
    EMPTY,
    AffinityTerm,
    ClaimUse,
    EphemeralClaim,
    HostPort,
    InterPodTerms,
    NodePreference,
    PodConstraints,
    TopologySpread,
    VolumeClaims,
    WeightedTerm,
)
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem
from volcano_py.scheduler.model.kube.meta import NO_STRINGS
from volcano_py.scheduler.model.kube.pod import (
    EphemeralSource,
    Pod,
    PodSpec,
    RawAffinity,
    RawAffinityTerm,
    RawNodeAffinity,
    RawPodAffinity,
    RawSpread,
    RawToleration,
    Volume,
)
from volcano_py.scheduler.model.kube.request import storage_bytes
from volcano_py.scheduler.model.kube.selectors import (
    EVERYTHING,
    Requirement,
    Toleration,
    label_selector,
    labels_selector,
    node_selector,
    node_selector_term,
    toleration,
)

__all__ = [
    "EMPTY",
    "AffinityTerm",
    "ClaimUse",
    "EphemeralClaim",
    "HostPort",
    "InterPodTerms",
    "NodePreference",
    "PodConstraints",
    "TopologySpread",
    "VolumeClaims",
    "WeightedTerm",
    "ephemeral_claim_name",
    "pod_constraints",
]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NODE_REQUIRED = f"spec.affinity.nodeAffinity.{_REQUIRED}"
_NODE_PREFERRED = f"spec.affinity.nodeAffinity.{_PREFERRED}"


class _Source(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The part of a pod that constraints come from; its encoding is the key under which they are kept."""

    namespace: str = ""
    labels: Mapping[str, str] = NO_STRINGS
    node_selector: Mapping[str, str] = NO_STRINGS
    affinity: RawAffinity | None = None
    tolerations: tuple[RawToleration, ...] = ()
    spread: tuple[RawSpread, ...] = ()
    ports: tuple[HostPort, ...] = ()
    volumes: tuple[Volume, ...] = ()
    images: tuple[str, ...] = ()
    device_claims: bool = False


class _Own(NamedTuple):
    """What a pod's selectors take from the pod itself."""

    namespace: str
    labels: Mapping[str, str]

    def requirements(self, keys: tuple[str, ...], operator: str) -> list[Requirement]:
        """A test for each of *keys* that the pod has, against its own value."""
        return [Requirement(key, operator, (self.labels[key],)) for key in keys if key in self.labels]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Source).decode


def pod_constraints(pod: Pod) -> PodConstraints:
    """The constraints of *pod*; equal pods get the same instance. Raises ``ObjectError`` naming the field."""
    source = _source(pod)
    try:
        key = _encode(source)
    except (OverflowError, TypeError):
        # A claim template may hold a number past 64 bits: refused when read, by the field that holds it.
        return _compute(source)
    return _kept(key)


def ephemeral_claim_name(pod_name: str, volume: str) -> str:
    """Name of the claim that Kubernetes makes for an ephemeral volume of a pod."""
    return f"{pod_name}-{volume}"


def _source(pod: Pod) -> _Source:
    spec = pod.spec
    images = tuple([it.image for it in (*spec.init_containers, *spec.containers) if it.image])
    volumes = spec.volumes
    if volumes:
        volumes = tuple([it for it in volumes if it.persistent_volume_claim or it.ephemeral])
    affinity, spread = spec.affinity, spec.topology_spread_constraints
    return _Source(
        namespace=pod.metadata.namespace if affinity or volumes or spread else "",
        labels=pod.metadata.labels if _looks_at_own_labels(spec) else NO_STRINGS,
        node_selector=spec.node_selector,
        affinity=affinity,
        tolerations=spec.tolerations,
        spread=spread,
        ports=_ports(spec),
        volumes=volumes,
        images=images,
        device_claims=bool(spec.resource_claims),
    )


def _looks_at_own_labels(spec: PodSpec) -> bool:
    """Whether a selector of the pod is completed from the pod's own labels."""
    if any(raw.match_label_keys for raw in spec.topology_spread_constraints):
        return True
    affinity = spec.affinity
    if affinity is None:
        return False
    sides = [side for side in (affinity.pod_affinity, affinity.pod_anti_affinity) if side is not None]
    terms = [term for side in sides for term in side.required]
    terms += [wish.pod_affinity_term for side in sides for wish in side.preferred]
    return any(term.match_label_keys or term.mismatch_label_keys for term in terms)


def _ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Ports taken on the node by all that runs for long; in the node's network every port is one."""
    found = []
    for container in (*spec.containers, *(it for it in spec.init_containers if it.is_sidecar)):
        for port in container.ports:
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number:
                found.append(HostPort(port.host_ip or ANY_ADDRESS, port.protocol or "TCP", number))
    return tuple(found)


@lru_cache(maxsize=16384)
def _kept(key: bytes) -> PodConstraints:
    return _interned(_compute(_decode(key)))


@lru_cache(maxsize=16384)
def _interned(constraints: PodConstraints) -> PodConstraints:
    """The first of all equal values, so that different spellings of one thing share it."""
    return EMPTY if constraints == EMPTY else constraints


def _compute(source: _Source) -> PodConstraints:
    affinity = source.affinity or RawAffinity()
    nodes = affinity.node_affinity or RawNodeAffinity()
    own = _Own(source.namespace, source.labels)
    return PodConstraints(
        node_selector=labels_selector(source.node_selector),
        node_affinity=None if nodes.required is None else node_selector(nodes.required, _NODE_REQUIRED),
        node_preferences=_node_preferences(nodes),
        tolerations=_tolerations(source.tolerations),
        host_ports=tuple(sorted(set(source.ports))),
        inter_pod=_inter_pod(affinity, own),
        spread=tuple(sorted(_spread(raw, at, own) for at, raw in enumerate(source.spread))),
        claims=_claims(source),
        images=tuple(sorted(_with_tag(image) for image in source.images)),
        device_claims=source.device_claims,
    )


def _tolerations(raws: tuple[RawToleration, ...]) -> tuple[Toleration, ...]:
    return tuple(sorted({toleration(raw, f"spec.tolerations[{at}]") for at, raw in enumerate(raws)}))


def _node_preferences(nodes: RawNodeAffinity) -> tuple[NodePreference, ...]:
    """The wishes over nodes; an empty term, or none of weight, wishes nothing."""
    found = []
    for at, raw in enumerate(nodes.preferred):
        field = f"{_NODE_PREFERRED}[{at}]"
        _check_weight(raw.weight, field)
        term = node_selector_term(raw.preference, f"{field}.preference")
        if not term.is_empty:
            found.append(NodePreference(raw.weight, term))
    return tuple(sorted(found))


def _inter_pod(affinity: RawAffinity, own: _Own) -> InterPodTerms:
    near = affinity.pod_affinity or RawPodAffinity()
    away = affinity.pod_anti_affinity or RawPodAffinity()
    wishes = _wishes(near, "spec.affinity.podAffinity", own, 1)
    wishes += _wishes(away, "spec.affinity.podAntiAffinity", own, -1)
    return InterPodTerms(
        affinity=_required_terms(near, "spec.affinity.podAffinity", own),
        anti_affinity=_required_terms(away, "spec.affinity.podAntiAffinity", own),
        preferred=tuple(sorted(wishes, key=_wish_order)),
    )


def _required_terms(side: RawPodAffinity, field: str, own: _Own) -> tuple[AffinityTerm, ...]:
    path = f"{field}.{_REQUIRED}"
    terms = {_affinity_term(raw, f"{path}[{at}]", own) for at, raw in enumerate(side.required)}
    return tuple(sorted(terms, key=_term_order))


def _wishes(side: RawPodAffinity, field: str, own: _Own, sign: int) -> list[WeightedTerm]:
    found = []
    for at, raw in enumerate(side.preferred):
        path = f"{field}.{_PREFERRED}[{at}]"
        _check_weight(raw.weight, path)
        found.append(
            WeightedTerm(
                sign * raw.weight, _affinity_term(raw.pod_affinity_term, f"{path}.podAffinityTerm", own)
            )
        )
    return found


def _affinity_term(raw: RawAffinityTerm, field: str, own: _Own) -> AffinityTerm:
    if not raw.topology_key:
        raise ObjectError(Problem(f"{field}.topologyKey", "must not be empty"))
    spaces = None
    if raw.namespace_selector is not None:
        spaces = label_selector(raw.namespace_selector, f"{field}.namespaceSelector")
    named = frozenset(raw.namespaces)
    if not named and spaces is None:
        named = frozenset({own.namespace})
    selector = label_selector(raw.label_selector, f"{field}.labelSelector")
    same = own.requirements(raw.match_label_keys, "In")
    other = own.requirements(raw.mismatch_label_keys, "NotIn")
    return AffinityTerm(raw.topology_key, named, spaces, selector.also(same + other))


def _spread(raw: RawSpread, at: int, own: _Own) -> TopologySpread:
    field = f"spec.topologySpreadConstraints[{at}]"
    problem = _spread_problem(raw)
    if problem is not None:
        raise ObjectError(Problem(f"{field}.{problem.field}", problem.message))
    selector = label_selector(raw.label_selector, f"{field}.labelSelector")
    return TopologySpread(
        topology_key=raw.topology_key,
        max_skew=raw.max_skew,
        hard=raw.when_unsatisfiable == "DoNotSchedule",
        selector=selector.also(own.requirements(raw.match_label_keys, "In")),
        min_domains=1 if raw.min_domains is None else raw.min_domains,
        honor_affinity=raw.node_affinity_policy != "Ignore",
        honor_taints=raw.node_taints_policy == "Honor",
        namespace=own.namespace,
    )


def _spread_problem(raw: RawSpread) -> Problem | None:
    """What is wrong with *raw*, by the field inside it."""
    if not raw.topology_key:
        return Problem("topologyKey", "must not be empty")
    if raw.max_skew < 1:
        return Problem("maxSkew", f"must be at least 1, not {raw.max_skew}")
    if raw.when_unsatisfiable not in {"DoNotSchedule", "ScheduleAnyway"}:
        return Problem(
            "whenUnsatisfiable", f"must be DoNotSchedule or ScheduleAnyway, not {raw.when_unsatisfiable!r}"
        )
    if raw.min_domains is not None and (raw.min_domains < 1 or raw.when_unsatisfiable != "DoNotSchedule"):
        return Problem("minDomains", "must be at least 1, and only with DoNotSchedule")
    for name, policy in (
        ("nodeAffinityPolicy", raw.node_affinity_policy),
        ("nodeTaintsPolicy", raw.node_taints_policy),
    ):
        if policy not in {"Honor", "Ignore"}:
            return Problem(name, f"must be Honor or Ignore, not {policy!r}")
    return None


def _claims(source: _Source) -> VolumeClaims:
    """What the volumes bind; one claim used twice is writable if one of its uses is."""
    named: dict[str, bool] = {}
    ephemeral = set()
    for at, volume in enumerate(source.volumes):
        claim = volume.persistent_volume_claim
        if claim is not None:
            named[claim.claim_name] = claim.read_only and named.get(claim.claim_name, True)
        elif volume.ephemeral is not None:
            ephemeral.add(_ephemeral(volume, f"spec.volumes[{at}].ephemeral.volumeClaimTemplate.spec"))
    uses = [ClaimUse(source.namespace, name, read_only) for name, read_only in named.items()]
    in_order = sorted(ephemeral, key=_ephemeral_order)
    return VolumeClaims(tuple(sorted(uses)), tuple(in_order))


def _ephemeral_order(claim: EphemeralClaim) -> tuple[object, ...]:
    named = claim.storage_class is not None
    return (claim.volume, named, claim.storage_class or "", claim.access_modes, claim.storage)


def _ephemeral(volume: Volume, field: str) -> EphemeralClaim:
    spec = (volume.ephemeral or EphemeralSource()).volume_claim_template.spec
    written = spec.resources.requests.get("storage", 0)
    asked = storage_bytes(written, f"{field}.resources.requests.storage")
    return EphemeralClaim(volume.name, spec.storage_class_name, tuple(sorted(set(spec.access_modes))), asked)


def _check_weight(weight: int, field: str) -> None:
    if not 1 <= weight <= 100:
        raise ObjectError(Problem(f"{field}.weight", f"must be from 1 to 100, not {weight}"))


def _with_tag(image: str) -> str:
    """The image's name as nodes list it: a name without tag or digest is its ``latest``."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _term_order(term: AffinityTerm) -> tuple[object, ...]:
    spaces = term.namespace_selector
    return (
        term.topology_key,
        sorted(term.namespaces),
        spaces is not None,
        spaces or EVERYTHING,
        term.selector,
    )


def _wish_order(wish: WeightedTerm) -> tuple[object, ...]:
    return (wish.weight, *_term_order(wish.term))
