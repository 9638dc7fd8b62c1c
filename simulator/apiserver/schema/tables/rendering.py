"""Objects as a Table, the form that ``kubectl get`` asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from volcano_py.simulator.apiserver.schema.custom import CustomKind
from volcano_py.simulator.apiserver.schema.kinds import ServedKind
from volcano_py.simulator.apiserver.schema.tables import cluster, pods, storage, workloads
from volcano_py.simulator.apiserver.schema.tables.columns import Column, Document
from volcano_py.simulator.apiserver.schema.tables.custom_columns import columns as custom_columns

# By the place where objects are kept. What is not named here shows its name and when it was made.
_COLUMNS: Mapping[str, list[Column]] = {
    "clusterrolebindings.rbac.authorization.k8s.io": cluster.BINDINGS,
    "configmaps": cluster.CONFIG_MAPS,
    "cronjobs.batch": workloads.CRON_JOBS,
    "csidrivers.storage.k8s.io": storage.CSI_DRIVERS,
    "csinodes.storage.k8s.io": storage.CSI_NODES,
    "daemonsets.apps": workloads.DAEMON_SETS,
    "deployments.apps": workloads.DEPLOYMENTS,
    "events": cluster.EVENTS,
    "jobs.batch": workloads.JOBS,
    "leases.coordination.k8s.io": cluster.LEASES,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": cluster.WEBHOOKS,
    "namespaces": cluster.NAMESPACES,
    "networkpolicies.networking.k8s.io": cluster.NETWORK_POLICIES,
    "nodes": cluster.NODES,
    "persistentvolumeclaims": storage.CLAIMS,
    "persistentvolumes": storage.VOLUMES,
    "poddisruptionbudgets.policy": cluster.BUDGETS,
    "pods": pods.COLUMNS,
    "priorityclasses.scheduling.k8s.io": cluster.PRIORITY_CLASSES,
    "replicasets.apps": workloads.REPLICA_SETS,
    "replicationcontrollers": workloads.REPLICATION_CONTROLLERS,
    "resourcequotas": cluster.QUOTAS,
    "rolebindings.rbac.authorization.k8s.io": cluster.BINDINGS,
    "runtimeclasses.node.k8s.io": cluster.RUNTIME_CLASSES,
    "secrets": cluster.SECRETS,
    "serviceaccounts": cluster.AGED,
    "services": storage.SERVICES,
    "statefulsets.apps": workloads.STATEFUL_SETS,
    "storageclasses.storage.k8s.io": storage.CLASSES,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": cluster.WEBHOOKS,
}


def columns_of(kind: ServedKind) -> list[Column]:
    """The columns of a kind."""
    if isinstance(kind, CustomKind):
        return custom_columns(kind.columns)
    return _COLUMNS.get(kind.bucket, cluster.DATED)


def table(
    kind: ServedKind,
    documents: Sequence[Document],
    include: str,
    *,
    metadata: Mapping[str, Any],
    headers: bool,
    now: float,
) -> dict[str, Any]:
    """The Table of some objects of one kind.

    Args:
        kind: What they are.
        documents: The objects, as the stored version spells them.
        include: What of an object goes with its row: ``Metadata``, ``Object`` or ``None``.
        metadata: Of the list.
        headers: Whether columns are described; a watch does that once.
        now: Seconds since 1970.
    """
    columns = columns_of(kind)
    document: dict[str, Any] = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    # A later message of a watch says null, as the real server does.
    document["columnDefinitions"] = [_heading(column) for column in columns] if headers else None
    document["rows"] = [_row(kind, columns, one, include, now) for one in documents]
    return document


def _heading(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description or column.name,
        "priority": column.priority,
    }


def _row(kind: ServedKind, columns: list[Column], one: Document, include: str, now: float) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": [column.cell(one, now) for column in columns]}
    if kind.bucket == "pods" and (conditions := list(pods.row_conditions(one))):
        row["conditions"] = conditions
    return {**row, "object": _included(one, include)}


def _included(one: Document, include: str) -> Document | None:
    if include == "None":
        return None
    if include == "Object":
        return one
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": one.get("metadata", {}),
    }
