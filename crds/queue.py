"""Queue: what a team is owed and what it may reach.

Volcano's Queue with fields of our own: ``min`` and ``max`` (other spellings of guarantee.resource and
capability), ``interruptible``, ``lendMin``, ``lendingPaused``, ``minRunTime``. A reader asks
``guarantee_resources`` and ``max_resources`` and need not know the spelling.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from volcano_py.crds.base import (
    API_DEFAULT,
    Column,
    Count,
    CrdInfo,
    CrdModel,
    CrdObject,
    DnsName,
    Int32,
    PositiveDuration,
    ResourceList,
    Rule,
)
from volcano_py.crds.messages import field_error, join_path
from volcano_py.crds.quantity import to_base
from volcano_py.crds.times import parse_duration_s

__all__ = [
    "Affinity",
    "Cluster",
    "Guarantee",
    "NodeGroups",
    "Queue",
    "QueueSpec",
    "QueueStatus",
    "Reservation",
]


class Guarantee(CrdModel):
    """What is held for the queue even while it is idle."""

    resource: ResourceList | None = Field(default=None, description="Amounts held; unset means nothing is.")


class Cluster(CrdModel):
    """Another cluster that jobs of this queue may be sent to."""

    name: str = Field(default="", description="Name of the cluster.")
    weight: Int32 = Field(default=0, description="Share of jobs it is sent.")
    capacity: ResourceList = Field(default_factory=dict, description="What it has.")


class NodeGroups(CrdModel):
    """Node groups by name (label volcano.sh/nodegroup-name)."""

    required_during_scheduling_ignored_during_execution: list[str] = Field(
        default_factory=list, description="Groups that decide which nodes are allowed."
    )
    preferred_during_scheduling_ignored_during_execution: list[str] = Field(
        default_factory=list, description="Groups that only weigh."
    )


class Affinity(CrdModel):
    """Which node groups the queue's pods go to."""

    node_group_affinity: NodeGroups | None = Field(default=None, description="Groups to go to.")
    node_group_anti_affinity: NodeGroups | None = Field(default=None, description="Groups to stay away from.")


class QueueSpec(CrdModel):
    """What a team is owed and what it may reach."""

    weight: int = Field(
        default=1, ge=1, le=65535, json_schema_extra=API_DEFAULT,
        description="Share of what guarantees leave, relative to the other queues; no unit.",
    )  # fmt: skip
    priority: Count = Field(default=0, description="More is served first and reclaimed from last.")
    parent: DnsName = Field(default="", description="Queue above this one; unset means root.")
    type: str = Field(default="", max_length=253, description="Free text; no rule depends on it.")
    dequeue_strategy: Literal["fifo", "traverse"] = Field(
        default="traverse",
        json_schema_extra=API_DEFAULT,
        description="Whether later jobs may start while the first one cannot.",
    )
    guarantee: Guarantee | None = Field(default=None, description="Held for it even while it is idle.")
    min: ResourceList | None = Field(default=None, description="Other spelling of guarantee.resource.")
    deserved: ResourceList = Field(
        default_factory=dict, description="Entitlement: above it, what is used is only borrowed."
    )
    capability: ResourceList | None = Field(
        default=None, description="Hard cap; a resource left out is free."
    )
    max: ResourceList | None = Field(default=None, description="Other spelling of capability.")
    reclaimable: bool | None = Field(
        default=None, description="Whether others may take back what this queue borrowed; unset means yes."
    )
    interruptible: bool | None = Field(
        default=None, description="Whether jobs that do not say themselves may be evicted; unset means yes."
    )
    lend_min: bool = Field(
        default=False,
        json_schema_extra=API_DEFAULT,
        description="Whether interruptible jobs of other queues may use the guarantee while it is idle.",
    )
    lending_paused: bool = Field(
        default=False,
        description="Whether what the queue is entitled to (deserved, at least the guarantee) is held for it "
        "even while it is idle, lendMin or not; unset means no.",
    )
    min_run_time: PositiveDuration | None = Field(
        default=None, description='How long a pod runs before it may be evicted for others, such as "10m".'
    )
    affinity: Affinity | None = Field(default=None, description="Node groups for the queue's pods.")
    extend_clusters: list[Cluster] = Field(
        default_factory=list, description="Other clusters that jobs may be sent to."
    )

    rules: ClassVar = (
        Rule(
            "!(has(self.min) && has(self.guarantee) && has(self.guarantee.resource))",
            "set 'min' or 'guarantee.resource', not both",
        ),
        Rule("!(has(self.max) && has(self.capability))", "set 'max' or 'capability', not both"),
    )

    @model_validator(mode="after")
    def _one_spelling(self) -> Self:
        if self.min is not None and self.guarantee is not None and self.guarantee.resource is not None:
            raise field_error("min", "set 'min' or 'guarantee.resource', not both")
        if self.max is not None and self.capability is not None:
            raise field_error("max", "set 'max' or 'capability', not both")
        return self

    @model_validator(mode="after")
    def _guarantee_deserved_cap_ascend(self) -> Self:
        guarantee = ("guarantee.resource" if self.min is None else "min", self.guarantee_resources)
        deserved = ("deserved", self.deserved)
        cap = ("capability" if self.max is None else "max", self.max_resources)
        for lower, upper in ((guarantee, deserved), (deserved, cap), (guarantee, cap)):
            _check_not_above(lower, upper)
        return self

    @property
    def guarantee_resources(self) -> dict[str, str]:
        """What is held for the queue, in either spelling; empty where nothing is."""
        if self.min is not None:
            return self.min
        return (self.guarantee.resource if self.guarantee else None) or {}

    @property
    def max_resources(self) -> dict[str, str]:
        """The hard cap, in either spelling; a resource left out has none."""
        return self.capability or {} if self.max is None else self.max

    @property
    def min_run_time_s(self) -> float:
        """Seconds that a pod runs before it may be evicted for others; 0 where unset."""
        return parse_duration_s(self.min_run_time) if self.min_run_time else 0.0


def _check_not_above(lower: tuple[str, Mapping[str, str]], upper: tuple[str, Mapping[str, str]]) -> None:
    """Raise where a resource named on both sides has more below than above."""
    (low, low_amounts), (high, high_amounts) = lower, upper
    for name in low_amounts.keys() & high_amounts.keys():
        if to_base(name, low_amounts[name]) > to_base(name, high_amounts[name]):
            raise field_error(
                join_path(low, name),
                f"{low_amounts[name]} is more than {join_path(high, name)}, which is {high_amounts[name]}",
            )


class Reservation(CrdModel):
    """Nodes locked for the queue."""

    nodes: list[str] = Field(default_factory=list, description="Names of the locked nodes.")
    resource: ResourceList = Field(default_factory=dict, description="What is idle on them.")


class QueueStatus(CrdModel):
    """What the queue holds now; PodGroups are counted by phase."""

    state: Literal["", "Open", "Closed", "Closing", "Unknown"] = Field(
        default="", description="Whether it takes new jobs."
    )
    unknown: Count = Field(default=0, description="PodGroups in phase Unknown.")
    pending: Count = Field(default=0, description="PodGroups in phase Pending.")
    running: Count = Field(default=0, description="PodGroups in phase Running.")
    inqueue: Count = Field(default=0, description="PodGroups in phase Inqueue.")
    completed: Count = Field(default=0, description="PodGroups in phase Completed.")
    reservation: Reservation | None = Field(default=None, description="Nodes locked for the queue.")
    allocated: ResourceList = Field(default_factory=dict, description="What its pods hold.")


class Queue(CrdObject):
    """Where jobs wait, and the limits and rights they share."""

    info: ClassVar = CrdInfo(
        group="scheduling.volcano.sh",
        version="v1beta1",
        kind="Queue",
        plural="queues",
        short_names=("q", "queue-v1beta1"),
        cluster_scoped=True,
        columns=(
            Column("PARENT", "string", ".spec.parent"),
            # Volcano's own has that column alone.
            Column("STATE", "string", ".status.state"),
            Column("WEIGHT", "integer", ".spec.weight"),
            Column("AGE", "date", ".metadata.creationTimestamp"),
        ),
    )
    rules: ClassVar = (
        Rule(
            "!has(self.spec) || !has(self.spec.parent) || self.spec.parent != self.metadata.name",
            "a queue cannot be its own parent",
        ),
    )

    api_version: Literal["scheduling.volcano.sh/v1beta1"] = Field(
        default="scheduling.volcano.sh/v1beta1", json_schema_extra=API_DEFAULT
    )
    kind: Literal["Queue"] = Field(default="Queue", json_schema_extra=API_DEFAULT)
    spec: QueueSpec = Field(default_factory=QueueSpec, description="What is owed and allowed.")
    status: QueueStatus | None = Field(default=None, description="What the queue holds now.")

    @model_validator(mode="after")
    def _not_its_own_parent(self) -> Self:
        if self.spec.parent and self.spec.parent == self.metadata.name:
            raise field_error("spec.parent", f'queue "{self.metadata.name}" cannot be its own parent')
        return self
