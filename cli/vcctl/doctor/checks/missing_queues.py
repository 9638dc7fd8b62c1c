"""Names that lead nowhere: PodGroups in queues that don't exist or take no jobs, pods without their group."""

from __future__ import annotations

from collections.abc import Iterator

from volcano_py.cli.vcctl.doctor.finding import Evidence, Finding
from volcano_py.crds.messages import did_you_mean
from volcano_py.simulator.inspection import broken_links


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
