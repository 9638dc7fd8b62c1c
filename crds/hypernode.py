"""HyperNode: nodes, or HyperNodes, near each other in the network; a tree of them is its topology."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from volcano_py.crds.base import (
    API_DEFAULT,
    Column,
    Condition,
    CrdInfo,
    CrdModel,
    CrdObject,
    DnsName,
    LabelSelector,
    Rule,
)
from volcano_py.crds.messages import field_error

__all__ = [
    "ExactMatch", "HyperNode", "HyperNodeSpec", "HyperNodeStatus", "Member", "MemberSelector", "RegexMatch",
]  # fmt: skip

_ONE_SELECTOR = "set one of 'exactMatch', 'regexMatch' and 'labelMatch'"


class ExactMatch(CrdModel):
    """One member by its name."""

    name: DnsName = Field(json_schema_extra={"minLength": 1}, description="The name.")


class RegexMatch(CrdModel):
    """Members whose names match."""

    pattern: str = Field(min_length=1, description="Regular expression over names.")


class MemberSelector(CrdModel):
    """Who is a member."""

    exact_match: ExactMatch | None = Field(default=None, description="The one with this name.")
    regex_match: RegexMatch | None = Field(default=None, description="Those whose names match.")
    label_match: LabelSelector | None = Field(default=None, description="Nodes with these labels.")

    rules: ClassVar = (
        Rule(
            "(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0)"
            " + (has(self.labelMatch) ? 1 : 0) == 1",
            _ONE_SELECTOR,
        ),
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [
            entry for entry in (self.exact_match, self.regex_match, self.label_match) if entry is not None
        ]
        if len(given) != 1:
            raise field_error("", _ONE_SELECTOR)
        return self


class Member(CrdModel):
    """Nodes or HyperNodes that belong to this one."""

    type: Literal["Node", "HyperNode"] = Field(description="What the members are.")
    selector: MemberSelector | None = Field(default=None, description="Who they are; unset: nobody.")


class HyperNodeSpec(CrdModel):
    """Its place in the network."""

    tier: int = Field(ge=0, description="How far members are apart; the nearest have the lowest.")
    tier_name: str = Field(default="", max_length=253, description="Name of that tier, such as rack.")
    members: list[Member] = Field(default_factory=list, min_length=1, description="Who belongs to it.")


class HyperNodeStatus(CrdModel):
    """What it consists of now."""

    conditions: list[Condition] = Field(default_factory=list, description="What is to say about it.")
    node_count: int = Field(default=0, ge=0, description="Nodes in it.")


class HyperNode(CrdObject):
    """Nodes that are near each other in the network."""

    info: ClassVar = CrdInfo(
        group="topology.volcano.sh",
        version="v1alpha1",
        kind="HyperNode",
        plural="hypernodes",
        short_names=("hn",),
        cluster_scoped=True,
        columns=(
            Column("Tier", "string", ".spec.tier"),
            Column("TierName", "string", ".spec.tierName"),
            Column("NodeCount", "integer", ".status.nodeCount"),
            Column("Age", "date", ".metadata.creationTimestamp"),
        ),
    )

    api_version: Literal["topology.volcano.sh/v1alpha1"] = Field(
        default="topology.volcano.sh/v1alpha1", json_schema_extra=API_DEFAULT
    )
    kind: Literal["HyperNode"] = Field(default="HyperNode", json_schema_extra=API_DEFAULT)
    spec: HyperNodeSpec = Field(description="Its place in the network.")
    status: HyperNodeStatus | None = Field(default=None, description="What it consists of now.")
