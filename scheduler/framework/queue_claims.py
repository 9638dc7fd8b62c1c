"""What the cluster's queues say and hold, as the arithmetic of ``quota`` takes it.

Neighbours: ``queue_rules``, which hangs what follows from it on extension points.
"""

from __future__ import annotations

import numpy as np

from volcano_py.scheduler.framework.quota import Claims, Levels, guarantees
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.groups import COMPLETED
from volcano_py.scheduler.model.queues import Queue
from volcano_py.scheduler.model.resources import UNLIMITED, Ints
from volcano_py.scheduler.model.tasks import ALLOCATED, NOWHERE


def queue_claims(state: ClusterState) -> Claims:
    """What *state*'s queues say; a queue is in use if it or one below it has an unfinished job."""
    queues = state.queues
    lends, used = np.zeros(len(queues.weight), np.bool_), np.zeros(len(queues.weight), np.bool_)
    for queue in queues.queues:
        if queue is not None:
            lends[queue.row] = queue.lend_min
            if not queue.spec_problem and in_use(state, queue):
                used[list(queue.path)] = True
    levels, total = queue_levels(state), state.total()
    held = guarantees(levels, queues.guarantee, total)
    most = _most(state, levels)
    return Claims(levels, total, queues.weight, held, queues.capability, lends, used, most)


def _most(state: ClusterState, levels: Levels) -> Ints:
    """(Q, R) the most that each queue can use: a closed one starts nothing, so it needs what it holds.

    An inner queue can use what those below it can.
    """
    queues = state.queues
    shut = np.zeros(len(queues.weight), np.bool_)
    for queue in queues.live():
        shut[queue.row] = queue.leaf and not queue.open
    most = np.where(shut[:, None], queues.allocated + queues.pipelined, UNLIMITED)
    for parent, rows in reversed(levels):
        if parent >= 0 and shut[rows].all():
            shut[parent], most[parent] = True, most[rows].sum(axis=0)
    return most


def in_use(state: ClusterState, queue: Queue) -> bool:
    """Some job of *queue* is not finished."""
    return any(state.jobs[row].phase != COMPLETED for row in queue.jobs)


def queue_levels(state: ClusterState) -> Levels:
    """The tree of sound queues from the top, level by level."""
    by_parent: dict[tuple[int, int], list[int]] = {}
    for queue in state.queues.queues:
        if queue is not None and not queue.spec_problem:
            parent = queue.path[1] if len(queue.path) > 1 else NOWHERE
            by_parent.setdefault((len(queue.path), parent), []).append(queue.row)
    return [(parent, by_parent[depth, parent]) for depth, parent in sorted(by_parent)]


def amounts_aside(state: ClusterState) -> tuple[Ints | None, Ints | None]:
    """What queues hold on nodes that are not shared out (cordoned, tainted); None where nothing.

    ``total`` leaves these nodes out, so what runs there must not count as taken from it either.

    Returns:
        (Q, R) amounts of pods that stay, and the part of them that may not be interrupted.
    """
    nodes, tasks, queues = state.nodes, state.tasks, state.queues
    usable, apart = state.ordinary()
    odd = ~usable & (nodes.used > 0).any(axis=1)
    if not odd.any():
        return None, None
    standing = ALLOCATED[tasks.status] & (tasks.node != NOWHERE) & (tasks.job != NOWHERE)
    aside, firm = np.zeros_like(queues.allocated), np.zeros_like(queues.allocated)
    for task in np.flatnonzero(standing & odd[tasks.node]).tolist():
        job = state.jobs[int(tasks.job[task])]
        if job.queue >= 0:
            path = list(queues[job.queue].path)
            charge = np.where(apart, 0, state.accounts.charge_of_task(task))
            aside[path] += charge
            if not tasks.interruptible[task]:
                firm[path] += charge
    return aside, firm
