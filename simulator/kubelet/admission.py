"""Whether a pod has room on its node, which a kubelet asks before it starts one.

Whoever binds pods has to know this beforehand; a kubelet that refuses shows that somebody did not. Reasons
and sentences are a real kubelet's (1.36). What a node reports beside the amounts of the machine counts as
handed out by a device plugin; what it does not report is not looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from volcano_py.scheduler.model.kube.request import amounts
from volcano_py.simulator.kubelet.podview import Container, PodView, Resources

Amounts = Mapping[str, int]
"""By resource, in base units: milli-CPU, bytes, milli of everything else."""
_OWN: Final = ("pods", "cpu", "memory", "ephemeral-storage")
"""What a kubelet itself measures, in the order in which it complains."""
_IN_UNITS: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_ONE: Final = 1000


class Rejection(NamedTuple):
    """Why a pod may not start."""

    reason: str
    message: str


def room_of(allocatable: Mapping[str, Any]) -> Amounts:
    """What a node reports."""
    return amounts(allocatable, "status.allocatable")


def request_of(pod: PodView) -> Amounts:
    """What *pod* takes of its node: the sum of its containers, or more where an init container needs more."""
    spec = pod.spec
    beside, peak = Counter[str](), Counter[str]()
    for container in spec.init_containers:
        asked = _asked(container)
        if container.restart_policy == "Always":
            beside.update(asked)
            peak |= beside
        else:
            peak |= beside + asked
    for container in spec.containers:
        beside.update(_asked(container))
    whole = beside | peak
    whole.update({name: amount - whole[name] for name, amount in _amounts(spec.resources).items()})
    whole.update(amounts(spec.overhead, "spec.overhead"))
    return {**whole, "pods": _ONE}


def rejection(request: Amounts, others: Iterable[Amounts], room: Amounts) -> Rejection | None:
    """Why a pod that asks *request* may not start beside *others* on a node with *room*; None: it may."""
    used = Counter[str]()
    for each in others:
        used.update(each)
    devices = [name for name in request if name not in _OWN]
    for name in (*devices, *_OWN):
        asked, there = request.get(name, 0), room.get(name)
        if there is None or not asked or asked <= there - used[name]:
            continue
        return _rejection(name, asked, used[name], there)
    return None


def _rejection(name: str, asked: int, used: int, there: int) -> Rejection:
    if name in _OWN:
        figures = f"requested: {_whole(name, asked)}, used: {_whole(name, used)}"
        why = f"Node didn't have enough resource: {name}, {figures}, capacity: {_whole(name, there)}"
        return Rejection(f"OutOf{name}", f"Pod was rejected: {why}")
    figures = f"Requested: {_whole(name, asked)}, Available: {max(0, _whole(name, there - used))}"
    why = f"Allocate failed due to requested number of devices unavailable for {name}. {figures}"
    return Rejection("UnexpectedAdmissionError", f"Pod was rejected: {why}, which is unexpected")


def _whole(name: str, amount: int) -> int:
    return amount if name in _IN_UNITS else amount // _ONE


def _asked(container: Container) -> Counter[str]:
    return Counter(_amounts(container.resources))


def _amounts(resources: Resources) -> Amounts:
    """Requests; where there is only a limit, that is what is asked for."""
    return amounts({**resources.limits, **resources.requests}, "resources")
