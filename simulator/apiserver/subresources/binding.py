"""``pods/binding``: a pod gets its node, once."""

from __future__ import annotations

from volcano_py.simulator.apiserver import metadata as meta
from volcano_py.simulator.apiserver.objects import Objects
from volcano_py.simulator.apiserver.requests import Target, Write
from volcano_py.simulator.apiserver.schema.kinds import Cause
from volcano_py.simulator.apiserver.status import Document, Refused, conflict, not_found

DONE: Document = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def bind(objects: Objects, target: Target, binding: Document, write: Write) -> Document:
    """Assign the pod to the node that *binding* names; its annotations and labels go onto the pod.

    Raises:
        Refused: 404; 409 where the pod has a node, is going, or is another pod than the binding means; 422.
    """
    metadata: Document = binding.get("metadata") or {}
    node = _node_of(target, binding)
    item = objects.store.get("pods", target.namespace, target.name)
    if item is None:
        raise not_found(target.kind, target.name)
    if metadata.get("uid") and metadata["uid"] != item.uid:
        why = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {item.uid}"
        raise conflict(target.kind, target.name, why)
    if metadata.get("resourceVersion") and metadata["resourceVersion"] != str(item.version):
        raise _refused(target, "Precondition failed: ResourceVersion")
    pod = item.document()
    _check_free(target, pod)
    _assign(pod, node, metadata, meta.timestamp(objects.clock()))
    if not write.dry_run:
        objects.store.put("pods", pod)
    return DONE


def _node_of(target: Target, binding: Document) -> str:
    place: Document = binding.get("target") or {}
    causes = []
    if place.get("kind") not in (None, "", "Node"):
        why = f'Unsupported value: "{place["kind"]}": supported values: "Node", "<empty>"'
        causes.append(Cause("FieldValueNotSupported", why, "target.kind"))
    if not place.get("name"):
        causes.append(Cause("FieldValueRequired", "Required value", "target.name"))
    if causes:
        # The real server answers so too: the faults of a binding are no Status of their own.
        said = [f"{cause.field}: {cause.message}" for cause in causes]
        raise Refused(500, "", said[0] if len(said) == 1 else f"[{', '.join(said)}]")
    return str(place["name"])


def _check_free(target: Target, pod: Document) -> None:
    spec: Document = pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        raise _refused(target, f"pod {target.name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _refused(target, f'pod {target.name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _refused(target, f"pod {target.name} has non-empty .spec.schedulingGates")


def _refused(target: Target, why: str) -> Refused:
    refused = conflict(target.kind, target.name, why)
    refused.message = f'Operation cannot be fulfilled on pods/binding "{target.name}": {why}'
    refused.details["kind"] = "pods/binding"
    return refused


def _assign(pod: Document, node: str, metadata: Document, now: str) -> None:
    pod["spec"]["nodeName"] = node
    for name in ("annotations", "labels"):
        if metadata.get(name):
            pod["metadata"][name] = {**(pod["metadata"].get(name) or {}), **metadata[name]}
    status = pod.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    set_condition(status, {"type": "PodScheduled", "status": "True"}, now)


def set_condition(status: Document, condition: Document, now: str) -> None:
    """Put *condition* among the conditions; its time moves only when its status does."""
    conditions = status.get("conditions") or []
    before = next((one for one in conditions if one.get("type") == condition["type"]), None)
    kept = before is not None and before.get("status") == condition["status"]
    since = before["lastTransitionTime"] if before is not None and kept else now
    written = {
        "type": condition["type"],
        "status": condition["status"],
        "lastProbeTime": None,
        "lastTransitionTime": since,
        **condition,
    }
    if before is None:
        status["conditions"] = [*conditions, written]
    else:
        status["conditions"] = [written if one is before else one for one in conditions]
