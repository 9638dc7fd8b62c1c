"""What nobody serves: PodGroups in queues that don't exist or are closed, pods without their group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from volcano_py.cli.vcctl.doctor.finding import Evidence, Finding, some
from volcano_py.cli.vcctl.tables import counted
from volcano_py.crds.messages import did_you_mean
from volcano_py.scheduler.model.tasks import NOWHERE, Status
from volcano_py.simulator.inspection import broken_links

CLOSED: Final = "QueueClosed"
"""The reason of what waits in a queue that takes no jobs."""
PATIENCE_S: Final = 30.0
"""A controller puts a pod into a group much sooner."""


def check(evidence: Evidence) -> Iterator[Finding]:
    """One finding a PodGroup or pod."""
    state = evidence.engine.state
    queues = [queue.name for queue in state.queues.live()]
    for kind, key, problem in broken_links(state):
        if kind == "Queue":
            continue  # told by queue-tree
        if problem.field == "spec.queue":
            job = state.jobs.named(key)
            hint = did_you_mean(job.queue_name, queues) if job is not None else ""
            namespace, _, name = key.partition("/")
            fix = f"vcctl-py podgroup move {name} -n {namespace} --to QUEUE{hint}, or make that queue"
        else:
            fix = "mend that field"
        yield Finding("error", f"{kind} {key}", str(problem), fix)
    yield from _closed(evidence)
    yield from _ungrouped(evidence)


def _closed(evidence: Evidence) -> Iterator[Finding]:
    """Queues that take no jobs and have some that wait, one finding a queue: perhaps it was forgotten."""
    refused: dict[str, list[str]] = {}
    for key, refusal in evidence.result.job_refusals.items():
        job = evidence.engine.state.jobs.named(key)
        if job is not None and refusal.reason == CLOSED:
            refused.setdefault(job.queue_name, []).append(key)
    for queue, keys in sorted(refused.items()):
        namespace, _, name = min(keys).partition("/")
        wait = "waits" if len(keys) == 1 else "wait"
        told = f"{counted(len(keys), 'PodGroup')} {wait} there: {some(sorted(keys))}"
        fix = f"vcctl-py queue operate {queue} -a open"
        fix += f", or vcctl-py podgroup move {name} -n {namespace} --to QUEUE"
        yield Finding("warning", f"Queue {queue}", f"takes no jobs, since it is not open, and {told}", fix)


def _ungrouped(evidence: Evidence) -> Iterator[Finding]:
    """Pods that no controller has put into a group, told once."""
    tasks, size = evidence.engine.state.tasks, evidence.engine.state.tasks.size
    alone = (tasks.job[:size] == NOWHERE) & (tasks.status[:size] == Status.PENDING)
    alone &= tasks.created[:size] < evidence.server_time - PATIENCE_S
    keys = sorted(tasks.keys[task] for task in np.flatnonzero(alone).tolist() if tasks.keys[task])
    if keys:
        namespace, _, name = keys[0].partition("/")
        yield Finding(
            "error",
            f"Pod {keys[0]}",
            f"{counted(len(keys), 'pod')} without a PodGroup ({some(keys)}): no controller has made one",
            "start volcano-py controller; if it runs, an event says why it could not: "
            f"kubectl describe pod {name} -n {namespace}",
        )
