"""Reads core Kubernetes objects: a manifest's mapping in, a frozen struct or a list of its faults out.

The structs live in ``meta.py``, ``pod.py`` and ``cluster.py``. What an API server would fill in is filled in:
the namespace ``default``, an absent null, an identity for objects that never met a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from volcano_py.scheduler.model.kube.cluster import (
    ConfigMap,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    PriorityClass,
    ResourceQuota,
    StorageClass,
)
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem, child
from volcano_py.scheduler.model.kube.meta import KubeObject, ObjectMeta
from volcano_py.scheduler.model.kube.pod import Container, Pod
from volcano_py.scheduler.model.kube.times import parse_time

__all__ = [
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "ConfigMap",
    "Container",
    "KubeObject",
    "Namespace",
    "Node",
    "ObjectError",
    "ObjectMeta",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "PriorityClass",
    "Problem",
    "ResourceQuota",
    "StorageClass",
    "decode",
]

# By API group and kind: fields we read are the same in all served versions of a group.
_KINDS: Mapping[tuple[str, str], type[KubeObject]] = {
    ("", "ConfigMap"): ConfigMap,
    ("", "Namespace"): Namespace,
    ("", "Node"): Node,
    ("", "PersistentVolume"): PersistentVolume,
    ("", "PersistentVolumeClaim"): PersistentVolumeClaim,
    ("", "Pod"): Pod,
    ("", "ResourceQuota"): ResourceQuota,
    ("policy", "PodDisruptionBudget"): PodDisruptionBudget,
    ("scheduling.k8s.io", "PriorityClass"): PriorityClass,
    ("storage.k8s.io", "CSIDriver"): CSIDriver,
    ("storage.k8s.io", "CSINode"): CSINode,
    ("storage.k8s.io", "CSIStorageCapacity"): CSIStorageCapacity,
    ("storage.k8s.io", "StorageClass"): StorageClass,
}
_STRING_MAPS = frozenset({"labels", "annotations", "nodeSelector", "matchLabels"})


def decode(doc: Mapping[str, Any]) -> KubeObject | None:
    """The object that *doc* describes, or ``None`` for a kind the engine doesn't know.

    Raises :class:`ObjectError` naming the fields when the object is one of ours and can't be read. Rules that
    go beyond types (selectors, amounts) are checked by the functions that read those fields.
    """
    kind = _kind_of(doc)
    if kind is None:
        return None
    prepared = _prepared(doc, kind)
    try:
        return msgspec.convert(prepared, kind)
    except msgspec.ValidationError:
        # Nulls are rare in real manifests, so only the ones that fail pay for dropping them.
        return _decode_without_nulls(prepared, kind)


def _kind_of(doc: Mapping[str, Any]) -> type[KubeObject] | None:
    version, kind = doc.get("apiVersion"), doc.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return None
    return _KINDS.get((version.rpartition("/")[0], kind))


def _prepared(doc: Mapping[str, Any], kind: type[KubeObject]) -> dict[str, Any]:
    """*doc* with identity filled in and times as seconds; the caller's mapping stays as it was."""
    meta = doc.get("metadata")
    name = meta.get("name") if isinstance(meta, Mapping) else None
    if not isinstance(meta, Mapping) or name is None or name == "":
        raise ObjectError(Problem("metadata.name", "an object needs a name"))
    namespace = (meta.get("namespace") or "default") if kind.namespaced else ""
    uid = meta.get("uid") or "/".join(str(part) for part in (kind.__name__, namespace, name) if part)
    meta = {**meta, "namespace": namespace, "uid": uid}
    _read_times(meta, "metadata", ("creationTimestamp", "deletionTimestamp"))
    prepared = {**doc, "metadata": meta}
    status = doc.get("status")
    if kind is Pod and isinstance(status, Mapping) and "startTime" in status:
        prepared["status"] = status = dict(status)
        _read_times(status, "status", ("startTime",))
    return prepared


def _read_times(part: dict[str, Any], path: str, keys: tuple[str, ...]) -> None:
    """Replace the times under *keys* of *part* by seconds; a null one goes."""
    for key in keys:
        if key not in part:
            continue
        written = part.pop(key)
        if written is None:
            continue
        try:
            part[key] = parse_time(written)
        except ValueError as error:
            raise ObjectError(Problem(child(path, key), str(error))) from error


def _decode_without_nulls(prepared: dict[str, Any], kind: type[KubeObject]) -> KubeObject:
    try:
        cleaned = _without_nulls(prepared)
    except RecursionError as error:
        raise ObjectError(Problem("", "nested too deeply")) from error
    try:
        return msgspec.convert(cleaned, kind)
    except msgspec.ValidationError as error:
        raise ObjectError(*_problems(str(error), cleaned)) from error


def _without_nulls(value: Any, key: str = "") -> Any:
    """*value* with null map entries gone; in maps of strings null is the empty text (API server)."""
    if isinstance(value, Mapping):
        if key in _STRING_MAPS:
            return {name: "" if text is None else text for name, text in value.items()}
        return {name: _without_nulls(item, name) for name, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_nulls(item) for item in value]
    return value


def _problems(message: str, doc: Mapping[str, Any]) -> tuple[Problem, ...]:
    """The decoder's one complaint as problems with our field paths; it doesn't name map entries, we do."""
    text, _, where = message.partition(" - at ")
    of_key = where.startswith("`key` in ")
    path = where.removeprefix("`key` in ").strip("`").removeprefix("$").lstrip(".")
    if not of_key and not path.endswith("[...]"):
        return (Problem(path, text),)
    path = path.removesuffix("[...]")
    wrong = {
        key: item for key, item in _at(doc, path).items() if not isinstance(key if of_key else item, str)
    }
    return tuple(Problem(child(path, str(key)), f"{text} ({key!r}: {item!r})") for key, item in wrong.items())


def _at(doc: Any, path: str) -> Mapping[Any, Any]:
    """The map at *path* of a document, where the decoder found it."""
    for step in path.replace("[", ".").replace("]", "").split(".") if path else ():
        doc = doc[int(step)] if isinstance(doc, list) else doc[step]
    result: Mapping[Any, Any] = doc
    return result
