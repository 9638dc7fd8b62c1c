"""What makes pods: deployments, sets and jobs."""

from __future__ import annotations

from typing import Final

from volcano_py.simulator.apiserver.defaults.pods import default_template
from volcano_py.simulator.apiserver.status import Document

_PROGRESS_S: Final = 600
_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def default_deployment(deployment: Document) -> None:
    """Fill in a Deployment's defaults."""
    spec = _spec(deployment)
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", _PROGRESS_S)
    strategy = spec.setdefault("strategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxSurge", "25%")
        rolling.setdefault("maxUnavailable", "25%")


def default_replica_set(replica_set: Document) -> None:
    """Fill in a ReplicaSet's defaults."""
    _spec(replica_set).setdefault("replicas", 1)
    replica_set.setdefault("status", {}).setdefault("replicas", 0)


def default_stateful_set(stateful_set: Document) -> None:
    """Fill in a StatefulSet's defaults."""
    spec = _spec(stateful_set)
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    spec.setdefault("persistentVolumeClaimRetentionPolicy", {"whenDeleted": "Retain", "whenScaled": "Retain"})
    status = stateful_set.setdefault("status", {})
    status.setdefault("replicas", 0)
    status.setdefault("availableReplicas", 0)


def default_daemon_set(daemon_set: Document) -> None:
    """Fill in a DaemonSet's defaults."""
    spec = _spec(daemon_set)
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxSurge", 0)
        rolling.setdefault("maxUnavailable", 1)
    annotations = daemon_set["metadata"].get("annotations") or {}
    daemon_set["metadata"]["annotations"] = {_TEMPLATE_GENERATION: "1", **annotations}
    status = daemon_set.setdefault("status", {})
    for name in ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"):
        status.setdefault(name, 0)


def default_job(job: Document) -> None:
    """Fill in a batch/v1 Job's defaults."""
    _default_job_spec(_spec(job))


def default_cron_job(cron_job: Document) -> None:
    """Fill in a CronJob's defaults."""
    spec = cron_job.setdefault("spec", {})
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    template = spec.setdefault("jobTemplate", {})
    template.setdefault("metadata", {})
    job_spec = template.setdefault("spec", {})
    default_template(job_spec.get("template"))


def _default_job_spec(spec: Document) -> None:
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")


def _spec(workload: Document) -> Document:
    spec: Document = workload.setdefault("spec", {})
    default_template(spec.get("template"))
    return spec
