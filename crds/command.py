"""Command: one order to a job or a queue, removed when it is carried out. It has no spec and no status."""

from typing import ClassVar, Literal

from pydantic import Field

from volcano_py.crds.base import API_DEFAULT, CrdInfo, CrdObject, OwnerReference

__all__ = ["Command"]


class Command(CrdObject):
    """One order to a job or a queue."""

    info: ClassVar = CrdInfo(
        group="bus.volcano.sh",
        version="v1alpha1",
        kind="Command",
        plural="commands",
        status_subresource=False,
    )

    api_version: Literal["bus.volcano.sh/v1alpha1"] = Field(
        default="bus.volcano.sh/v1alpha1", json_schema_extra=API_DEFAULT
    )
    kind: Literal["Command"] = Field(default="Command", json_schema_extra=API_DEFAULT)
    action: str = Field(default="", description="What to do, such as AbortJob, ResumeJob, CloseQueue.")
    target: OwnerReference | None = Field(default=None, description="With which object.")
    reason: str = Field(default="", description="Why, in one CamelCase word.")
    message: str = Field(default="", description="Why, for people.")
