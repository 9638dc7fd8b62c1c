"""Where a pod may run and would like to run, as one canonical hashable value.

Everything in a pod's spec that restricts or scores nodes is here, except the amounts it asks
(``request.py``) and its own labels. ``podspec.py`` makes these values. Equal wishes are equal values, in
whatever order a manifest lists them; the task class is interned by them.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from volcano_py.scheduler.model.kube.selectors import (
    EVERYTHING,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Toleration,
)

# How the API writes "every address of the node".
ANY_ADDRESS = "0.0.0.0"


class NodePreference(msgspec.Struct, frozen=True, cache_hash=True, order=True):
    """A node that matches *term* gains *weight* (1 to 100)."""

    weight: int
    term: NodeSelectorTerm


class HostPort(msgspec.Struct, frozen=True, cache_hash=True, order=True):
    """A port taken on the node itself."""

    ip: str
    protocol: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        """Whether both can't be had on one node. ``0.0.0.0`` meets every address."""
        same_address = self.ip == other.ip or ANY_ADDRESS in {self.ip, other.ip}
        return same_address and self.port == other.port and self.protocol == other.protocol


class AffinityTerm(msgspec.Struct, frozen=True, cache_hash=True):
    """Pods to be near to or away from, by topology domain.

    ``namespaces`` are those named, or the pod's own where nothing is named or selected. The keys of
    ``matchLabelKeys`` and ``mismatchLabelKeys`` are already part of ``selector``.
    """

    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    selector: LabelSelector


class WeightedTerm(msgspec.Struct, frozen=True, cache_hash=True):
    """A wish over other pods; a negative weight is a wish to be away from them."""

    weight: int
    term: AffinityTerm


class InterPodTerms(msgspec.Struct, frozen=True, cache_hash=True):
    """Everything a pod says of other pods: what must hold, what must not, and wishes."""

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: tuple[WeightedTerm, ...] = ()


class TopologySpread(msgspec.Struct, frozen=True, cache_hash=True, order=True):
    """A bound on how unevenly pods may lie over the domains of a topology key.

    ``hard`` refuses nodes (DoNotSchedule), otherwise it only scores. ``min_domains`` 1 has no effect.
    Pods of ``namespace``, the pod's own, are counted.
    ``honor_affinity`` leaves out nodes that the pod's node selection excludes, ``honor_taints`` those
    with taints it doesn't tolerate.
    """

    topology_key: str
    max_skew: int
    hard: bool
    selector: LabelSelector
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False
    namespace: str = ""


class ClaimUse(msgspec.Struct, frozen=True, cache_hash=True, order=True):
    """A claim that pods name, as ``namespace`` and ``name``."""

    namespace: str
    name: str
    read_only: bool = False


class EphemeralClaim(msgspec.Struct, frozen=True, cache_hash=True):
    """A claim made for each pod: ``volume`` names it (see :func:`ephemeral_claim_name`), bytes asked.

    ``storage_class`` ``None`` stands for the cluster's default class, the empty text for no class.
    """

    volume: str
    storage_class: str | None
    access_modes: tuple[str, ...]
    storage: int


class VolumeClaims(msgspec.Struct, frozen=True, cache_hash=True):
    """The claims behind a pod's volumes."""

    named: tuple[ClaimUse, ...] = ()
    ephemeral: tuple[EphemeralClaim, ...] = ()


NO_INTER_POD = InterPodTerms()
NO_CLAIMS = VolumeClaims()


class PodConstraints(msgspec.Struct, frozen=True, cache_hash=True):
    """What a pod's spec says of nodes. Tuples are sorted; images repeat, as the score counts each use."""

    node_selector: LabelSelector = EVERYTHING
    node_affinity: NodeSelector | None = None
    node_preferences: tuple[NodePreference, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    inter_pod: InterPodTerms = NO_INTER_POD
    spread: tuple[TopologySpread, ...] = ()
    claims: VolumeClaims = NO_CLAIMS
    images: tuple[str, ...] = ()
    device_claims: bool = False

    @property
    def has_coupling(self) -> bool:
        """Whether placing one pod can change where an equal one may go, beyond the amounts it takes."""
        return bool(
            self.host_ports or self.spread or self.inter_pod != NO_INTER_POD or self.claims != NO_CLAIMS
        )

    def selects_node(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether node selector and required node affinity accept the node; taints are not looked at."""
        wanted = self.node_affinity
        return self.node_selector.matches(labels) and (wanted is None or wanted.matches(labels, name))


EMPTY = PodConstraints()
