"""PodGroup documents, as the controllers write them.

Neighbours: ``job_objects`` (groups of Jobs) and ``expand`` (groups of single pods).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from volcano_py.crds.annotations import GROUP_QUEUE
from volcano_py.crds.quantity import format_base
from volcano_py.scheduler.model.queues import DEFAULT_QUEUE
from volcano_py.simulator.present import Document, Present, part

NOT_INHERITED: Final = "kubectl.kubernetes.io/"


def pod_group(
    meta: Mapping[str, Any], spec: Mapping[str, Any], members: Iterable[Document], present: Present
) -> Document:
    """A PodGroup; its queue, where that is the default one, is the one its namespace is given.

    It starts Pending, so that the gate decides, unless *members* that have a node already reach its
    minimum: such a group has passed the gate before.
    """
    queue = spec.get("queue") or DEFAULT_QUEUE
    if queue == DEFAULT_QUEUE:
        namespace = present.get("Namespace", "", str(meta["namespace"]))
        queue = part(namespace, "metadata", "annotations").get(GROUP_QUEUE, DEFAULT_QUEUE)
    document: Document = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {key: value for key, value in meta.items() if value},
        "spec": {
            **{key: value for key, value in spec.items() if value not in (None, "", {}, [])},
            "queue": queue,
        },
    }
    placed = sum(bool(part(member, "spec").get("nodeName")) for member in members)
    minimum = spec.get("minMember")
    if placed and isinstance(minimum, int) and placed >= minimum:
        document["status"] = {"phase": "Running"}
    return document


def amounts_text(amounts: Mapping[str, int]) -> dict[str, str]:
    """*amounts* in base units as Kubernetes writes them."""
    return {name: format_base(name, amount) for name, amount in amounts.items()}


def inherited(annotations: Mapping[str, Any]) -> dict[str, Any]:
    """Those of *annotations* that mean something for the members too."""
    return {key: value for key, value in annotations.items() if not key.startswith(NOT_INHERITED)}
