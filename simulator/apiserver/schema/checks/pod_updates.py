"""What may change in a pod that exists, and in its status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from volcano_py.simulator.apiserver.schema.checks.causes import each, forbidden, immutable, invalid
from volcano_py.simulator.apiserver.schema.checks.names import qualified_faults, subdomain_faults
from volcano_py.simulator.apiserver.schema.kinds import Cause, Document

Part = Mapping[str, Any]

_FIXED = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_CHANGEABLE = ("activeDeadlineSeconds", "tolerations", "schedulingGates", "containers", "initContainers")


def pod_update_faults(new: Document, old: Document) -> Iterator[Cause]:
    """Changes of a pod's spec that are not allowed."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    for name in ("containers", "initContainers"):
        if len(spec.get(name) or ()) != len(before.get(name) or ()):
            yield forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return
    yield from _deadline_faults(spec, before)
    yield from _toleration_faults(spec, before)
    yield from _gate_faults(spec, before)
    gated = bool(before.get("schedulingGates"))
    if gated:
        yield from _node_selector_faults(spec, before)
    if _fixed(spec, before, gated) != _fixed(before, before, gated):
        yield forbidden("spec", _FIXED)


def _fixed(spec: Part, before: Part, gated: bool) -> dict[str, Any]:
    """The spec without what may change."""
    kept = {name: value for name, value in spec.items() if name not in _CHANGEABLE}
    for name in ("containers", "initContainers"):
        kept[name] = [{**one, "image": ""} for one in spec.get(name) or ()]
    if before.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        kept["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    if gated:
        kept.pop("nodeSelector", None)
        kept.pop("affinity", None)
    return kept


def _deadline_faults(spec: Part, before: Part) -> Iterator[Cause]:
    new, old = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    field = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            yield invalid(field, new, "must not update from a positive integer to nil value")
    elif old is not None and new > old:
        yield invalid(field, new, "must be less than or equal to previous value")


def _toleration_faults(spec: Part, before: Part) -> Iterator[Cause]:
    def plain(one: Part) -> dict[str, Any]:
        return {name: value for name, value in one.items() if name != "tolerationSeconds"}

    kept = [plain(one) for one in spec.get("tolerations") or ()]
    if any(plain(one) not in kept for one in before.get("tolerations") or ()):
        yield forbidden(
            "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
        )


def _gate_faults(spec: Part, before: Part) -> Iterator[Cause]:
    known = {one.get("name") for one in before.get("schedulingGates") or ()}
    for position, one in enumerate(spec.get("schedulingGates") or ()):
        if one.get("name") not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{one.get('name')}'"
            yield forbidden(f"spec.schedulingGates[{position}].name", detail)


def _node_selector_faults(spec: Part, before: Part) -> Iterator[Cause]:
    new, old = spec.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if any(new.get(key) != value for key, value in old.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid("spec.nodeSelector", new, detail)


def status_faults(new: Document, old: Document) -> Iterator[Cause]:
    """Statuses that are not allowed."""
    status, before = new.get("status") or {}, old.get("status") or {}
    if before.get("qosClass") is not None:
        yield from immutable(
            "status.qosClass", status.get("qosClass", before["qosClass"]), before["qosClass"]
        )
    if name := status.get("nominatedNodeName"):
        yield from each("status.nominatedNodeName", name, subdomain_faults(name))
    for position, one in enumerate(status.get("conditions") or ()):
        kind = one.get("type", "")
        yield from each(f"status.conditions[{position}].Type", kind, qualified_faults(kind))
