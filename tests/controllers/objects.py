"""Pods, ReplicaSets and queues for the tests, as documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCHEDULER = "volcano-py"


def owner(kind: str, name: str, uid: str, *, controller: bool = True) -> dict[str, Any]:
    api_version = "apps/v1" if kind.endswith("Set") else "batch/v1" if kind == "Job" else "v1"
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": controller}


def pod_parts(
    *owners: Mapping[str, Any],
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    requests: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    scheduler: str = SCHEDULER,
    **spec: Any,
) -> dict[str, Any]:
    resources = {"requests": dict(requests or {"cpu": "1"}), "limits": dict(limits or {})}
    return {
        "metadata": {
            "annotations": dict(annotations or {}),
            "labels": dict(labels or {}),
            **({"ownerReferences": [dict(it) for it in owners]} if owners else {}),
        },
        "spec": {"schedulerName": scheduler, "containers": [{"name": "c", "resources": resources}], **spec},
        "status": {"phase": "Pending"},
    }


def workload_parts(
    replicas: int, annotations: Mapping[str, str] | None = None, **status: Any
) -> dict[str, Any]:
    return {
        "metadata": {"annotations": dict(annotations or {})},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"spec": {"schedulerName": SCHEDULER}},
        },
        "status": status,
    }
