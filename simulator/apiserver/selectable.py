"""Which fields a field selector may name, and what an object says there.

Every kind has ``metadata.name`` and ``metadata.namespace``; the built-in ones below have more. Custom kinds
declare theirs in the CRD (``selectableFields``), and ``selectors`` reads those from the object itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Path = tuple[str, ...]


def _paths(*names: str) -> dict[str, Path]:
    return {name: tuple(name.split(".")) for name in names}


_EVENT_PARTS: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

SELECTABLE: Final[Mapping[str, Mapping[str, Path]]] = {
    "pods": _paths(
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "nodes": _paths("spec.unschedulable"),
    "namespaces": _paths("status.phase"),
    "secrets": _paths("type"),
    "events": {
        **_paths(*(f"involvedObject.{part}" for part in _EVENT_PARTS), "reason", "type"),
        **{f"regarding.{part}": ("involvedObject", part) for part in _EVENT_PARTS},
        "reportingComponent": ("reportingComponent",),
        "source": ("source", "component"),
    },
    "jobs.batch": _paths("status.successful"),
    "replicasets.apps": _paths("status.replicas"),
    "replicationcontrollers": _paths("status.replicas"),
    "certificatesigningrequests.certificates.k8s.io": _paths("spec.signerName"),
}
"""Bucket to field name to where it stands."""


def selectable_fields(bucket: str, document: Mapping[str, Any]) -> dict[str, str] | None:
    """What *document* says in the selectable fields of its bucket; None where it has none."""
    paths = SELECTABLE.get(bucket)
    if paths is None:
        return None
    return {name: field_text(document, path) for name, path in paths.items()}


def field_text(document: Mapping[str, Any], path: Path) -> str:
    """The value at *path* as a field selector writes it; "" where there is none."""
    value: Any = document
    for part in path:
        if not isinstance(value, Mapping):
            return ""
        value = value.get(part)
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
