"""Kinds with a handful of defaults each."""

from __future__ import annotations

import base64

from volcano_py.simulator.apiserver.status import Document


def default_namespace(namespace: Document) -> None:
    """Every namespace carries its name as a label, and is cleared before it goes."""
    metadata = namespace["metadata"]
    if metadata.get("name"):
        labels = metadata.get("labels") or {}
        metadata["labels"] = {**labels, "kubernetes.io/metadata.name": metadata["name"]}
    namespace.setdefault("spec", {})
    status = namespace.setdefault("status", {})
    status.setdefault("phase", "Active")


def default_definition(definition: Document) -> None:
    """Fill in a CustomResourceDefinition's defaults."""
    spec = definition.setdefault("spec", {})
    spec.setdefault("conversion", {}).setdefault("strategy", "None")
    names = spec.get("names")
    if isinstance(names, dict) and names.get("kind"):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")


def default_volume(volume: Document) -> None:
    """Fill in a PersistentVolume's defaults."""
    spec = volume.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    if spec.get("hostPath") is not None:
        spec["hostPath"].setdefault("type", "")
    volume.setdefault("status", {}).setdefault("phase", "Pending")


def default_volume_claim(claim: Document) -> None:
    """Fill in a PersistentVolumeClaim's defaults."""
    claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    claim.setdefault("status", {}).setdefault("phase", "Pending")


def default_secret(secret: Document) -> None:
    """Texts become data, and data has a type."""
    texts: Document = secret.pop("stringData", None) or {}
    if texts:
        written = {name: base64.b64encode(str(text).encode()).decode() for name, text in texts.items()}
        secret["data"] = {**(secret.get("data") or {}), **written}
    secret.setdefault("type", "Opaque")


def default_storage_class(storage_class: Document) -> None:
    """Fill in a StorageClass's defaults."""
    storage_class.setdefault("reclaimPolicy", "Delete")
    storage_class.setdefault("volumeBindingMode", "Immediate")


def default_priority_class(priority_class: Document) -> None:
    """Fill in a PriorityClass's defaults."""
    priority_class.setdefault("value", 0)
    priority_class.setdefault("preemptionPolicy", "PreemptLowerPriority")


def default_pdb(budget: Document) -> None:
    """A budget's status counts from nothing."""
    budget.setdefault("spec", {})
    status = budget.setdefault("status", {})
    for name in ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"):
        status.setdefault(name, 0)
