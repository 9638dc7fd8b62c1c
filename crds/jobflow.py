"""JobFlow: jobs from templates, in the order in which they wait for each other."""

from typing import ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from volcano_py.crds.base import API_DEFAULT, Column, Count, CrdInfo, CrdModel, CrdObject, Duration, Time
from volcano_py.crds.dependencies import dependency_fault
from volcano_py.crds.job import JobPhase, JobSpec, TaskState
from volcano_py.crds.messages import field_error

__all__ = [
    "Flow", "FlowCondition", "FlowDependsOn", "FlowJobStatus", "FlowPatch", "FlowState", "HttpGet",
    "HttpHeader", "JobFlow", "JobFlowSpec", "JobFlowStatus", "JobRunningHistory", "Probe", "TaskStatus",
    "TcpSocket",
]  # fmt: skip

_LAST_PORT: Final = 65535


class HttpHeader(CrdModel):
    """One header of a request."""

    name: str = Field(description="Name of the header.")
    value: str = Field(description="Its value.")


class HttpGet(CrdModel):
    """A task is ready when this request succeeds."""

    task_name: str = Field(default="", max_length=253, description="Task whose pods are asked.")
    path: str = Field(default="", description="Path of the request.")
    port: int = Field(default=0, ge=0, le=_LAST_PORT, description="Port of the request.")
    http_header: HttpHeader | None = Field(default=None, description="Header of the request.")


class TcpSocket(CrdModel):
    """A task is ready when this port accepts connections."""

    task_name: str = Field(default="", max_length=253, description="Task whose pods are asked.")
    port: int = Field(ge=0, le=_LAST_PORT, description="The port.")


class TaskStatus(CrdModel):
    """A task is ready when its pods are in this phase."""

    task_name: str = Field(default="", max_length=253, description="The task.")
    phase: str = Field(default="", max_length=63, description="The pod phase.")


class Probe(CrdModel):
    """When a job that others wait for counts as ready, before it has completed."""

    http_get_list: list[HttpGet] = Field(default_factory=list, description="Requests that succeed.")
    tcp_socket_list: list[TcpSocket] = Field(default_factory=list, description="Ports that accept.")
    task_status_list: list[TaskStatus] = Field(default_factory=list, description="Phases that are reached.")


class FlowDependsOn(CrdModel):
    """Which jobs one waits for."""

    targets: list[str] = Field(default_factory=list, description="Names of other flows of this JobFlow.")
    probe: Probe | None = Field(default=None, description="When they count as ready; unset: when completed.")


class FlowPatch(CrdModel):
    """What this flow changes in its template."""

    job_spec: JobSpec | None = Field(default=None, description="Fields that replace those of the job.")


class Flow(CrdModel):
    """One job of the flow."""

    name: str = Field(min_length=1, description="Name of its JobTemplate.")
    depends_on: FlowDependsOn | None = Field(default=None, description="What it waits for.")
    patch: FlowPatch | None = Field(default=None, description="What it changes in its template.")


class JobFlowSpec(CrdModel):
    """The jobs, and what becomes of them in the end."""

    flows: list[Flow] = Field(default_factory=list, description="The jobs.")
    job_retain_policy: Literal["", "retain", "delete"] = Field(
        default="", description="Whether jobs stay when the flow is over; unset: they do."
    )

    @model_validator(mode="after")
    def _can_start(self) -> Self:
        after: dict[str, list[str]] = {}
        for index, flow in enumerate(self.flows):
            if flow.name in after:
                raise field_error(f"flows[{index}].name", f'"{flow.name}" is the name of another flow')
            after[flow.name] = flow.depends_on.targets if flow.depends_on else []
        fault = dependency_fault(after)
        if fault is not None:
            raise field_error(f"flows[{list(after).index(fault[0])}].dependsOn", fault[1])
        return self


class JobRunningHistory(CrdModel):
    """One run of a job."""

    start_timestamp: Time | None = Field(default=None, description="When it began.")
    end_timestamp: Time | None = Field(default=None, description="When it ended.")
    state: JobPhase = Field(default="", description="How it ended.")


class FlowJobStatus(CrdModel):
    """Where one job of the flow stands."""

    name: str = Field(default="", description="Name of the job.")
    state: JobPhase = Field(default="", description="Its phase.")
    start_timestamp: Time | None = Field(default=None, description="When it began.")
    end_timestamp: Time | None = Field(default=None, description="When it ended.")
    restart_count: Count = Field(default=0, description="Restarts so far.")
    running_histories: list[JobRunningHistory] = Field(default_factory=list, description="Its runs.")


class FlowCondition(CrdModel):
    """How far one job of the flow got."""

    phase: JobPhase = Field(default="", description="Its phase.")
    create_time: Time | None = Field(default=None, description="When it was made.")
    running_duration: Duration | None = Field(default=None, description="How long it ran.")
    task_status_count: dict[str, TaskState] = Field(default_factory=dict, description="Pods per task.")


class FlowState(CrdModel):
    """The phase of the flow."""

    phase: Literal["", "Succeed", "Terminating", "Failed", "Running", "Pending"] = Field(
        default="", description="Where it is on its way."
    )


class JobFlowStatus(CrdModel):
    """How far the flow got; jobs are listed by phase."""

    pending_jobs: list[str] = Field(default_factory=list, description="Jobs that wait.")
    running_jobs: list[str] = Field(default_factory=list, description="Jobs that run.")
    failed_jobs: list[str] = Field(default_factory=list, description="Jobs that failed.")
    completed_jobs: list[str] = Field(default_factory=list, description="Jobs that completed.")
    terminated_jobs: list[str] = Field(default_factory=list, description="Jobs that were ended.")
    unknown_jobs: list[str] = Field(
        default_factory=list, alias="unKnowJobs", description="Jobs that nobody knows the phase of."
    )
    job_status_list: list[FlowJobStatus] = Field(default_factory=list, description="Every job.")
    conditions: dict[str, FlowCondition] = Field(default_factory=dict, description="Every job by name.")
    state: FlowState | None = Field(default=None, description="The flow as a whole.")


class JobFlow(CrdObject):
    """Jobs that wait for each other."""

    info: ClassVar = CrdInfo(
        group="flow.volcano.sh",
        version="v1alpha1",
        kind="JobFlow",
        plural="jobflows",
        short_names=("jf",),
        columns=(
            Column("Status", "string", ".status.state.phase"),
            Column("Age", "date", ".metadata.creationTimestamp"),
        ),
    )

    api_version: Literal["flow.volcano.sh/v1alpha1"] = Field(
        default="flow.volcano.sh/v1alpha1", json_schema_extra=API_DEFAULT
    )
    kind: Literal["JobFlow"] = Field(default="JobFlow", json_schema_extra=API_DEFAULT)
    spec: JobFlowSpec = Field(default_factory=JobFlowSpec, description="The jobs and their order.")
    status: JobFlowStatus | None = Field(default=None, description="How far the flow got.")
