"""Why a pod waits, from everything a cycle said about it."""

from __future__ import annotations

from volcano_py.scheduler.engine import CycleResult, Engine
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.model.groups import PENDING
from volcano_py.scheduler.model.tasks import NOWHERE, Status


def waiting_reason(engine: Engine, result: CycleResult | None, pod: str) -> Refusal | None:
    """The reason *pod* ("namespace/name") waits after *result*; None if it does not wait.

    The pod's own refusal first, then that of its group, then what is wrong with the objects.
    """
    state = engine.state
    for kind in ("Pod", "PodGroup"):
        problems = state.problems.get(f"{kind} {pod}")
        if problems:
            return Refusal("InvalidObject", "; ".join(str(problem) for problem in problems))
    task = state.tasks.index.get(pod, NOWHERE)
    if task == NOWHERE or state.tasks.status[task] not in (Status.PENDING, Status.PIPELINED):
        return None
    row = int(state.tasks.job[task])
    if row == NOWHERE:
        return Refusal("NoPodGroup", f"pod {pod} names no PodGroup")
    job = state.jobs[row]
    if result is not None:
        if pod in result.refusals:
            return result.refusals[pod]
        if job.key in result.job_refusals:
            return result.job_refusals[job.key]
    if task in state.tasks.nominated:
        node = state.nodes.names[state.tasks.nominated[task]]
        return Refusal("Reserved", f"waits for pods that are leaving node {node}, where room is kept for it")
    if job.phase == PENDING:
        return Refusal("NotAdmitted", f"PodGroup {job.key} has not been admitted to queue {job.queue_name}")
    return Refusal("NotReached", f"PodGroup {job.key} waits for more members than it has")
