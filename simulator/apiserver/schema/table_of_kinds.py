"""The built-in kinds that are served: one row for each, as ``kubectl api-resources`` shows them.

Left out are kinds that only make sense with machines or other servers behind them (flow control,
aggregated API servers, component statuses) and old versions.
"""

from __future__ import annotations

from typing import NamedTuple

from volcano_py.simulator.apiserver.schema.kinds import EVERY_VERB, Names

CREATE_ONLY = frozenset({"create"})
# A namespace goes one at a time: what is in it has to go first.
NOT_AS_A_COLLECTION = EVERY_VERB - {"deletecollection"}


class Row(NamedTuple):
    """One built-in kind.

    Attributes:
        model: The class of ``kubernetes.client.models`` that says its fields.
        bucket: Where its objects are kept; "" for ``plural.group``.
    """

    group: str
    version: str
    names: Names
    namespaced: bool
    subresources: frozenset[str]
    verbs: frozenset[str]
    model: str
    bucket: str


def row(
    group: str,
    kind: str,
    plural: str,
    short: str = "",
    *,
    of: str = "namespace",
    subs: str = "",
    categories: str = "",
    verbs: frozenset[str] = EVERY_VERB,
    version: str = "v1",
    model: str = "",
    bucket: str = "",
) -> Row:
    """A row whose lists are written with spaces; *of* is ``namespace`` or ``cluster``."""
    singular = plural if kind == "Endpoints" else kind.lower()
    names = Names(kind, plural, singular, kind + "List", tuple(short.split()), tuple(categories.split()))
    subresources = frozenset(subs.split())
    model = model or version.title() + kind
    return Row(group, version, names, of == "namespace", subresources, verbs, model, bucket)


_APPS = "apps"
_ADMISSION = "admissionregistration.k8s.io"
_AUTHENTICATION = "authentication.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"
_NETWORKING = "networking.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_RESOURCE = "resource.k8s.io"
_STORAGE = "storage.k8s.io"
_POD_SUBRESOURCES = "status binding eviction log ephemeralcontainers resize"

# In the order in which the real server lists the groups.
ROWS: tuple[Row, ...] = (
    row("", "Binding", "bindings", verbs=CREATE_ONLY),
    row("", "ConfigMap", "configmaps", "cm"),
    row("", "Endpoints", "endpoints", "ep"),
    row("", "Event", "events", "ev", model="CoreV1Event", bucket="events"),
    row("", "LimitRange", "limitranges", "limits"),
    row("", "Namespace", "namespaces", "ns", of="cluster", subs="status finalize", verbs=NOT_AS_A_COLLECTION),
    row("", "Node", "nodes", "no", of="cluster", subs="status"),
    row("", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", subs="status"),
    row("", "PersistentVolume", "persistentvolumes", "pv", of="cluster", subs="status"),
    row("", "Pod", "pods", "po", subs=_POD_SUBRESOURCES, categories="all"),
    row("", "PodTemplate", "podtemplates"),
    row("", "ReplicationController", "replicationcontrollers", "rc", subs="status scale", categories="all"),
    row("", "ResourceQuota", "resourcequotas", "quota", subs="status"),
    row("", "Secret", "secrets"),
    row("", "ServiceAccount", "serviceaccounts", "sa", subs="token"),
    row("", "Service", "services", "svc", subs="status", categories="all"),
    row(_APPS, "ControllerRevision", "controllerrevisions"),
    row(_APPS, "DaemonSet", "daemonsets", "ds", subs="status", categories="all"),
    row(_APPS, "Deployment", "deployments", "deploy", subs="status scale", categories="all"),
    row(_APPS, "ReplicaSet", "replicasets", "rs", subs="status scale", categories="all"),
    row(_APPS, "StatefulSet", "statefulsets", "sts", subs="status scale", categories="all"),
    row("events.k8s.io", "Event", "events", "ev", model="EventsV1Event", bucket="events"),
    row(_AUTHENTICATION, "SelfSubjectReview", "selfsubjectreviews", of="cluster", verbs=CREATE_ONLY),
    row(_AUTHENTICATION, "TokenReview", "tokenreviews", of="cluster", verbs=CREATE_ONLY),
    row(_AUTHORIZATION, "LocalSubjectAccessReview", "localsubjectaccessreviews", verbs=CREATE_ONLY),
    row(
        _AUTHORIZATION, "SelfSubjectAccessReview", "selfsubjectaccessreviews", of="cluster", verbs=CREATE_ONLY
    ),
    row(_AUTHORIZATION, "SelfSubjectRulesReview", "selfsubjectrulesreviews", of="cluster", verbs=CREATE_ONLY),
    row(_AUTHORIZATION, "SubjectAccessReview", "subjectaccessreviews", of="cluster", verbs=CREATE_ONLY),
    row(
        "autoscaling",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "hpa",
        subs="status",
        categories="all",
        version="v2",
    ),
    row("batch", "CronJob", "cronjobs", "cj", subs="status", categories="all"),
    row("batch", "Job", "jobs", subs="status", categories="all"),
    row(
        "certificates.k8s.io",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        "csr",
        of="cluster",
        subs="status approval",
    ),
    row(_NETWORKING, "IngressClass", "ingressclasses", of="cluster"),
    row(_NETWORKING, "Ingress", "ingresses", "ing", subs="status"),
    row(_NETWORKING, "NetworkPolicy", "networkpolicies", "netpol"),
    row("policy", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", subs="status"),
    row(_RBAC, "ClusterRoleBinding", "clusterrolebindings", of="cluster"),
    row(_RBAC, "ClusterRole", "clusterroles", of="cluster"),
    row(_RBAC, "RoleBinding", "rolebindings"),
    row(_RBAC, "Role", "roles"),
    row(_STORAGE, "CSIDriver", "csidrivers", of="cluster"),
    row(_STORAGE, "CSINode", "csinodes", of="cluster"),
    row(_STORAGE, "CSIStorageCapacity", "csistoragecapacities"),
    row(_STORAGE, "StorageClass", "storageclasses", "sc", of="cluster"),
    row(_STORAGE, "VolumeAttachment", "volumeattachments", of="cluster", subs="status"),
    row(
        _ADMISSION,
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        of="cluster",
        categories="api-extensions",
    ),
    row(
        _ADMISSION,
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        of="cluster",
        categories="api-extensions",
    ),
    row(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "crd crds",
        of="cluster",
        subs="status",
        categories="api-extensions",
    ),
    row("scheduling.k8s.io", "PriorityClass", "priorityclasses", "pc", of="cluster"),
    row("coordination.k8s.io", "Lease", "leases"),
    row("node.k8s.io", "RuntimeClass", "runtimeclasses", of="cluster"),
    row("discovery.k8s.io", "EndpointSlice", "endpointslices"),
    row(_RESOURCE, "DeviceClass", "deviceclasses", of="cluster"),
    row(_RESOURCE, "ResourceClaim", "resourceclaims", subs="status", model="ResourceV1ResourceClaim"),
    row(_RESOURCE, "ResourceClaimTemplate", "resourceclaimtemplates"),
    row(_RESOURCE, "ResourceSlice", "resourceslices", of="cluster"),
)
