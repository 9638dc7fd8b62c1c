"""Pods for these tests, as a server sends them."""

from __future__ import annotations

from typing import Any

import msgspec

from volcano_py.simulator.kubelet.podview import PodView, decode_pod


def document(
    name: str = "a", *, node: str = "", notes: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """A pod of one container that runs the image's own program."""
    containers = spec.pop("containers", [{"name": "main", "image": "busybox"}])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "annotations": notes or {}},
        "spec": {"containers": containers, **({"nodeName": node} if node else {}), **spec},
    }


def view(
    *, notes: dict[str, str] | None = None, status: dict[str, Any] | None = None, **parts: Any
) -> PodView:
    """The same as a kubelet reads it; *parts* go into the metadata, ``spec`` into the spec."""
    made = document(notes=notes, **parts.pop("spec", {}))
    made["metadata"] |= {"uid": "u1", "resourceVersion": "1", **parts}
    made["spec"]["nodeName"] = "node-0"
    made["status"] = status or {"phase": "Pending"}
    return decode_pod(msgspec.json.encode(made))
