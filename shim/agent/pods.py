"""Pods of this node: what they ask of cards, and what the scheduler's record gives each container.

A **claim** is a container together with its part of the record. Position is meaning there: HAMi's family
counts init containers first, Volcano's begins with the app containers, and in both there are records without
a segment for containers that ask for nothing. Neighbours: ``volcano_py.crds.cards.records`` for the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from volcano_py.crds.cards import names, records
from volcano_py.crds.cards.errors import WireError
from volcano_py.crds.cards.records import Keys, Part

APP: Final = "app"
SIDECAR: Final = "sidecar"
INIT: Final = "init"
DONE: Final = "18446744073709551615"
"""What Volcano's plugin writes as time when a pod has all its cards."""
_PRIORITY_VARIABLE: Final = "CUDA_TASK_PRIORITY"


class Resources(msgspec.Struct, frozen=True):
    """``resources`` of a container."""

    limits: dict[str, Any] = {}
    requests: dict[str, Any] = {}


class Variable(msgspec.Struct, frozen=True):
    """One environment variable."""

    name: str = ""
    value: str = ""


class Container(msgspec.Struct, frozen=True, rename="camel"):
    """A container, as far as cards go."""

    name: str
    resources: Resources = Resources()
    restart_policy: str = ""
    env: tuple[Variable, ...] = ()


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """``metadata`` of a pod or a node."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    annotations: dict[str, str] = {}


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """``spec`` of a pod."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str = ""


class ContainerStatus(msgspec.Struct, frozen=True):
    """Which container of the runtime's a container of a pod is."""

    name: str = ""
    container_id: str = msgspec.field(default="", name="containerID")


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    """``status`` of a pod."""

    phase: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(msgspec.Struct, frozen=True):
    """A pod of this node."""

    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def uid(self) -> str:
        """Its identity; names are used again."""
        return self.metadata.uid

    @property
    def key(self) -> str:
        """How people call it."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def alive(self) -> bool:
        """Whether its containers may run or come to run."""
        return self.status.phase not in ("Succeeded", "Failed")


class Node(msgspec.Struct, frozen=True):
    """This node."""

    metadata: Metadata


class RecordError(ValueError):
    """A pod's record can't be used; the message is for people."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A container and what its pod's record gives it.

    Attributes:
        container: its name.
        role: ``app``, ``sidecar`` or ``init``.
        counts: shares that it asks for, by resource.
        priority: among those who share a card; lower goes first.
        segment: where in the record its parts stand, -1 for nowhere.
        parts: what it gets.
    """

    container: str
    role: str
    counts: Mapping[str, int]
    priority: int = 1
    segment: int = -1
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """What a pod's annotations give it.

    Attributes:
        keys: the family's.
        terminated: whether it is in the form whose segments are ended.
        segments: parts, a segment each container.
        claims: of all containers, in the order in which they start.
    """

    keys: Keys
    terminated: bool
    segments: tuple[tuple[Part, ...], ...]
    claims: tuple[Claim, ...] = field(default=())

    def text(self, segments: Sequence[Sequence[Part]]) -> str:
        """*segments* in the form of this record."""
        return records.encode(segments, terminated=self.terminated)


def claims_of(pod: Pod, resources: Iterable[str]) -> tuple[Claim, ...]:
    """Containers of *pod* in the order in which they start, with what they ask of *resources*."""
    wanted = tuple(resources)
    sequence = [(INIT if c.restart_policy != "Always" else SIDECAR, c) for c in pod.spec.init_containers]
    sequence += [(APP, c) for c in pod.spec.containers]
    return tuple(Claim(c.name, role, _counts(c, wanted), _priority(c)) for role, c in sequence)


def record_of(pod: Pod, node: str, resources: Iterable[str]) -> Record | None:
    """The record of *pod* on *node*, with its claims; None where nobody placed it there.

    Raises:
        RecordError: there is one, and it can't be read or does not fit the pod's containers.
    """
    notes = pod.metadata.annotations
    for keys in (records.HAMI, records.VOLCANO):
        if notes.get(keys.allocated) and notes.get(keys.node) == node:
            try:
                segments = records.decode(notes[keys.allocated])
            except WireError as error:
                raise RecordError(f"{keys.allocated}: {error}") from error
            return _with_claims(pod, keys, segments, claims_of(pod, resources))
    return None


def bound_at(pod: Pod) -> tuple[int, str, str]:
    """A key by which pods that were bound earlier come first, of one second those that are older."""
    for keys in (records.HAMI, records.VOLCANO):
        text = pod.metadata.annotations.get(keys.bind_time, "")
        if text.isdecimal():
            return int(text), pod.metadata.creation_timestamp, pod.key
    return 0, pod.metadata.creation_timestamp, pod.key


def marks(record: Record, notes: Mapping[str, str], served: Iterable[str]) -> dict[str, str]:
    """Annotations that say which containers have their cards, as HAMi's plugin would; {} if they are there.

    Args:
        record: the pod's.
        notes: its annotations.
        served: names of containers that hold what they asked for.
    """
    held = frozenset(served)
    gone = {claim.segment for claim in record.claims if claim.parts and claim.container in held}
    if not gone:
        return {}
    left = [() if at in gone else segment for at, segment in enumerate(record.segments)]
    wanted = {record.keys.to_allocate: record.text(left)}
    if not any(left):
        wanted[record.keys.phase] = "success"
        if not record.terminated:
            wanted[record.keys.time] = DONE
    return {key: value for key, value in wanted.items() if notes.get(key) != value}


def _with_claims(
    pod: Pod, keys: Keys, segments: tuple[tuple[Part, ...], ...], claims: tuple[Claim, ...]
) -> Record:
    terminated = keys == records.HAMI
    _one_name_each(claims)
    counts = {claim.container: sum(claim.counts.values()) for claim in claims}
    for order in _readings(claims, counts, init_first=terminated):
        sizes = [len(segment) for segment in segments] + [0] * (len(order) - len(segments))
        if sizes == [counts[name] for name in order]:
            at = {name: number for number, name in enumerate(order) if counts[name]}
            filled = [_filled(claim, at.get(claim.container, -1), segments) for claim in claims]
            whole = segments + ((),) * (len(order) - len(segments))
            return Record(keys, terminated, whole, tuple(filled))
    asked = ", ".join(f"{name} {count}" for name, count in counts.items())
    raise RecordError(
        f"{keys.allocated} has parts for {[len(segment) for segment in segments]}, the containers ask {asked}"
    )


def _one_name_each(claims: Iterable[Claim]) -> None:
    """The kubelet would hand out devices under each name: no container may have its cards twice."""
    for claim in claims:
        if len(claim.counts) > 1:
            asked = " and ".join(sorted(claim.counts))
            raise RecordError(f"container {claim.container} asks by two names, {asked}: ask by one of them")


def _filled(claim: Claim, at: int, segments: Sequence[tuple[Part, ...]]) -> Claim:
    parts = segments[at] if at >= 0 else ()
    return Claim(claim.container, claim.role, claim.counts, claim.priority, at if parts else -1, parts)


def _readings(claims: Sequence[Claim], counts: Mapping[str, int], *, init_first: bool) -> list[list[str]]:
    """Orders of containers in which a record may be meant, the likeliest first."""
    by_role = {role: [c.container for c in claims if c.role == role] for role in (APP, SIDECAR, INIT)}
    late = by_role[APP] + by_role[SIDECAR]
    orders = [[c.container for c in claims], late, by_role[APP]]
    if not init_first:
        orders = [late, late + by_role[INIT], by_role[APP]]
    # The form without empty segments is about, too.
    return orders + [[name for name in order if counts[name]] for order in orders]


def _counts(container: Container, resources: Sequence[str]) -> dict[str, int]:
    given = container.resources
    amounts = {name: _whole(given.limits.get(name, given.requests.get(name))) for name in resources}
    return {name: count for name, count in amounts.items() if count}


def _priority(container: Container) -> int:
    for name in names.NVIDIA.priority:
        if name in container.resources.limits:
            return _whole(container.resources.limits[name])
    for variable in container.env:
        if variable.name == _PRIORITY_VARIABLE and variable.value.isdecimal():
            return int(variable.value)
    return 1


def _whole(amount: object) -> int:
    text = str(amount).strip()
    return int(text) if text.isdecimal() and len(text) < 10 else 0
