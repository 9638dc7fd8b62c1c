"""Job: tasks of pods that belong together, what happens when one fails, and how far it got.

A Job becomes a PodGroup and pods (the controller's work, and the plan's); ``JobSpec.gang_size`` says how many
of them start together. Pod templates and volume claims are carried through as they are.
"""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from volcano_py.crds.base import (
    API_DEFAULT,
    Column,
    Count,
    CrdInfo,
    CrdModel,
    CrdObject,
    DnsLabel,
    DnsName,
    Duration,
    FreeForm,
    Int32,
    Rule,
    Time,
)
from volcano_py.crds.dependencies import dependency_fault
from volcano_py.crds.messages import field_error, join_path
from volcano_py.crds.podgroup import NetworkTopology

__all__ = [
    "DependsOn", "Job", "JobCondition", "JobPhase", "JobSpec", "JobState", "JobStatus", "LifecyclePolicy",
    "PartitionPolicy", "TaskSpec", "TaskState", "VolumeSpec", "require_tasks",
]  # fmt: skip

Event = Literal[
    "*", "PodPending", "PodRunning", "PodFailed", "PodEvicted", "Unknown",
    "TaskCompleted", "TaskFailed", "JobUpdated",
]  # fmt: skip
Action = Literal[
    "AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition",
    "TerminateJob", "CompleteJob", "ResumeJob",
]  # fmt: skip
JobPhase = Literal[
    "", "Pending", "Aborting", "Aborted", "Running", "Restarting", "Completing", "Completed",
    "Terminating", "Terminated", "Failed",
]  # fmt: skip

DEFAULT_MAX_RETRY = 3


class LifecyclePolicy(CrdModel):
    """What is done when something happens to the pods."""

    action: Action | None = Field(default=None, description="What is done.")
    event: Event | None = Field(default=None, description="What must happen; * is anything.")
    events: list[Event] = Field(default_factory=list, description="Several such events.")
    exit_code: Int32 | None = Field(
        default=None, description="Exit code that sets the action off, instead of an event; never 0."
    )
    timeout: Duration | None = Field(
        default=None, description="How long to wait first; unset means not at all."
    )

    rules: ClassVar = (
        Rule(
            "has(self.exitCode) ? !has(self.event) && (!has(self.events) || self.events.size() == 0)"
            " : has(self.event) || (has(self.events) && self.events.size() > 0)",
            "set 'event' (or 'events') or 'exitCode', one of them",
        ),
        Rule("!has(self.exitCode) || self.exitCode != 0", "exitCode 0 is success and sets nothing off"),
    )

    @model_validator(mode="after")
    def _one_trigger(self) -> Self:
        if bool(self.all_events) == (self.exit_code is not None):
            raise field_error(
                "exitCode" if self.all_events else "event",
                "set 'event' (or 'events') or 'exitCode', one of them",
            )
        if self.exit_code == 0:
            raise field_error("exitCode", "exitCode 0 is success and sets nothing off")
        if self.all_events and self.action is None:
            raise field_error("action", "is required")
        return self

    @property
    def all_events(self) -> tuple[str, ...]:
        """Events in either spelling, each once."""
        first = () if self.event is None else (self.event,)
        return tuple(dict.fromkeys((*first, *self.events)))


class VolumeSpec(CrdModel):
    """A volume that all pods mount."""

    mount_path: str = Field(
        min_length=1,
        json_schema_extra={"pattern": "^[^:]+$"},
        description="Where containers see it; without a colon.",
    )
    volume_claim_name: str = Field(default="", max_length=253, description="Claim that is there already.")
    volume_claim: FreeForm | None = Field(
        default=None, description="Claim to make (PersistentVolumeClaimSpec)."
    )

    @model_validator(mode="after")
    def _some_claim(self) -> Self:
        # Both are right once the controller has made the claim and noted its name.
        if not self.volume_claim_name and self.volume_claim is None:
            raise field_error("volumeClaim", "set 'volumeClaim' or 'volumeClaimName'")
        return self


class DependsOn(CrdModel):
    """Tasks that this one waits for."""

    name: list[str] = Field(default_factory=list, description="Names of those tasks.")
    iteration: Literal["", "any", "all"] = Field(default="", description="Whether one suffices; unset: all.")


class PartitionPolicy(CrdModel):
    """How a task's pods are split into partitions of one size."""

    total_partitions: int = Field(ge=1, le=2**31 - 1, description="Number of partitions.")
    partition_size: int = Field(ge=1, le=2**31 - 1, description="Pods in each.")
    network_topology: NetworkTopology | None = Field(default=None, description="Bound for each partition.")
    min_partitions: Count = Field(
        default=0, json_schema_extra=API_DEFAULT, description="Partitions that must start together."
    )


class TaskSpec(CrdModel):
    """Pods of one role."""

    name: DnsLabel = Field(default="", description="Name of the role; unset means default and its position.")
    replicas: Count = Field(default=0, description="Pods of this role.")
    min_available: Count | None = Field(
        default=None, description="Pods that must start together; unset means all of them."
    )
    template: FreeForm = Field(default_factory=dict, description="The pods (PodTemplateSpec).")
    policies: list[LifecyclePolicy] = Field(
        default_factory=list, description="Go before the policies of the job."
    )
    topology_policy: Literal["", "none", "best-effort", "restricted", "single-numa-node"] = Field(
        default="", description="How its CPUs may spread over NUMA nodes."
    )
    max_retry: Count = Field(default=DEFAULT_MAX_RETRY, description="Restarts before the task has failed.")
    depends_on: DependsOn | None = Field(default=None, description="Tasks it waits for.")
    partition_policy: PartitionPolicy | None = Field(default=None, description="How its pods are split.")

    @model_validator(mode="after")
    def _counts_agree(self) -> Self:
        if self.min_available is not None and self.min_available > self.replicas:
            raise field_error(
                "minAvailable", f"{self.min_available} is more than replicas, which is {self.replicas}"
            )
        partition = self.partition_policy
        if partition and partition.total_partitions * partition.partition_size != self.replicas:
            raise field_error(
                "partitionPolicy",
                f"{partition.total_partitions} partitions of {partition.partition_size} pods are not the"
                f" {self.replicas} of replicas",
            )
        _check_policies(self.policies)
        return self

    @property
    def pods_needed(self) -> int:
        """Pods of this role that must start together: as stated, else those of minPartitions, else all."""
        if self.min_available is not None:
            return self.min_available
        partition = self.partition_policy
        if partition is not None and partition.min_partitions:
            return partition.min_partitions * partition.partition_size
        return self.replicas


def _null_is_no_arguments(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: [] if arguments is None else arguments for name, arguments in value.items()}
    return value


class JobSpec(CrdModel):
    """What runs, in which queue, and what happens when it fails."""

    scheduler_name: str = Field(default="", max_length=63, description="Scheduler of pods that name none.")
    min_available: Count = Field(
        default=0, description="Pods that start together; 0 means what the tasks say."
    )
    volumes: list[VolumeSpec] = Field(default_factory=list, description="Volumes that all pods mount.")
    tasks: list[TaskSpec] = Field(default_factory=list, min_length=1, description="Roles with their pods.")
    policies: list[LifecyclePolicy] = Field(
        default_factory=list, description="What is done when something happens."
    )
    plugins: Annotated[dict[str, list[str]], BeforeValidator(_null_is_no_arguments)] = Field(
        default_factory=dict, description="Job plugins (ssh, svc, env, ...) with their arguments."
    )
    running_estimate: Duration | None = Field(default=None, description="How long its user thinks it runs.")
    queue: DnsName = Field(default="default", json_schema_extra=API_DEFAULT, description="Queue it waits in.")
    max_retry: Count = Field(
        default=DEFAULT_MAX_RETRY, json_schema_extra=API_DEFAULT, description="Restarts before it has failed."
    )
    ttl_seconds_after_finished: Count | None = Field(
        default=None, description="Seconds until a finished job is removed; unset keeps it."
    )
    priority_class_name: DnsName = Field(default="", description="PriorityClass of the job.")
    min_success: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="Pods that must end well for the job to have completed."
    )
    network_topology: NetworkTopology | None = Field(default=None, description="Bound for all its pods.")

    @model_validator(mode="after")
    def _tasks_agree(self) -> Self:
        total = sum(task.replicas for task in self.tasks)
        if self.tasks and self.min_available > total:
            raise field_error(
                "minAvailable", f"{self.min_available} is more than all replicas, which are {total}"
            )
        _check_policies(self.policies)
        _check_order(self.tasks)
        return self

    @property
    def gang_size(self) -> int:
        """Pods that start together: minAvailable, or the sum of what the tasks need."""
        return self.min_available or sum(task.pods_needed for task in self.tasks)


def task_name(task: TaskSpec, index: int) -> str:
    """The name of the task at position *index*; one without a name is called after the position."""
    return task.name or f"default{index}"


def require_tasks(spec: JobSpec, path: str) -> None:
    """Raise where the job at *path* has no tasks (which a partial one in a patch may)."""
    if not spec.tasks:
        raise field_error(f"{path}.tasks", "must have at least 1 entry")


def _check_order(tasks: list[TaskSpec]) -> None:
    after: dict[str, list[str]] = {}
    for index, task in enumerate(tasks):
        name = task_name(task, index)
        if name in after:
            raise field_error(f"tasks[{index}].name", f'"{name}" is the name of another task')
        after[name] = task.depends_on.name if task.depends_on else []
    fault = dependency_fault(after)
    if fault is not None:
        raise field_error(f"tasks[{list(after).index(fault[0])}].dependsOn", fault[1])


def _check_policies(policies: list[LifecyclePolicy]) -> None:
    """Raise where two policies answer to the same event or exit code."""
    taken: dict[str, int] = {}
    for index, policy in enumerate(policies):
        triggers = policy.all_events or (f"exit code {policy.exit_code}",)
        for trigger in triggers:
            first = taken.setdefault(trigger, index)
            if first != index:
                path = join_path("policies", index)
                raise field_error(path, f"{trigger} is answered by policies[{first}] already")
    events = {event for policy in policies for event in policy.all_events}
    if "*" in events and len(events) > 1:
        raise field_error("policies", "* stands for every event, so no other event can be named")


class TaskState(CrdModel):
    """Pods of one role by phase."""

    phase: dict[str, Int32] = Field(default_factory=dict, description="Pod phase to number of pods.")


class JobState(CrdModel):
    """The phase of a job and why it is in it."""

    phase: JobPhase = Field(default="", description="Where it is on its way.")
    reason: str = Field(default="", description="Why, in one CamelCase word.")
    message: str = Field(default="", description="Why, for people.")
    last_transition_time: Time | None = Field(default=None, description="When the phase last changed.")


class JobCondition(CrdModel):
    """When the job came into a phase."""

    status: JobPhase = Field(description="The phase.")
    last_transition_time: Time | None = Field(default=None, description="When it began.")


class JobStatus(CrdModel):
    """How far the job got."""

    state: JobState | None = Field(default=None, description="Its phase.")
    min_available: Count = Field(default=0, description="Pods that start together.")
    task_status_count: dict[str, TaskState] = Field(default_factory=dict, description="Pods per task.")
    pending: Count = Field(default=0, description="Pods that wait.")
    running: Count = Field(default=0, description="Pods that run.")
    succeeded: Count = Field(default=0, description="Pods that ended well.")
    failed: Count = Field(default=0, description="Pods that failed.")
    terminating: Count = Field(default=0, description="Pods that are on their way out.")
    unknown: Count = Field(default=0, description="Pods that nobody hears of.")
    version: Count = Field(default=0, description="Counts restarts; pods of an older one don't matter.")
    retry_count: Count = Field(default=0, description="Restarts so far.")
    running_duration: Duration | None = Field(default=None, description="How long it ran in all.")
    controlled_resources: dict[str, str] = Field(
        default_factory=dict, description="What plugins made for it, by plugin."
    )
    conditions: list[JobCondition] = Field(default_factory=list, description="The phases it was in.")


class Job(CrdObject):
    """Pods that are submitted, started and judged as one."""

    info: ClassVar = CrdInfo(
        group="batch.volcano.sh",
        version="v1alpha1",
        kind="Job",
        plural="jobs",
        short_names=("vcjob", "vj"),
        columns=(
            Column("STATUS", "string", ".status.state.phase"),
            Column("minAvailable", "integer", ".status.minAvailable"),
            Column("RUNNINGS", "integer", ".status.running"),
            Column("AGE", "date", ".metadata.creationTimestamp"),
            Column("QUEUE", "string", ".spec.queue", priority=1),
        ),
    )

    api_version: Literal["batch.volcano.sh/v1alpha1"] = Field(
        default="batch.volcano.sh/v1alpha1", json_schema_extra=API_DEFAULT
    )
    kind: Literal["Job"] = Field(default="Job", json_schema_extra=API_DEFAULT)
    spec: JobSpec = Field(default_factory=JobSpec, description="What runs.")
    status: JobStatus | None = Field(default=None, description="How far it got.")

    @model_validator(mode="after")
    def _has_tasks(self) -> Self:
        require_tasks(self.spec, "spec")
        return self
