"""What became of decisions, told to the state between cycles.

A bind or an eviction that was decided holds in the state until the server shows it on the pod, or until its
order failed. Then it is taken back here, and the next cycle decides anew: the member of a gang first
(decisions.md 15), but a pod that fails again and again later each time (``model/holds``).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from volcano_py.scheduler.cluster.notices import EVICTED_FOR
from volcano_py.scheduler.cluster.orders import (
    BindDone,
    BindFailed,
    EvictFailed,
    KeepOrder,
    Outcome,
    Trouble,
)
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.pods import status_of
from volcano_py.scheduler.model.tasks import NOWHERE, Status

THE_PODS: frozenset[Trouble] = frozenset({"refused", "volumes", "fault"})
"""Troubles that may come again with the same pod."""


def settle(state: ClusterState, outcome: Outcome) -> None:
    """Take in *outcome*, whatever it is of."""
    if isinstance(outcome, BindFailed):
        bind_failed(state, outcome.key, outcome.uid, outcome.why, outcome.trouble)
    elif isinstance(outcome, EvictFailed):
        evict_failed(state, outcome.key, outcome.uid, outcome.why, outcome.trouble)
    elif isinstance(outcome, BindDone):
        state.holds.bind_done(outcome.uid)
        state.volumes.unpin(outcome.key)


def bind_failed(state: ClusterState, key: str, uid: str, why: str, trouble: Trouble) -> None:
    """Pod *key* ("namespace/name") of *uid* waits again; its node, cards and volumes are free."""
    task = _task(state, key, uid)
    if task is None or state.tasks.status[task] != Status.BINDING:
        return
    state.accounts.move([task], Status.PENDING, None)
    state.volumes.unpin(key)
    if trouble in THE_PODS:
        state.holds.bind_failed(task, why)


def evict_failed(state: ClusterState, key: str, uid: str, why: str, trouble: Trouble) -> None:
    """Pod *key* of *uid* stays where it is, unless it is on its way out by somebody else's doing."""
    task = _task(state, key, uid)
    if task is None or state.tasks.status[task] != Status.RELEASING:
        return
    pod = state.tasks.pods[task]
    if pod is None or status_of(pod) == Status.RELEASING:
        return
    state.accounts.move([task], status_of(pod), state.tasks.node[task : task + 1].copy())
    if trouble in THE_PODS:
        state.holds.eviction_failed(task, why)


def evict_resumed(state: ClusterState, key: str, uid: str) -> bool:
    """Pod *key* carries the notice of an eviction that is gone on with: it is on its way out.

    Returns:
        False if there is no such pod on a node.
    """
    task = _task(state, key, uid)
    if task is None or state.tasks.node[task] == NOWHERE:
        return False
    if state.tasks.status[task] != Status.RELEASING:
        state.accounts.move([task], Status.RELEASING, state.tasks.node[task : task + 1].copy())
    return True


def withdrawals(state: ClusterState) -> Iterator[KeepOrder]:
    """Evictions under notice whose claimant needs them no more: it is gone, or has started elsewhere.

    Pods that carry the marks and are not on their way out yet; one without a claimant has to go anyway.
    """
    tasks = state.tasks
    for task in np.flatnonzero(tasks.status[: tasks.size] == Status.RELEASING).tolist():
        pod = tasks.pods[task]
        if pod is None or pod.metadata.deletion_timestamp is not None:
            continue
        claimant = pod.metadata.annotations.get(EVICTED_FOR, "")
        if claimant and not _waits(state, claimant):
            yield KeepOrder(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)


def _waits(state: ClusterState, claimant: str) -> bool:
    """Whether the job *claimant* ("namespace/name") needs room yet: to start, or what is kept for it."""
    job = state.jobs.named(claimant)
    if job is None or job.group is None or not job.pending:
        return False
    return job.standing < job.min_member or not job.pending.isdisjoint(state.tasks.nominated)


def _task(state: ClusterState, key: str, uid: str) -> int | None:
    task = state.tasks.index.get(key)
    return task if task is not None and state.tasks.uids[task] == uid else None
