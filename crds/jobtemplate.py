"""JobTemplate: a job that flows start by name."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from volcano_py.crds.base import API_DEFAULT, CrdInfo, CrdModel, CrdObject
from volcano_py.crds.job import JobSpec, require_tasks

__all__ = ["JobTemplate", "JobTemplateStatus"]


class JobTemplateStatus(CrdModel):
    """What was made of the template."""

    job_depends_on_list: list[str] = Field(default_factory=list, description="Jobs made of it.")


class JobTemplate(CrdObject):
    """A job that flows start by name."""

    info: ClassVar = CrdInfo(
        group="flow.volcano.sh",
        version="v1alpha1",
        kind="JobTemplate",
        plural="jobtemplates",
        short_names=("jt",),
    )

    api_version: Literal["flow.volcano.sh/v1alpha1"] = Field(
        default="flow.volcano.sh/v1alpha1", json_schema_extra=API_DEFAULT
    )
    kind: Literal["JobTemplate"] = Field(default="JobTemplate", json_schema_extra=API_DEFAULT)
    spec: JobSpec = Field(default_factory=JobSpec, description="The job.")
    status: JobTemplateStatus | None = Field(default=None, description="What was made of it.")

    @model_validator(mode="after")
    def _has_tasks(self) -> Self:
        require_tasks(self.spec, "spec")
        return self
