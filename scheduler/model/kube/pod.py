"""Pod as it arrives, reduced to the fields that scheduling reads. Source: the core/v1 API."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from volcano_py.scheduler.model.kube.meta import (
    NO_AMOUNTS,
    NO_STRINGS,
    Amounts,
    Condition,
    Int32,
    KubeObject,
    KubeStruct,
    RawLabelSelector,
    RawNodeSelector,
    RawNodeSelectorTerm,
)


class Resources(KubeStruct, frozen=True):
    """Requests and limits of a container, a pod or a claim template, as written."""

    requests: Amounts = NO_AMOUNTS
    limits: Amounts = NO_AMOUNTS


NO_RESOURCES = Resources()


class ContainerPort(KubeStruct, frozen=True):
    """A port; ``host_port`` 0 claims none on the node."""

    container_port: Int32 = 0
    host_port: Int32 = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class Container(KubeStruct, frozen=True):
    """An app or init container; restart policy ``Always`` on an init container makes it a sidecar."""

    name: str = ""
    image: str = ""
    resources: Resources = NO_RESOURCES
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""

    @property
    def is_sidecar(self) -> bool:
        """Whether an init container runs beside the app containers. Meaningless for app containers."""
        return self.restart_policy == "Always"


class RawToleration(KubeStruct, frozen=True):
    """A toleration, unchecked; how long it tolerates doesn't matter for placement."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class RawPreferredNodes(KubeStruct, frozen=True):
    """A weighted wish over nodes."""

    weight: Int32 = 0
    preference: RawNodeSelectorTerm = RawNodeSelectorTerm()


class RawNodeAffinity(KubeStruct, frozen=True):
    """Which nodes a pod must and would like to have."""

    required: RawNodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[RawPreferredNodes, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class RawAffinityTerm(KubeStruct, frozen=True):
    """Pods to be near to or away from, unchecked."""

    topology_key: str = ""
    label_selector: RawLabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: RawLabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class RawWeightedTerm(KubeStruct, frozen=True):
    """A weighted wish over other pods."""

    weight: Int32 = 0
    pod_affinity_term: RawAffinityTerm = RawAffinityTerm()


class RawPodAffinity(KubeStruct, frozen=True):
    """``podAffinity`` or ``podAntiAffinity``."""

    required: tuple[RawAffinityTerm, ...] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[RawWeightedTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class RawAffinity(KubeStruct, frozen=True):
    """``spec.affinity``."""

    node_affinity: RawNodeAffinity | None = None
    pod_affinity: RawPodAffinity | None = None
    pod_anti_affinity: RawPodAffinity | None = None


class RawSpread(KubeStruct, frozen=True):
    """A topology spread constraint, unchecked; empty policies mean Kubernetes' defaults."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: RawLabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class ClaimSource(KubeStruct, frozen=True):
    """A volume's use of a claim by name."""

    claim_name: str = ""
    read_only: bool = False


class ClaimTemplateSpec(KubeStruct, frozen=True):
    """What a claim made for one pod will ask; no class name means the default class."""

    access_modes: tuple[str, ...] = ()
    storage_class_name: str | None = None
    resources: Resources = NO_RESOURCES


class ClaimTemplate(KubeStruct, frozen=True):
    """The template of a pod's own claim."""

    spec: ClaimTemplateSpec = ClaimTemplateSpec()


class EphemeralSource(KubeStruct, frozen=True):
    """A volume whose claim lives and dies with the pod."""

    volume_claim_template: ClaimTemplate = ClaimTemplate()


class Volume(KubeStruct, frozen=True):
    """A pod volume; kinds other than claims bind nothing to a node and are left out."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None


class SchedulingGate(KubeStruct, frozen=True):
    """A named reason why the pod must not be scheduled yet."""

    name: str = ""


class PodResourceClaim(KubeStruct, frozen=True):
    """A device claim (resource.k8s.io) that the pod refers to."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodSpec(KubeStruct, frozen=True):
    """What a pod asks and where it may run."""

    scheduler_name: str = ""
    node_name: str = ""
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    node_selector: Mapping[str, str] = NO_STRINGS
    affinity: RawAffinity | None = None
    tolerations: tuple[RawToleration, ...] = ()
    topology_spread_constraints: tuple[RawSpread, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Amounts = NO_AMOUNTS
    resources: Resources = NO_RESOURCES
    volumes: tuple[Volume, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    host_network: bool = False


class Terminated(KubeStruct, frozen=True):
    """How a container ended."""

    exit_code: Int32 = 0


class ContainerState(KubeStruct, frozen=True):
    """A container's state, as far as the engine reads it."""

    terminated: Terminated | None = None


class ContainerStatus(KubeStruct, frozen=True):
    """What the kubelet says of a container; ``resources`` is what it runs with, which lags a resize."""

    name: str = ""
    resources: Resources | None = None
    allocated_resources: Amounts = NO_AMOUNTS
    state: ContainerState = ContainerState()


class PodStatus(KubeStruct, frozen=True):
    """What became of a pod. ``start_time``: seconds since the epoch; ``resize``: until 1.32."""

    phase: str = "Pending"
    conditions: tuple[Condition, ...] = ()
    start_time: float | None = None
    nominated_node_name: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resize: str = ""


class Pod(KubeObject, frozen=True):
    """A pod (core/v1)."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def init_is_over(self) -> bool:
        """There are init containers besides sidecars, and all of them have ended well."""
        waited = {one.name for one in self.spec.init_containers if not one.is_sidecar}
        if not waited:
            return False
        ended = {
            one.name
            for one in self.status.init_container_statuses
            if one.state.terminated is not None and one.state.terminated.exit_code == 0
        }
        return waited <= ended
