"""What a pod counts for in a quota, which is what a PodGroup made for it asks for at the gate.

Source: Volcano's podgroup controller takes Kubernetes' quota usage of the pod: the amounts that it requests
under their own names and as ``requests.<name>``, limits as ``limits.<name>``, and one of ``pods`` and
``count/pods``. The engine reads the plain names; quota names serve who compares with a ResourceQuota.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from volcano_py.crds.quantity import format_base
from volcano_py.scheduler.model.kube.pod import NO_RESOURCES, Container, Pod, Resources
from volcano_py.scheduler.model.kube.request import pod_request

__all__ = ["min_resources"]

_LIMITED: Final = ("cpu", "memory", "ephemeral-storage")


def min_resources(pod: Pod, members: int) -> dict[str, str]:
    """What *members* pods like *pod* need, resource to quantity; nothing for no members.

    Raises ``ObjectError`` for amounts that are no quantities.
    """
    if not members:
        return {}
    found = {"pods": str(members), "count/pods": str(members)}
    for name, amount in pod_request(pod).items():
        found[name] = found[f"requests.{name}"] = format_base(name, amount * members)
    for name, amount in _limits(pod).items():
        found[f"limits.{name}"] = format_base(name, amount * members)
    return found


def _limits(pod: Pod) -> Mapping[str, int]:
    """The pod's limits, added up as requests are: only of what some container limits."""
    spec = pod.spec
    as_requests = msgspec.structs.replace(
        spec,
        containers=tuple(_limited(it) for it in spec.containers),
        init_containers=tuple(_limited(it) for it in spec.init_containers),
        resources=Resources(requests=spec.resources.limits),
    )
    asked = (spec.resources, *(it.resources for it in (*spec.containers, *spec.init_containers)))
    limited = {name for resources in asked for name in resources.limits}
    total = pod_request(msgspec.structs.replace(pod, spec=as_requests))
    return {name: total[name] for name in _LIMITED if name in limited and name in total}


def _limited(container: Container) -> Container:
    limits = container.resources.limits
    return msgspec.structs.replace(
        container, resources=Resources(requests=limits) if limits else NO_RESOURCES
    )
