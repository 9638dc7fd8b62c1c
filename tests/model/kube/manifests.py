"""Short ways to write the manifests that these tests read."""

from collections.abc import Mapping
from typing import Any

from volcano_py.scheduler.model.kube.objects import Node, Pod, decode


def pod(
    *containers: Mapping[str, Any],
    status: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    name: str = "p",
    **spec: Any,
) -> Pod:
    """A pod of namespace ``ns`` as the engine reads it; *spec* in the API's spelling."""
    doc = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "labels": dict(labels or {})},
        "spec": {"containers": list(containers), **spec},
        "status": status or {},
    }
    read = decode(doc)
    assert isinstance(read, Pod)
    return read


def node(spec: Mapping[str, Any] | None = None, **status: Any) -> Node:
    """A node ``n`` with *spec* and *status*."""
    doc = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "spec": spec or {},
        "status": status,
    }
    read = decode(doc)
    assert isinstance(read, Node)
    return read


def asking(name: str = "c", limits: Mapping[str, Any] | None = None, **requests: Any) -> dict[str, Any]:
    """A container with *requests*; an underscore stands for a dash."""
    resources: dict[str, Any] = {
        "requests": {key.replace("_", "-"): value for key, value in requests.items()}
    }
    if limits is not None:
        resources["limits"] = dict(limits)
    return {"name": name, "resources": resources}


def sidecar(**requests: Any) -> dict[str, Any]:
    """An init container that runs on beside the app containers."""
    return {**asking("sidecar", **requests), "restartPolicy": "Always"}
