"""Small objects for tests, and what their models say of them."""

from typing import Any

import pytest
from pydantic import ValidationError

from volcano_py.crds.base import CrdObject, validation_messages
from volcano_py.crds.objects import KINDS, parse_object

API_VERSIONS = {kind.info.kind: kind.info.api_version for kind in KINDS}
TASK: dict[str, Any] = {"name": "worker", "replicas": 2, "template": {"spec": {"containers": []}}}


def manifest(kind: str, spec: Any = None, **top: Any) -> dict[str, Any]:
    """An object of *kind* named ``a``; *top* replaces its top-level fields."""
    document = {"apiVersion": API_VERSIONS[kind], "kind": kind, "metadata": {"name": "a"}} | top
    return document if spec is None else document | {"spec": spec}


def job(**spec: Any) -> dict[str, Any]:
    """A Job with one task of two pods; *spec* replaces fields of its spec."""
    return manifest("Job", {"tasks": [TASK]} | spec)


def parsed(document: dict[str, Any]) -> CrdObject:
    """The model of *document*, which must be of a kind of ours and right."""
    found = parse_object(document)
    assert found is not None
    return found


def faults(document: dict[str, Any]) -> list[tuple[str, str]]:
    """What is wrong with *document*; it must not be right."""
    with pytest.raises(ValidationError) as caught:
        parse_object(document)
    return validation_messages(caught.value)
