"""``scale``: the replicas of whatever has some, as an autoscaling/v1 Scale."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from volcano_py.simulator.apiserver.objects import Objects
from volcano_py.simulator.apiserver.patching import patched
from volcano_py.simulator.apiserver.requests import Target, Write
from volcano_py.simulator.apiserver.schema.checks.causes import invalid
from volcano_py.simulator.apiserver.schema.kinds import Path, ScalePaths
from volcano_py.simulator.apiserver.schema.tables.columns import selector_text
from volcano_py.simulator.apiserver.status import Document, Refused, bad_request, unknown_resource


def read_scale(objects: Objects, target: Target) -> Document:
    """The Scale of an object.

    Raises:
        Refused: 404.
    """
    return _scale_of(objects.read(target), _paths_of(target))


def replace_scale(objects: Objects, target: Target, scale: Document, write: Write) -> Document:
    """Set the replicas to what *scale* says.

    Raises:
        Refused: 400, 404, 409 or 422.
    """
    paths = _paths_of(target)
    old = objects.read(target)
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        raise _negative(target.name, replicas)
    document = objects.read(target)
    _put(document, paths.replicas, replicas)
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version:
        document["metadata"]["resourceVersion"] = version
    return _scale_of(objects.save(target, document, old, write), paths)


def _negative(name: str, replicas: Any) -> Refused:
    cause = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
    details = {"name": name, "group": "autoscaling", "kind": "Scale", "causes": [cause._asdict()]}
    message = f'Scale.autoscaling "{name}" is invalid: {cause.field}: {cause.message}'
    return Refused(422, "Invalid", message, details=details)


def patch_scale(objects: Objects, target: Target, media_type: str, patch: Any, write: Write) -> Document:
    """Change the Scale by a patch.

    Raises:
        Refused: 400, 404, 409 or 422.
    """
    scale = read_scale(objects, target)
    changed = patched(target.kind, media_type, scale, patch)
    if not isinstance(changed.get("spec"), dict):
        raise bad_request("a Scale has a spec")
    return replace_scale(objects, target, changed, write)


def _paths_of(target: Target) -> ScalePaths:
    paths = target.kind.scale
    if paths is None:
        raise unknown_resource()
    if paths.selector is None and not target.kind.custom:
        return replace(paths, selector=("spec", "selector"))
    return paths


def _scale_of(document: Document, paths: ScalePaths) -> Document:
    metadata = document["metadata"]
    shown = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Document = {"replicas": _at(document, paths.status_replicas) or 0}
    selector = _at(document, paths.selector) if paths.selector else None
    if selector:
        status["selector"] = selector if isinstance(selector, str) else _selector_text(selector)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in shown if name in metadata},
        "spec": {"replicas": _at(document, paths.replicas) or 0},
        "status": status,
    }


def _selector_text(selector: Document) -> str:
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    return selector_text(selector)


def _at(document: Document, path: Path) -> Any:
    value: Any = document
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _put(document: Document, path: Path, value: Any) -> None:
    for part in path[:-1]:
        document = document.setdefault(part, {})
    document[path[-1]] = value
