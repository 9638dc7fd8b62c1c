"""Names that lead nowhere: PodGroups in queues that don't exist or take no jobs, pods without their group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from volcano_py.cli.vcctl.doctor.finding import Evidence, Finding, some
from volcano_py.cli.vcctl.tables import counted
from volcano_py.crds.messages import did_you_mean
from volcano_py.scheduler.model.tasks import NOWHERE, Status
from volcano_py.simulator.inspection import broken_links

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
    yield from _ungrouped(evidence)


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
