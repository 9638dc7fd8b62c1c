"""Gangs that can never start: the empty cluster, or their queue, holds fewer members than they need."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from volcano_py.cli.vcctl.capacity import pods_on_empty_nodes
from volcano_py.cli.vcctl.doctor.alone import EmptyCluster
from volcano_py.cli.vcctl.doctor.finding import Evidence, Finding
from volcano_py.cli.vcctl.tables import counted
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.groups import COMPLETED
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.resources import UNLIMITED, Ints, pad
from volcano_py.scheduler.model.wording import absent_text, amounts_text, figure, offered


def check(evidence: Evidence) -> Iterator[Finding]:
    """One finding a PodGroup."""
    state, empty = evidence.engine.state, EmptyCluster(evidence)
    for job in state.jobs.live():
        waits = job.group is not None and job.phase != COMPLETED and job.ready() < job.min_member
        if waits:
            told = list(_never(state, job))
            yield from told or _refused_alone(state, empty, job)


def _refused_alone(state: ClusterState, empty: EmptyCluster, job: Job) -> Iterator[Finding]:
    """What no sum tells, as of cards: the engine refuses the gang with nobody else there."""
    refusal = empty.refusal(job) if len(job.tasks) >= job.min_member else None
    if refusal is not None:
        told = (
            f"needs {counted(job.min_member, 'pod')} at once; alone in the cluster it would not start: "
            f"{refusal.message}"
        )
        first = min(state.tasks.keys[task] for task in job.tasks)
        kind, name = ("podgroup", job.name) if job.min_member > 1 else ("pod", first.partition("/")[2])
        more = f"vcctl-py explain {kind} {name} -n {job.namespace} says more"
        yield Finding("error", f"PodGroup {job.key}", told, f"{_fix(state, job)}; {more}")


def _never(state: ClusterState, job: Job) -> Iterator[Finding]:
    fix = _fix(state, job)
    if job.tasks:
        rows = {int(state.tasks.klass[task]) for task in job.tasks}
        # The smallest of everything its pods ask: whoever needs more fits even less often.
        request: Ints = np.min([state.classes[row].request for row in rows], axis=0)
        charge: Ints = np.min([state.classes[row].charge for row in rows], axis=0)
        fits = pods_on_empty_nodes(state, request)
        if fits < job.min_member:
            told = f"needs {counted(job.min_member, 'pod')} at once; the cluster, if it were empty, "
            told += f"holds {fits} of them"
            told += "".join(f"; {what}" for what in _too_much(state, request))
            yield Finding("error", f"PodGroup {job.key}", told, fix)
            return
        yield from _in_queues(state, job, charge, fix)
    if job.min_resources is not None:
        yield from _minimum(state, job, fix)


def _fix(state: ClusterState, job: Job) -> str:
    """In the words of who made it: people know their pods, not the group that was made for one."""
    if job.min_member > 1 or not job.tasks:
        return f"lower spec.minMember or what its pods ask for (PodGroup {job.key})"
    pod = min(state.tasks.keys[task] for task in job.tasks)
    return f"let pod {pod} ask for what a node and its queue have"


def _too_much(state: ClusterState, request: Ints) -> Iterator[str]:
    """Resources of which one pod asks more than any node has."""
    largest, known = state.nodes.allocatable[state.nodes.live].max(axis=0, initial=0), offered(state)
    for column in np.flatnonzero(request > largest).tolist():
        name = state.vocabulary.names[column]
        if name not in known:
            yield absent_text(state, name)
            continue
        asked = amounts_text(state, {name: int(request[column])})
        yield f"one asks {asked}, and no node has more than {figure(state, name, int(largest[column]))}"


def _in_queues(state: ClusterState, job: Job, charge: Ints, fix: str) -> Iterator[Finding]:
    """The first queue on its path that can never hold the gang."""
    columns = np.flatnonzero(charge)
    for row in state.queues[job.queue].path if job.queue >= 0 else ():
        most = state.queues.capability[row, columns]
        counts = np.where(most < UNLIMITED, most // charge[columns], job.min_member)
        at = int(counts.argmin())
        if counts[at] < job.min_member:
            limit = amounts_text(state, {state.vocabulary.names[int(columns[at])]: int(most[at])})
            told = (
                f"needs {counted(job.min_member, 'pod')} at once; queue {state.queues[row].name} holds "
                f"{int(counts[at])} of them, its max is {limit}"
            )
            yield Finding("error", f"PodGroup {job.key}", told, f"{fix}, or raise the queue's max")
            return


def _minimum(state: ClusterState, job: Job, fix: str) -> Iterator[Finding]:
    """Its minResources against everything there is."""
    if job.min_resources is None:
        return
    asked = pad(job.min_resources, state.vocabulary.width)
    total = state.nodes.allocatable[state.nodes.live].sum(axis=0)
    over = np.flatnonzero((asked > total) & (asked > 0))
    if len(over):
        name = state.vocabulary.names[int(over[0])]
        told = (
            f"spec.minResources asks {amounts_text(state, {name: int(asked[over[0]])})}; all nodes together "
            f"have {figure(state, name, int(total[over[0]]))}"
        )
        yield Finding(
            "error", f"PodGroup {job.key}", told, fix.replace("spec.minMember", "spec.minResources")
        )
