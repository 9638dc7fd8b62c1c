"""What a pod asks of its node and what a node offers, in base units.

A pod holds, for its whole life, the larger of what its app containers and sidecars need together and what
its init phase needs at its peak. Source of the rules: kube-scheduler's documented effective request, KEP-753
(sidecars), KEP-2837 (pod-level resources), KEP-1287 (in-place resize), and the API server's defaults.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import msgspec

from volcano_py.crds.messages import shown
from volcano_py.crds.quantity import INT64_MAX, QuantityError, parse_quantity, to_base
from volcano_py.scheduler.model.kube.cluster import Node
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem, child
from volcano_py.scheduler.model.kube.meta import NO_AMOUNTS, Amounts
from volcano_py.scheduler.model.kube.pod import NO_RESOURCES, Container, ContainerStatus, Pod, Resources

MOST = 2**50
"""Base units that one object may hold of a resource: a pebibyte, a million million of everything counted.

Far more than any machine has, and little enough that what runs on a node, times a hundred, stays inside the
columns: one absurd amount must not make a node look empty to others. What thousands of such objects ask
together is too much to count, and is read as that (``ClusterState.awaited``).
"""

# What kube-scheduler's scores assume of a container that doesn't say: a tenth of a CPU, 200 MiB.
DEFAULT_CPU_MILLI = 100
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024
_SCORE_DEFAULTS: Mapping[str, int] = {"cpu": DEFAULT_CPU_MILLI, "memory": DEFAULT_MEMORY_BYTES}


class _Part(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One container, as far as it decides amounts: what it asks and what it was last given."""

    asked: Resources = NO_RESOURCES
    sidecar: bool = False
    running: Resources = NO_RESOURCES
    allocated: Amounts = NO_AMOUNTS
    status_field: str = ""


class _Ask(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """All of a pod that decides amounts; its encoding is the key under which the answer is kept."""

    containers: tuple[_Part, ...] = ()
    init: tuple[_Part, ...] = ()
    overhead: Amounts = NO_AMOUNTS
    pod: Resources = NO_RESOURCES
    infeasible: bool = False


class _Answer(NamedTuple):
    request: Mapping[str, int]
    nonzero: tuple[int, int]


class _Held(NamedTuple):
    """Amounts of one container, and the field to blame if they make a sum overflow."""

    amounts: dict[str, int]
    sidecar: bool
    field: str


# Of the resources a pod may ask as a whole, those whose limit may lie above the request; huge pages may not.
_CAN_OVERCOMMIT = frozenset({"cpu", "memory"})

_NO_STATUS = ContainerStatus()

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Ask).decode


def pod_request(pod: Pod) -> dict[str, int]:
    """What a node must have free for *pod*: resource to base units, zeros left out, without ``pods``.

    Raises ``ObjectError`` naming the field for amounts that are no quantities, negative, or too large, and
    for sums past ``MOST``.
    """
    return dict(_answer(pod).request)


def nonzero_request(pod: Pod) -> tuple[int, int]:
    """Milli-CPU and bytes that scores count for *pod*: containers that don't say get a small default."""
    return _answer(pod).nonzero


def node_allocatable(node: Node) -> dict[str, int]:
    """What *node* offers: resource to base units; its capacity where it doesn't state allocatable.

    Raises ``ObjectError`` naming every resource whose amount is no quantity, negative or too large.
    """
    status = node.status
    if status.allocatable or not status.capacity:
        return amounts(status.allocatable, "status.allocatable")
    return amounts(status.capacity, "status.capacity")


def amounts(raw: Amounts, field: str, *, of_many: bool = False) -> dict[str, int]:
    """The amounts at *field* in base units. Raises ``ObjectError`` naming all that can't be used.

    Where they are *of_many* pods together, more than ``MOST`` is no fault and counts as ``MOST``.
    """
    found: dict[str, int] = {}
    problems: list[Problem] = []
    for name, written in raw.items():
        try:
            found[name] = amount(name, written, field, of_many=of_many)
        except ObjectError as error:
            problems += error.problems
    if problems:
        raise ObjectError(*problems)
    return found


def amount(name: str, written: Any, field: str, *, of_many: bool = False) -> int:
    """The amount of resource *name* in the map at *field*, in base units, from 0 to ``MOST``."""
    path = child(field, name)
    value = _not_negative(partial(to_base, name), written, path)
    if value > MOST:
        if of_many:
            return MOST
        raise ObjectError(Problem(path, f"{shown(written)} is more than can be added up"))
    return value


def storage_bytes(written: Any, field: str) -> int:
    """Bytes of a claim's or volume's size as written at *field*, rounded up; refused as amounts are."""
    size = _not_negative(lambda text: math.ceil(parse_quantity(text)), written, field)
    if size > INT64_MAX:
        raise ObjectError(Problem(field, f"{written!r} is more than can be counted"))
    return size


def _not_negative(read: Callable[[Any], int], written: Any, field: str) -> int:
    """What *read* makes of *written*. Raises ``ObjectError`` for *field* on garbage and below 0."""
    try:
        value = read(written)
    except QuantityError as error:
        raise ObjectError(Problem(field, str(error))) from error
    if value < 0:
        raise ObjectError(Problem(field, f"must not be negative: {written!r}"))
    return value


def _answer(pod: Pod) -> _Answer:
    ask = _ask(pod)
    try:
        key = _encode(ask)
    except (OverflowError, TypeError):
        # Numbers past 64 bits have no key. They are refused, by the field that holds them.
        return _compute(ask)
    return _kept(key)


def _ask(pod: Pod) -> _Ask:
    spec, status = pod.spec, pod.status
    if not (status.container_statuses or status.init_container_statuses):
        containers = tuple([_Part(it.resources) for it in spec.containers])
        init = tuple([_Part(it.resources, it.is_sidecar) for it in spec.init_containers])
        return _Ask(containers, init, spec.overhead, spec.resources)
    containers = _parts(spec.containers, status.container_statuses, "status.containerStatuses")
    init = _parts(spec.init_containers, status.init_container_statuses, "status.initContainerStatuses")
    return _Ask(containers, init, spec.overhead, spec.resources, _resize_is_infeasible(pod))


def _parts(
    containers: Iterable[Container], statuses: Iterable[ContainerStatus], field: str
) -> tuple[_Part, ...]:
    """Containers beside what the kubelet says of them; *field* is where the statuses are."""
    by_name = {status.name: (status, f"{field}[{at}]") for at, status in enumerate(statuses)}
    parts = []
    for container in containers:
        status, where = by_name.get(container.name, (_NO_STATUS, ""))
        running = status.resources or NO_RESOURCES
        parts.append(
            _Part(container.resources, container.is_sidecar, running, status.allocated_resources, where)
        )
    return tuple(parts)


def _resize_is_infeasible(pod: Pod) -> bool:
    """Whether the kubelet gave up on a resize: the condition since 1.33, the status field before."""
    if pod.status.resize == "Infeasible":
        return True
    return any(
        condition.type == "PodResizePending"
        and condition.reason == "Infeasible"
        and condition.status != "False"
        for condition in pod.status.conditions
    )


@lru_cache(maxsize=8192)
def _kept(key: bytes) -> _Answer:
    return _compute(_decode(key))


def _compute(ask: _Ask) -> _Answer:
    held = [
        _held(part, f"spec.containers[{at}]", ask.infeasible, may_resize=True)
        for at, part in enumerate(ask.containers)
    ]
    init = [
        _held(part, f"spec.initContainers[{at}]", ask.infeasible, may_resize=part.sidecar)
        for at, part in enumerate(ask.init)
    ]
    aggregate = _aggregate(held, init, {})
    pod_level = _pod_level(ask.pod, aggregate)
    overhead = amounts(ask.overhead, "spec.overhead")
    request = _with_overhead({**aggregate, **pod_level}, overhead)
    defaults = _SCORE_DEFAULTS
    if pod_level:
        defaults = {name: value for name, value in defaults.items() if name not in request}
    scored = _with_overhead({**_aggregate(held, init, defaults), **pod_level}, overhead)
    asked = {name: value for name, value in request.items() if value}
    return _Answer(asked, (scored.get("cpu", 0), scored.get("memory", 0)))


def _held(part: _Part, field: str, infeasible: bool, *, may_resize: bool) -> _Held:
    """What one container holds: its request, a limit where no request is stated, or what a resize left it."""
    requests = amounts(part.asked.requests, f"{field}.resources.requests")
    limits = amounts(part.asked.limits, f"{field}.resources.limits")
    wanted = {**limits, **requests}
    if may_resize and (part.running.requests or part.allocated):
        given = amounts(part.running.requests, f"{part.status_field}.resources.requests")
        _raise_to(given, amounts(part.allocated, f"{part.status_field}.allocatedResources"))
        if not infeasible:
            _raise_to(given, wanted)
        wanted = given
    return _Held(wanted, part.sidecar, f"{field}.resources.requests")


def _aggregate(containers: list[_Held], init: list[_Held], defaults: Mapping[str, int]) -> dict[str, int]:
    """max(app containers + sidecars, the init phase's peak), each container first filled from *defaults*."""
    total: dict[str, int] = {}
    for held in containers:
        _add(total, {**defaults, **held.amounts}, held.field)
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for held in init:
        wanted = {**defaults, **held.amounts}
        if held.sidecar:
            _add(total, wanted, held.field)
            _add(sidecars, wanted, held.field)
        else:
            _add(wanted, sidecars, held.field)
            _raise_to(peak, wanted)
    _raise_to(total, peak)
    return total


def _pod_level(resources: Resources, aggregate: Mapping[str, int]) -> dict[str, int]:
    """The pod's own request, which stands in for its containers': stated, or derived from its limits."""
    requests = amounts(resources.requests, "spec.resources.requests")
    limits = amounts(resources.limits, "spec.resources.limits")
    level = {name: value for name, value in requests.items() if _is_pod_level(name)}
    for name, limit in limits.items():
        if _is_pod_level(name) and name not in level:
            level[name] = aggregate.get(name, limit) if name in _CAN_OVERCOMMIT else limit
    return level


def _is_pod_level(name: str) -> bool:
    return name in _CAN_OVERCOMMIT or name.startswith("hugepages-")


def _with_overhead(request: dict[str, int], overhead: Mapping[str, int]) -> dict[str, int]:
    _add(request, overhead, "spec.overhead")
    return request


def _add(total: dict[str, int], extra: Mapping[str, int], field: str) -> None:
    """Add *extra* into *total*; a sum past ``MOST`` is a fault of *field*."""
    for name, value in extra.items():
        total[name] = total.get(name, 0) + value
        if total[name] > MOST:
            raise ObjectError(Problem(child(field, name), "the pod's sum is too large"))


def _raise_to(floor: dict[str, int], other: Mapping[str, int]) -> None:
    """Raise each amount of *floor* to at least that of *other*."""
    for name, value in other.items():
        if value > floor.get(name, -1):
            floor[name] = value
