"""Claims and volumes in checked form: what the API objects say, read once.

Sources: the API documentation of PersistentVolume(Claim), StorageClass; kube-scheduler's volume plugins
for which field decides what.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from volcano_py.scheduler.model.kube.constraints import EphemeralClaim
from volcano_py.scheduler.model.kube.objects import (
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from volcano_py.scheduler.model.kube.request import storage_bytes
from volcano_py.scheduler.model.kube.selectors import (
    LabelSelector,
    NodeSelector,
    label_selector,
    node_selector,
)

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
ONE_POD: Final = "ReadWriteOncePod"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
ZONE_LABELS: Final = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
_ZONE_SEPARATOR: Final = "__"
_MIGRATED: Final = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
}
"""In-tree provisioners and the CSI driver that serves their volumes now."""

Attachment = tuple[str, str]
"""A volume as a node attaches it: CSI driver and handle."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim for storage.

    Attributes:
        key: "namespace/name".
        storage_class: None stands for the default class, "" for none.
        storage: bytes asked.
        volume: name of the volume it is bound (or meant) to, "" for none.
        bound: the binding is complete.
        lost: its volume is gone.
        selected_node: node chosen for a volume that is being provisioned, "" for none.
        selector: labels the volume must have, None for any.
    """

    key: str
    storage_class: str | None
    modes: frozenset[str]
    storage: int
    volume: str = ""
    bound: bool = False
    lost: bool = False
    deleting: bool = False
    selected_node: str = ""
    volume_mode: str = "Filesystem"
    selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class VolumeRecord:
    """A piece of storage.

    Attributes:
        capacity: bytes.
        claim: key of the claim it is bound to or kept for, "" for none.
        reach: nodes from which it can be reached, None for all.
        zones: zone label -> values of which a node must have one.
        attachment: how nodes attach it, None where no CSI driver serves it.
        available: free to be bound.
    """

    name: str
    modes: frozenset[str]
    capacity: int
    claim: str
    storage_class: str
    volume_mode: str
    labels: tuple[tuple[str, str], ...]
    reach: NodeSelector | None
    zones: tuple[tuple[str, frozenset[str]], ...]
    attachment: Attachment | None
    available: bool

    def suits(self, claim: Claim, storage_class: str) -> bool:
        """Whether *claim*, of the class called *storage_class*, may be bound to this volume."""
        if self.claim:
            return self.claim == claim.key and self.capacity >= claim.storage
        return (
            self.available
            and self.storage_class == storage_class
            and self.volume_mode == claim.volume_mode
            and claim.modes <= self.modes
            and self.capacity >= claim.storage
            and (claim.selector is None or claim.selector.matches(dict(self.labels)))
        )


@dataclass(frozen=True, slots=True)
class CapacityReport:
    """Free storage of a class in some nodes.

    Attributes:
        topology: the nodes.
        largest: bytes of the largest volume that can be made; 0 where nothing is said.
    """

    storage_class: str
    topology: LabelSelector
    largest: int


def read_claim(source: PersistentVolumeClaim) -> Claim:
    """*source* in checked form. Raises ``ObjectError`` naming the field."""
    spec, meta = source.spec, source.metadata
    completed = BIND_COMPLETED in meta.annotations or source.status.phase == "Bound"
    selector = None if spec.selector is None else label_selector(spec.selector, "spec.selector")
    return Claim(
        key=source.key,
        storage_class=spec.storage_class_name,
        modes=frozenset(spec.access_modes),
        storage=storage_bytes(spec.resources.requests.get("storage", 0), "spec.resources.requests.storage"),
        volume=spec.volume_name,
        bound=bool(spec.volume_name) and completed,
        lost=source.status.phase == "Lost",
        deleting=meta.deletion_timestamp is not None,
        selected_node=meta.annotations.get(SELECTED_NODE, ""),
        volume_mode=spec.volume_mode,
        selector=selector,
    )


def claim_of_template(template: EphemeralClaim, key: str) -> Claim:
    """The claim *key* that will be made for an ephemeral volume."""
    return Claim(key, template.storage_class, frozenset(template.access_modes), template.storage)


def read_volume(source: PersistentVolume) -> VolumeRecord:
    """*source* in checked form. Raises ``ObjectError`` naming the field."""
    spec, labels = source.spec, source.metadata.labels
    reach = None
    if spec.node_affinity is not None and spec.node_affinity.required is not None:
        reach = node_selector(spec.node_affinity.required, "spec.nodeAffinity.required")
    owner = spec.claim_ref
    return VolumeRecord(
        name=source.name,
        modes=frozenset(spec.access_modes),
        capacity=storage_bytes(spec.capacity.get("storage", 0), "spec.capacity.storage"),
        claim="" if owner is None else f"{owner.namespace}/{owner.name}",
        storage_class=spec.storage_class_name,
        volume_mode=spec.volume_mode,
        labels=tuple(sorted(labels.items())),
        reach=reach,
        zones=tuple((k, frozenset(labels[k].split(_ZONE_SEPARATOR))) for k in ZONE_LABELS if k in labels),
        attachment=_attachment(source),
        available=source.status.phase in ("", "Available"),
    )


def read_capacity(source: CSIStorageCapacity) -> CapacityReport:
    """*source* in checked form. Raises ``ObjectError`` naming the field."""
    largest = source.maximum_volume_size is not None
    written = source.maximum_volume_size if largest else source.capacity
    field = "maximumVolumeSize" if largest else "capacity"
    return CapacityReport(
        storage_class=source.storage_class_name,
        topology=label_selector(source.node_topology, "nodeTopology"),
        largest=0 if written is None else storage_bytes(written, field),
    )


def driver_of(storage_class: StorageClass) -> str:
    """The CSI driver that makes volumes of *storage_class*, "" for none."""
    name = storage_class.provisioner
    return "" if name == NO_PROVISIONER else _MIGRATED.get(name, name)


def is_default(storage_class: StorageClass) -> bool:
    """Whether claims that name no class get this one."""
    return storage_class.metadata.annotations.get(DEFAULT_CLASS) == "true"


def waits_for_pod(storage_class: StorageClass) -> bool:
    """Whether claims of the class are bound only when a pod is placed."""
    return storage_class.volume_binding_mode == "WaitForFirstConsumer"


def _attachment(source: PersistentVolume) -> Attachment | None:
    spec = source.spec
    if spec.csi is not None:
        return (spec.csi.driver, spec.csi.volume_handle or source.name)
    in_tree = (
        ("kubernetes.io/aws-ebs", spec.aws_elastic_block_store),
        ("kubernetes.io/gce-pd", spec.gce_persistent_disk),
        ("kubernetes.io/azure-disk", spec.azure_disk),
        ("kubernetes.io/cinder", spec.cinder),
    )
    for provisioner, kind in in_tree:
        if kind is not None:
            return (_MIGRATED[provisioner], source.name)
    return None
