"""Rows of jobs, deployments and what else makes pods."""

from __future__ import annotations

from volcano_py.simulator.apiserver.schema.tables.ages import age, seconds_of, span
from volcano_py.simulator.apiserver.schema.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Column,
    Document,
    at,
    count,
    field,
    labels,
    pod_template,
    select,
    text,
)

_TEMPLATE = ("spec", "template")
# The first of these that holds is the job's state.
_JOB_STATES = ("Complete", "Failed", "Terminating", "Suspended", "FailureTarget", "SuccessCriteriaMet")


def _job_state(job: Document, now: float) -> str:
    held = {
        one["type"] for one in field(job, "status", "conditions", default=()) if one.get("status") == "True"
    }
    if field(job, "metadata", "deletionTimestamp"):
        held.add("Terminating")
    return next((name for name in _JOB_STATES if name in held), "Running")


def _completions(job: Document, now: float) -> str:
    done = field(job, "status", "succeeded", default=0)
    wanted = field(job, "spec", "completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = field(job, "spec", "parallelism", default=0)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _duration(job: Document, now: float) -> str:
    start = field(job, "status", "startTime")
    if not start:
        return ""
    end = field(job, "status", "completionTime")
    return span((seconds_of(end) if end else now) - seconds_of(start))


def _suspended(document: Document, now: float) -> str:
    value = field(document, "spec", "suspend")
    return UNSET if value is None else str(value)


def _last_schedule(cron: Document, now: float) -> str:
    last = field(cron, "status", "lastScheduleTime")
    return age(last, now) if last else NONE


def _ready_of_wanted(document: Document, now: float) -> str:
    ready = field(document, "status", "readyReplicas", default=0)
    return f"{ready}/{field(document, 'spec', 'replicas', default=0)}"


def _node_selector(daemon: Document, now: float) -> str:
    return labels(field(daemon, *_TEMPLATE, "spec", "nodeSelector"))


def _number(name: str, *path: str) -> Column:
    return Column(name, at(*path, default=0), "integer")


JOBS = [
    NAME,
    Column("Status", _job_state),
    Column("Completions", _completions),
    Column("Duration", _duration),
    AGE,
    *pod_template(*_TEMPLATE),
    select("spec", "selector"),
]
CRON_JOBS = [
    NAME,
    Column("Schedule", text("spec", "schedule")),
    Column("Timezone", text("spec", "timeZone", default=NONE)),
    Column("Suspend", _suspended, "boolean"),
    Column("Active", count("status", "active"), "integer"),
    Column("Last Schedule", _last_schedule),
    AGE,
    *pod_template("spec", "jobTemplate", *_TEMPLATE),
    select("spec", "jobTemplate", "spec", "selector"),
]
DEPLOYMENTS = [
    NAME,
    Column("Ready", _ready_of_wanted),
    Column("Up-to-date", at("status", "updatedReplicas", default=0)),
    Column("Available", at("status", "availableReplicas", default=0)),
    AGE,
    *pod_template(*_TEMPLATE),
    select("spec", "selector"),
]
REPLICA_SETS = [
    NAME,
    _number("Desired", "spec", "replicas"),
    _number("Current", "status", "replicas"),
    _number("Ready", "status", "readyReplicas"),
    AGE,
    *pod_template(*_TEMPLATE),
    select("spec", "selector"),
]
REPLICATION_CONTROLLERS = [
    *REPLICA_SETS[:-1],
    Column("Selector", lambda document, now: labels(field(document, "spec", "selector")), priority=1),
]
STATEFUL_SETS = [NAME, Column("Ready", _ready_of_wanted), AGE, *pod_template(*_TEMPLATE)]
DAEMON_SETS = [
    NAME,
    _number("Desired", "status", "desiredNumberScheduled"),
    _number("Current", "status", "currentNumberScheduled"),
    _number("Ready", "status", "numberReady"),
    _number("Up-to-date", "status", "updatedNumberScheduled"),
    _number("Available", "status", "numberAvailable"),
    Column("Node Selector", _node_selector),
    AGE,
    *pod_template(*_TEMPLATE),
    select("spec", "selector"),
]
