"""What the server fills in where a built-in object leaves it out, as clients can see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from volcano_py.simulator.apiserver.defaults.nodes import default_node
from volcano_py.simulator.apiserver.defaults.pods import default_pod
from volcano_py.simulator.apiserver.defaults.services import default_service
from volcano_py.simulator.apiserver.defaults.small import (
    default_definition,
    default_namespace,
    default_pdb,
    default_priority_class,
    default_secret,
    default_storage_class,
    default_volume,
    default_volume_claim,
)
from volcano_py.simulator.apiserver.defaults.workloads import (
    default_cron_job,
    default_daemon_set,
    default_deployment,
    default_job,
    default_replica_set,
    default_stateful_set,
)
from volcano_py.simulator.apiserver.status import Document

_DEFAULTS: Final[Mapping[str, Callable[[Document], None]]] = {
    "pods": default_pod,
    "nodes": default_node,
    "namespaces": default_namespace,
    "secrets": default_secret,
    "services": default_service,
    "persistentvolumes": default_volume,
    "persistentvolumeclaims": default_volume_claim,
    "storageclasses.storage.k8s.io": default_storage_class,
    "priorityclasses.scheduling.k8s.io": default_priority_class,
    "poddisruptionbudgets.policy": default_pdb,
    "customresourcedefinitions.apiextensions.k8s.io": default_definition,
    "deployments.apps": default_deployment,
    "replicasets.apps": default_replica_set,
    "statefulsets.apps": default_stateful_set,
    "daemonsets.apps": default_daemon_set,
    "jobs.batch": default_job,
    "cronjobs.batch": default_cron_job,
}


def fill_defaults(bucket: str, document: Document) -> None:
    """Fill in the defaults of a built-in kind, in place; kinds without defaults are left alone."""
    fill = _DEFAULTS.get(bucket)
    if fill is not None:
        fill(document)


__all__ = ["fill_defaults"]
