"""Why a pod waits, from everything a cycle said about it."""

from __future__ import annotations

from volcano_py.scheduler.engine import CycleResult, Engine
from volcano_py.scheduler.framework.close import UNSCHEDULABLE, GroupStatus
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.groups import PENDING
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.tasks import NOWHERE, Status

INVALID = "InvalidObject"


def waiting_reason(engine: Engine, result: CycleResult | None, pod: str) -> Refusal | None:
    """The reason *pod* ("namespace/name") waits after *result*; None if it does not wait.

    What is wrong with the objects first, then the pod's own refusal, then that of its group.
    """
    state = engine.state
    wrong = _invalid(state, f"Pod {pod}") or _invalid(state, f"PodGroup {pod}")
    if wrong is not None:
        return wrong
    task = state.tasks.index.get(pod, NOWHERE)
    if task == NOWHERE or state.tasks.status[task] not in (Status.PENDING, Status.PIPELINED):
        return None
    row = int(state.tasks.job[task])
    if row == NOWHERE:
        return Refusal("NoPodGroup", "the pod names no PodGroup")
    job = state.jobs[row]
    return (
        (_invalid(state, f"PodGroup {job.key}") if job.group is None else None)
        or (_invalid(state, f"Queue {job.queue_name}") if job.queue < 0 else None)
        or _refused(result, pod, job)
        or _kept_back(state, task)
        or _of_group(job)
        or _not_looked_at(engine, result, job)
    )


def _invalid(state: ClusterState, name: str) -> Refusal | None:
    """What is wrong with the object *name* ("Kind namespace/name"), which therefore counts as absent."""
    problems = state.problems.get(name)
    if not problems:
        return None
    return Refusal(INVALID, f"{name} is not valid: {'; '.join(str(problem) for problem in problems)}")


def _refused(result: CycleResult | None, pod: str, job: Job) -> Refusal | None:
    if result is None:
        return None
    return result.refusals.get(pod) or result.job_refusals.get(job.key)


def _kept_back(state: ClusterState, task: int) -> Refusal | None:
    """Reserved room, or gates of the pod's own."""
    if task in state.tasks.nominated:
        node = state.nodes.names[state.tasks.nominated[task]]
        return Refusal("Reserved", f"waits for pods that are leaving node {node}, where room is kept for it")
    pod = state.tasks.pods[task]
    if pod is not None and pod.spec.scheduling_gates:
        gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
        return Refusal("SchedulingGated", f"the pod has scheduling gates: {gates}")
    return None


def _of_group(job: Job) -> Refusal | None:
    """What was last said of the group, by an earlier cycle."""
    said = job.said.conditions if isinstance(job.said, GroupStatus) else ()
    for condition in said:
        if condition.type == UNSCHEDULABLE and condition.message:
            return Refusal(condition.reason, condition.message)
    return None


def _not_looked_at(engine: Engine, result: CycleResult | None, job: Job) -> Refusal:
    """Nobody said anything; what can truthfully be said of that."""
    actions = engine.config.actions
    if result is None:
        why = "no cycle has run"
    elif job.phase == PENDING and "enqueue" in actions:
        why = f"PodGroup {job.key} has not been admitted to queue {job.queue_name}"
    elif not {"allocate", "backfill"} & set(actions):
        why = f"no configured action places pods (actions: {', '.join(actions)})"
    else:
        why = f"no action of the last cycle tried PodGroup {job.key}, which is {job.phase}"
    return Refusal("NotLookedAt", f"not looked at: {why}")
