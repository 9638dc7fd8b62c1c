"""A document (as read from YAML or JSON) into the object the state takes in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from volcano_py.crds.messages import validation_messages
from volcano_py.crds.objects import parse_object
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem, not_text
from volcano_py.scheduler.model.kube.objects import decode

_WITHOUT_NAMESPACE: Final = frozenset(
    [
        "Node",
        "Queue",
        "PriorityClass",
        "Namespace",
        "PersistentVolume",
        "StorageClass",
        "CSINode",
        "CSIDriver",
    ]
)
"""Kinds that the state takes in and that live outside namespaces."""


def decode_object(document: Mapping[str, Any]) -> object | None:
    """The object in *document*; None for kinds nobody here knows.

    Raises:
        ObjectError: naming every field that is wrong.
    """
    try:
        return _decoded(document)
    except UnicodeEncodeError as error:
        raise ObjectError(not_text(error)) from error


def _decoded(document: Mapping[str, Any]) -> object | None:
    try:
        parsed = parse_object(dict(document))
    except ValidationError as error:
        raise ObjectError(
            *(Problem(path, message) for path, message in validation_messages(error))
        ) from error
    return parsed if parsed is not None else decode(document)


def identity_of(document: Mapping[str, Any]) -> tuple[str, str]:
    """Kind and key of a document that can't be decoded, as far as it says."""
    meta = document.get("metadata")
    name = str(meta.get("name") or "") if isinstance(meta, Mapping) else ""
    space = str(meta.get("namespace") or "default") if isinstance(meta, Mapping) else ""
    kind = str(document.get("kind") or "Object")
    return kind, name if kind in _WITHOUT_NAMESPACE else f"{space}/{name}"
