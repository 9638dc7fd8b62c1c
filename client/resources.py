"""The kinds we read and write, and where the API server keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from volcano_py.crds.objects import KINDS

__all__ = ["RESOURCES", "Resource"]


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind as the API names it; the group is empty for the core API.

    A *custom* one has a definition that may change under a running server.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    custom: bool = False

    @property
    def api_version(self) -> str:
        """``group/version``, or the version alone in the core API."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, sub: str | None = None) -> str:
        """The URL path of all objects, those of a namespace, one object, or a subresource of it."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        space = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        ends = [f"/{part}" for part in (name, sub) if part]
        return f"{root}{space}/{self.plural}{''.join(ends)}"


_KUBERNETES: Final = (
    Resource("", "v1", "pods", "Pod"),
    Resource("", "v1", "nodes", "Node", namespaced=False),
    Resource("", "v1", "namespaces", "Namespace", namespaced=False),
    Resource("", "v1", "events", "Event"),
    Resource("", "v1", "configmaps", "ConfigMap"),
    Resource("", "v1", "secrets", "Secret"),
    Resource("", "v1", "services", "Service"),
    Resource("", "v1", "serviceaccounts", "ServiceAccount"),
    Resource("", "v1", "resourcequotas", "ResourceQuota"),
    Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False),
    Resource("apps", "v1", "deployments", "Deployment"),
    Resource("apps", "v1", "replicasets", "ReplicaSet"),
    Resource("apps", "v1", "statefulsets", "StatefulSet"),
    Resource("apps", "v1", "daemonsets", "DaemonSet"),
    Resource("coordination.k8s.io", "v1", "leases", "Lease"),
    Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False),
    Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False),
    Resource("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False),
    Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", namespaced=False),
    Resource("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity"),
    Resource(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        namespaced=False,
    ),
)
_OURS: Final = tuple(
    Resource(info.group, info.version, info.plural, info.kind, not info.cluster_scoped, custom=True)
    for info in (kind.info for kind in KINDS)
)

# By kind. ``Job`` and ``CronJob`` are those of batch.volcano.sh; ``Event`` is that of the core API.
RESOURCES: Final[Mapping[str, Resource]] = MappingProxyType(
    {resource.kind: resource for resource in (*_KUBERNETES, *_OURS)}
)
