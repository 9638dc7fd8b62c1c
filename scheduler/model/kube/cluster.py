"""Nodes, storage and cluster policy objects as they arrive, reduced to what scheduling reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from volcano_py.scheduler.model.kube.meta import (
    NO_AMOUNTS,
    NO_STRINGS,
    Amounts,
    Condition,
    Int32,
    Int64,
    KubeObject,
    KubeStruct,
    RawLabelSelector,
    RawNodeSelector,
)
from volcano_py.scheduler.model.kube.pod import NO_RESOURCES, Resources


class RawTaint(KubeStruct, frozen=True):
    """A taint, unchecked."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(KubeStruct, frozen=True):
    """Cordon and taints."""

    unschedulable: bool = False
    taints: tuple[RawTaint, ...] = ()


class NodeImage(KubeStruct, frozen=True):
    """An image the node holds: all its names, and its size in bytes."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeStatus(KubeStruct, frozen=True):
    """Amounts as written, conditions and images."""

    allocatable: Amounts = NO_AMOUNTS
    capacity: Amounts = NO_AMOUNTS
    conditions: tuple[Condition, ...] = ()
    images: tuple[NodeImage, ...] = ()


class Node(KubeObject, frozen=True):
    """A node (core/v1)."""

    namespaced: ClassVar[bool] = False

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ClaimSpec(KubeStruct, frozen=True):
    """What a claim asks and the volume it is bound to (empty: none yet)."""

    access_modes: tuple[str, ...] = ()
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = "Filesystem"
    resources: Resources = NO_RESOURCES
    selector: RawLabelSelector | None = None


class ClaimStatus(KubeStruct, frozen=True):
    """Phase ``Bound``, ``Pending`` or ``Lost``."""

    phase: str = ""


class PersistentVolumeClaim(KubeObject, frozen=True):
    """A claim for storage (core/v1)."""

    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class CsiSource(KubeStruct, frozen=True):
    """A volume of a CSI driver; the handle tells equal volumes apart from different ones."""

    driver: str = ""
    volume_handle: str = ""


class ClaimRef(KubeStruct, frozen=True):
    """The claim a volume is bound to or kept for."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(KubeStruct, frozen=True):
    """Nodes from which a volume can be reached."""

    required: RawNodeSelector | None = None


class VolumeSpec(KubeStruct, frozen=True):
    """A volume. The in-tree kinds count only by presence: they name the CSI driver that serves them now."""

    access_modes: tuple[str, ...] = ()
    capacity: Amounts = NO_AMOUNTS
    claim_ref: ClaimRef | None = None
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiSource | None = None
    aws_elastic_block_store: Mapping[str, Any] | None = None
    gce_persistent_disk: Mapping[str, Any] | None = None
    azure_disk: Mapping[str, Any] | None = None
    cinder: Mapping[str, Any] | None = None


class VolumeStatus(KubeStruct, frozen=True):
    """Phase ``Available``, ``Bound``, ``Released``, ``Pending`` or ``Failed``."""

    phase: str = ""


class PersistentVolume(KubeObject, frozen=True):
    """A piece of storage (core/v1); zone labels on it restrict nodes."""

    namespaced: ClassVar[bool] = False

    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()


class TopologyLabel(KubeStruct, frozen=True):
    """A node label and the values that are allowed."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(KubeStruct, frozen=True):
    """Labels that must hold together."""

    match_label_expressions: tuple[TopologyLabel, ...] = ()


class ConfigMap(KubeObject, frozen=True):
    """Texts by name; of interest only where a plugin names one."""

    data: dict[str, str] = msgspec.field(default_factory=dict)


class StorageClass(KubeObject, frozen=True):
    """How claims of a class are provisioned (storage.k8s.io)."""

    namespaced: ClassVar[bool] = False

    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class AttachLimit(KubeStruct, frozen=True):
    """How many volumes of a driver a node takes; no count means no limit."""

    count: Int32 | None = None


class CsiNodeDriver(KubeStruct, frozen=True):
    """A driver that runs on a node."""

    name: str = ""
    allocatable: AttachLimit | None = None
    topology_keys: tuple[str, ...] = ()


class CsiNodeSpec(KubeStruct, frozen=True):
    """The drivers of a node."""

    drivers: tuple[CsiNodeDriver, ...] = ()


class CSINode(KubeObject, frozen=True):
    """Storage drivers of the node of the same name (storage.k8s.io)."""

    namespaced: ClassVar[bool] = False

    spec: CsiNodeSpec = CsiNodeSpec()


class CsiDriverSpec(KubeStruct, frozen=True):
    """Whether the scheduler must look at reported free capacity."""

    storage_capacity: bool = False


class CSIDriver(KubeObject, frozen=True):
    """A storage driver (storage.k8s.io)."""

    namespaced: ClassVar[bool] = False

    spec: CsiDriverSpec = CsiDriverSpec()


class CSIStorageCapacity(KubeObject, frozen=True):
    """Free capacity of a class in a set of nodes (storage.k8s.io); no topology means no node."""

    storage_class_name: str = ""
    node_topology: RawLabelSelector | None = None
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None


class PriorityClass(KubeObject, frozen=True):
    """A named priority (scheduling.k8s.io)."""

    namespaced: ClassVar[bool] = False

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"


class Namespace(KubeObject, frozen=True):
    """A namespace; its labels answer namespace selectors."""

    namespaced: ClassVar[bool] = False


class QuotaSpec(KubeStruct, frozen=True):
    """Limits by name, as written; scopes narrow which pods count."""

    hard: Amounts = NO_AMOUNTS
    scopes: tuple[str, ...] = ()


class QuotaStatus(KubeStruct, frozen=True):
    """Limits and usage as the quota controller last saw them."""

    hard: Amounts = NO_AMOUNTS
    used: Amounts = NO_AMOUNTS


class ResourceQuota(KubeObject, frozen=True):
    """A namespace's limits (core/v1)."""

    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


class BudgetSpec(KubeStruct, frozen=True):
    """The pods a budget protects."""

    selector: RawLabelSelector | None = None


class BudgetStatus(KubeStruct, frozen=True):
    """How many of them may be disturbed now; ``disrupted_pods`` are already on their way out."""

    disruptions_allowed: Int32 = 0
    disrupted_pods: Mapping[str, Any] = msgspec.field(default=NO_STRINGS)


class PodDisruptionBudget(KubeObject, frozen=True):
    """How many pods of a set may be evicted (policy/v1)."""

    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()
