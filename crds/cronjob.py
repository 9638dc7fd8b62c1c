"""CronJob: a job that starts by the clock."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from volcano_py.crds.base import API_DEFAULT, Count, CrdInfo, CrdModel, CrdObject, ObjectMeta, Time
from volcano_py.crds.job import JobSpec, require_tasks
from volcano_py.crds.messages import field_error, shown

__all__ = ["CronJob", "CronJobSpec", "CronJobStatus", "JobTemplateSpec", "ObjectReference"]


def _schedule(text: str) -> str:
    if not text.startswith("@") and len(text.split()) != 5:
        raise ValueError(
            f'must have five fields (minute hour day month weekday) or be like "@daily", not {shown(text)}'
        )
    return text


class ObjectReference(CrdModel):
    """Another object."""

    api_version: str = Field(default="", description="Its API version.")
    kind: str = Field(default="", description="Its kind.")
    namespace: str = Field(default="", description="Its namespace.")
    name: str = Field(default="", description="Its name.")
    uid: str = Field(default="", description="Its UID.")
    resource_version: str = Field(default="", description="Its version.")
    field_path: str = Field(default="", description="A part of it.")


class JobTemplateSpec(CrdModel):
    """The job that is made each time."""

    metadata: ObjectMeta = Field(default=ObjectMeta(), description="Labels and annotations of the jobs.")
    spec: JobSpec = Field(default_factory=JobSpec, description="What runs.")


class CronJobSpec(CrdModel):
    """When which job starts."""

    schedule: Annotated[str, AfterValidator(_schedule)] = Field(description="When, in cron's notation.")
    time_zone: str | None = Field(
        default=None, description="Time zone of the schedule, such as Europe/Berlin; unset: the controller's."
    )
    starting_deadline_seconds: int | None = Field(
        default=None, ge=0, description="Seconds by which a start may be late; later ones are left out."
    )
    concurrency_policy: Literal["Allow", "Forbid", "Replace"] = Field(
        default="Allow",
        json_schema_extra=API_DEFAULT,
        description="What a start does while the last one runs.",
    )
    suspend: bool = Field(default=False, json_schema_extra=API_DEFAULT, description="Whether starts are off.")
    job_template: JobTemplateSpec = Field(description="The job that is made each time.")
    successful_jobs_history_limit: Count = Field(
        default=3, json_schema_extra=API_DEFAULT, description="Completed jobs that are kept."
    )
    failed_jobs_history_limit: Count = Field(
        default=1, json_schema_extra=API_DEFAULT, description="Failed jobs that are kept."
    )

    @model_validator(mode="after")
    def _has_tasks(self) -> Self:
        require_tasks(self.job_template.spec, "jobTemplate.spec")
        return self


class CronJobStatus(CrdModel):
    """What it started."""

    active: list[ObjectReference] = Field(
        default_factory=list,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
        description="Jobs that run.",
    )
    last_schedule_time: Time | None = Field(default=None, description="When it last started a job.")
    last_successful_time: Time | None = Field(default=None, description="When a job last completed.")


class CronJob(CrdObject):
    """A job that starts by the clock."""

    info: ClassVar = CrdInfo(
        group="batch.volcano.sh",
        version="v1alpha1",
        kind="CronJob",
        plural="cronjobs",
        short_names=("cronvcjob", "cronvj"),
    )

    api_version: Literal["batch.volcano.sh/v1alpha1"] = Field(
        default="batch.volcano.sh/v1alpha1", json_schema_extra=API_DEFAULT
    )
    kind: Literal["CronJob"] = Field(default="CronJob", json_schema_extra=API_DEFAULT)
    spec: CronJobSpec = Field(description="When which job starts.")
    status: CronJobStatus | None = Field(default=None, description="What it started.")

    @model_validator(mode="after")
    def _name_leaves_room(self) -> Self:
        if len(self.metadata.name) > 52:
            raise field_error(
                "metadata.name", "must have at most 52 characters, as its jobs' names are longer"
            )
        return self
