"""What the real server asks of built-in kinds, as far as schedulers and their users meet it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from volcano_py.simulator.apiserver.schema.checks import (
    definitions,
    pods,
    scheduling,
    storage,
    workloads,
)
from volcano_py.simulator.apiserver.schema.kinds import Cause, Document

__all__ = ["CHECKS", "Check"]

# Takes the new object, what is stored (None on create) and the subresource ("" for none).
Check = Callable[[Document, Document | None, str], Iterable[Cause]]

# By group and kind.
CHECKS: dict[tuple[str, str], Check] = {
    ("", "ConfigMap"): storage.config_map_faults,
    ("", "Event"): scheduling.event_faults,
    ("", "LimitRange"): scheduling.limit_range_faults,
    ("", "Node"): scheduling.node_faults,
    ("", "PersistentVolume"): storage.volume_faults,
    ("", "PersistentVolumeClaim"): storage.claim_faults,
    ("", "Pod"): pods.pod_faults,
    ("", "ResourceQuota"): scheduling.resource_quota_faults,
    ("", "Secret"): storage.secret_faults,
    ("", "Service"): storage.service_faults,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): definitions.crd_faults,
    ("apps", "DaemonSet"): workloads.replicated_faults,
    ("apps", "Deployment"): workloads.replicated_faults,
    ("apps", "ReplicaSet"): workloads.replicated_faults,
    ("apps", "StatefulSet"): workloads.replicated_faults,
    ("batch", "CronJob"): workloads.cron_job_faults,
    ("batch", "Job"): workloads.job_faults,
    ("coordination.k8s.io", "Lease"): scheduling.lease_faults,
    ("events.k8s.io", "Event"): scheduling.new_event_faults,
    ("policy", "PodDisruptionBudget"): scheduling.budget_faults,
    ("rbac.authorization.k8s.io", "ClusterRole"): storage.role_faults,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): storage.cluster_binding_faults,
    ("rbac.authorization.k8s.io", "Role"): storage.role_faults,
    ("rbac.authorization.k8s.io", "RoleBinding"): storage.binding_faults,
    ("scheduling.k8s.io", "PriorityClass"): scheduling.priority_class_faults,
    ("storage.k8s.io", "StorageClass"): storage.storage_class_faults,
}
