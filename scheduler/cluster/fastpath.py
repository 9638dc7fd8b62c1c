"""Pods and nodes, of which there are many, straight from JSON into the structs of the model.

What is written as the API server writes it is read here, at a few microseconds an object; on anything else
these functions raise, and ``wire.py`` reads the object the careful way, which knows how to say what is wrong.
Parts that many objects have in common are held once (``shared.py``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec
from msgspec.structs import force_setattr, replace

from volcano_py.scheduler.cluster.shared import Shared
from volcano_py.scheduler.model.kube.cluster import NodeImage, NodeSpec, NodeStatus
from volcano_py.scheduler.model.kube.meta import (
    NO_STRINGS,
    Condition,
    Int64,
    KubeStruct,
    OwnerReference,
)
from volcano_py.scheduler.model.kube.objects import KubeObject, Node, ObjectMeta, Pod
from volcano_py.scheduler.model.kube.pod import ContainerStatus, PodSpec, PodStatus
from volcano_py.scheduler.model.kube.times import parse_time

__all__ = ["FAST", "Fast", "ListMeta", "WireEvent", "WireList", "WireObject"]


class ListMeta(KubeStruct, frozen=True):
    """Where a list stands: its version, and the token of the next page if there is one."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class WireMeta(KubeStruct, frozen=True):
    """Metadata with times as text and the version, which the model has no use for."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: Mapping[str, str] = NO_STRINGS
    annotations: Mapping[str, str] = NO_STRINGS
    owner_references: tuple[OwnerReference, ...] = ()


class WireObject(KubeStruct, frozen=True):
    """What every object has."""

    metadata: WireMeta


class WirePodStatus(KubeStruct, frozen=True):
    """``PodStatus`` with its time as text."""

    phase: str = "Pending"
    conditions: tuple[Condition, ...] = ()
    start_time: str | None = None
    nominated_node_name: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resize: str = ""


class WirePod(WireObject, frozen=True):
    """A pod as sent."""

    spec: PodSpec = PodSpec()
    status: WirePodStatus = WirePodStatus()


class WireNode(WireObject, frozen=True):
    """A node as sent."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


T = TypeVar("T")
W = TypeVar("W", bound=WireObject)


class WireList(KubeStruct, Generic[T], frozen=True):
    """A page of a list."""

    items: list[T]
    metadata: ListMeta = ListMeta()


class WireEvent(KubeStruct, Generic[T], frozen=True):
    """A line of a watch."""

    type: str
    object: T


class Fast(NamedTuple, Generic[W]):
    """How one kind is read fast; all raise ``msgspec.ValidationError`` or ``ValueError`` where they can't."""

    list: msgspec.json.Decoder[WireList[W]]
    event: msgspec.json.Decoder[WireEvent[W]]
    single: msgspec.json.Decoder[W]
    convert: Callable[[W], KubeObject]


_strings: Final = Shared[Mapping[str, str]]()
_owners: Final = Shared[tuple[OwnerReference, ...]]()
_pod_specs: Final = Shared[PodSpec]()
_pod_statuses: Final = Shared[PodStatus]()
_node_specs: Final = Shared[NodeSpec]()
_images: Final = Shared[tuple[NodeImage, ...]]()
_conditions: Final = Shared[tuple[Condition, ...]]()


def _meta(wire: WireMeta, namespaced: bool) -> ObjectMeta:
    """The model's metadata; raises ``ValueError`` for times that are none or an identity not whole."""
    if not (wire.name and wire.uid) or namespaced != bool(wire.namespace):
        raise ValueError("an identity that is not whole")
    return ObjectMeta(
        wire.name,
        sys.intern(wire.namespace),
        wire.uid,
        parse_time(wire.creation_timestamp) if wire.creation_timestamp else 0.0,
        parse_time(wire.deletion_timestamp) if wire.deletion_timestamp else None,
        wire.deletion_grace_period_seconds,
        _strings(wire.labels),
        _strings(wire.annotations),
        _owners(wire.owner_references),
    )


def _pod(wire: WirePod) -> Pod:
    return Pod(_meta(wire.metadata, True), _pod_spec(wire.spec), _pod_status(wire.status))


def _pod_spec(spec: PodSpec) -> PodSpec:
    """*spec*, which nobody but us has seen yet, with everything but the node shared with its equals.

    Volumes without a claim are left out: their names differ from pod to pod and mean nothing to placement.
    """
    node = spec.node_name
    if node:
        force_setattr(spec, "node_name", "")
    if spec.volumes:
        claims = tuple(one for one in spec.volumes if one.persistent_volume_claim or one.ephemeral)
        force_setattr(spec, "volumes", claims)
    spec = _pod_specs(spec)
    return replace(spec, node_name=sys.intern(node)) if node else spec


def _pod_status(wire: WirePodStatus) -> PodStatus:
    """The model's status, with everything but the time shared."""
    status = PodStatus(
        wire.phase,
        wire.conditions,
        None,
        wire.nominated_node_name,
        wire.container_statuses,
        wire.init_container_statuses,
        wire.resize,
    )
    status = _pod_statuses(status)
    return replace(status, start_time=parse_time(wire.start_time)) if wire.start_time else status


def _node(wire: WireNode) -> Node:
    status = wire.status
    status = NodeStatus(
        _strings(status.allocatable),
        _strings(status.capacity),
        _conditions(status.conditions),
        _images(status.images),
    )
    return Node(_meta(wire.metadata, False), _node_specs(wire.spec), status)


def _fast(kind: type[W], convert: Callable[[W], KubeObject]) -> Fast[W]:
    decoder = msgspec.json.Decoder
    return Fast(decoder(WireList[kind]), decoder(WireEvent[kind]), decoder(kind), convert)  # type: ignore[valid-type]


FAST: Final[Mapping[str, Fast[WirePod] | Fast[WireNode]]] = {
    "Pod": _fast(WirePod, _pod),
    "Node": _fast(WireNode, _node),
}
