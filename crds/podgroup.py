"""PodGroup: the gang that starts together or not at all, and why it does not."""

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
    LabelSelector,
    ResourceList,
    Rule,
    Time,
)
from volcano_py.crds.messages import field_error

__all__ = [
    "NetworkTopology",
    "PodGroup",
    "PodGroupCondition",
    "PodGroupSpec",
    "PodGroupStatus",
    "SubGroupPolicy",
]


class NetworkTopology(CrdModel):
    """How far apart in the network the members may be."""

    mode: Literal["hard", "soft"] = Field(
        default="hard", json_schema_extra=API_DEFAULT, description="Whether the bound is a must or a wish."
    )
    highest_tier_allowed: int | None = Field(
        default=None, ge=0, description="Highest tier of the HyperNode that holds all members; no unit."
    )
    highest_tier_name: str = Field(
        default="", max_length=253, description="The same bound by the tier's name instead of its number."
    )

    rules: ClassVar = (
        Rule(
            "!(has(self.highestTierAllowed) && has(self.highestTierName))",
            "set 'highestTierAllowed' or 'highestTierName', not both",
        ),
    )

    @model_validator(mode="after")
    def _one_bound(self) -> Self:
        if self.highest_tier_allowed is not None and self.highest_tier_name:
            raise field_error("highestTierName", "set 'highestTierAllowed' or 'highestTierName', not both")
        return self


class SubGroupPolicy(CrdModel):
    """How some of the members form groups of their own."""

    name: str = Field(default="", max_length=253, description="Name of the policy within the PodGroup.")
    network_topology: NetworkTopology | None = Field(default=None, description="Bound for each group.")
    sub_group_size: int | None = Field(
        default=1, ge=1, le=2**31 - 1, json_schema_extra=API_DEFAULT, description="Pods that a group needs."
    )
    min_sub_groups: Count | None = Field(
        default=0,
        json_schema_extra=API_DEFAULT,
        description="Groups that must start together; 0: no minimum.",
    )
    label_selector: LabelSelector | None = Field(default=None, description="Which pods the policy is about.")
    match_label_keys: list[str] = Field(
        default_factory=list,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
        description="Labels whose equal values put pods into the same group.",
    )


class PodGroupSpec(CrdModel):
    """What the gang needs to start."""

    min_member: Count = Field(default=0, description="Pods that start together; fewer never do.")
    min_task_member: dict[str, Count] = Field(
        default_factory=dict, description="Pods that must start per role, by its name."
    )
    queue: DnsName = Field(default="default", json_schema_extra=API_DEFAULT, description="Queue it waits in.")
    priority_class_name: str = Field(default="", max_length=253, description="PriorityClass of the group.")
    min_resources: ResourceList | None = Field(
        default=None, description="What must be free before its pods are made; unset lets it pass the gate."
    )
    network_topology: NetworkTopology | None = Field(default=None, description="Bound for all members.")
    sub_group_policy: list[SubGroupPolicy] = Field(
        default_factory=list, description="How members form groups of their own."
    )


class PodGroupCondition(CrdModel):
    """One statement about the gang."""

    type: str = Field(default="", description="Scheduled or Unschedulable.")
    status: Literal["", "True", "False", "Unknown"] = Field(default="", description="Whether it holds.")
    transition_id: str = Field(default="", alias="transitionID", description="Cycle that wrote it.")
    last_transition_time: Time | None = Field(default=None, description="When it last changed.")
    reason: str = Field(default="", description="Why, in one CamelCase word.")
    message: str = Field(default="", description="Why, for people.")


class PodGroupStatus(CrdModel):
    """Where the gang stands."""

    phase: Literal["", "Pending", "Running", "Unknown", "Inqueue", "Completed"] = Field(
        default="", description="Pending until the gate lets it pass (Inqueue), then by its pods."
    )
    conditions: list[PodGroupCondition] = Field(default_factory=list, description="What was last decided.")
    running: Count = Field(default=0, description="Pods that run.")
    succeeded: Count = Field(default=0, description="Pods that ended well.")
    failed: Count = Field(default=0, description="Pods that failed.")


class PodGroup(CrdObject):
    """Pods that start together or not at all."""

    info: ClassVar = CrdInfo(
        group="scheduling.volcano.sh",
        version="v1beta1",
        kind="PodGroup",
        plural="podgroups",
        short_names=("pg", "podgroup-v1beta1"),
        columns=(
            Column("STATUS", "string", ".status.phase"),
            Column("minMember", "integer", ".spec.minMember"),
            Column("RUNNINGS", "integer", ".status.running"),
            Column("AGE", "date", ".metadata.creationTimestamp"),
            Column("QUEUE", "string", ".spec.queue", priority=1),
        ),
        # Clients of this API write status with the object itself.
        status_subresource=False,
    )

    api_version: Literal["scheduling.volcano.sh/v1beta1"] = Field(
        default="scheduling.volcano.sh/v1beta1", json_schema_extra=API_DEFAULT
    )
    kind: Literal["PodGroup"] = Field(default="PodGroup", json_schema_extra=API_DEFAULT)
    spec: PodGroupSpec = Field(default_factory=PodGroupSpec, description="What the gang needs to start.")
    status: PodGroupStatus | None = Field(default=None, description="Where the gang stands.")
