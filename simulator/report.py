"""What some cycles decided, and how queues, groups and waiting pods stand, as JSON-ready data.

Amounts are written as Kubernetes writes them. Of a limit, a resource that is left out is unlimited and
``0`` means nothing; resources that neither a node nor a pod has are left out of what was computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from volcano_py.crds.quantity import format_base
from volcano_py.scheduler.engine import CycleResult, Engine
from volcano_py.scheduler.framework.close import GroupStatus
from volcano_py.scheduler.framework.decision import Decision
from volcano_py.scheduler.framework.queue_claims import amounts_aside
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.framework.shares import QueueShares
from volcano_py.scheduler.model.cards import Slice
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.kube.times import format_time
from volcano_py.scheduler.model.queues import Queue
from volcano_py.scheduler.model.resources import PODS, UNLIMITED, Ints, Mask
from volcano_py.scheduler.model.tasks import NOWHERE, Status
from volcano_py.simulator.reasons import waiting_reason

Data = dict[str, Any]
_SHARE_DIGITS: Final = 4


def plan_report(engine: Engine, results: list[CycleResult], now: float) -> Data:
    """Everything a person or a program asks of a plan.

    Args:
        engine: after its cycles.
        results: of these cycles, in order; cycles count from 1.
        now: the clock afterwards, epoch seconds.
    """
    state = engine.state
    last = results[-1] if results else None
    return {
        "now": format_time(now),
        "cycles": len(results),
        "decisions": [
            _decision(state, number, decision)
            for number, result in enumerate(results, 1)
            for decision in result.decisions
        ],
        "podGroups": [_group(job) for job in state.jobs.live() if job.group is not None],
        "queues": queue_report(state, None if last is None else last.shares),
        "pending": _pending(engine, last),
    }


# -- decisions ----------------------------------------------------------------------------------


def _decision(state: ClusterState, cycle: int, decision: Decision) -> Data:
    """*decision* of *cycle*; ``podGroup`` is empty where the pod is gone by now."""
    task = state.tasks.index.get(decision.pod, NOWHERE)
    job = NOWHERE if task == NOWHERE else int(state.tasks.job[task])
    return {
        "cycle": cycle,
        "kind": decision.kind,
        "pod": decision.pod,
        "podGroup": "" if job == NOWHERE else state.jobs[job].key,
        "node": decision.node,
        "slices": [_slice(part) for part in decision.slices],
        "action": decision.action,
        "forWhom": decision.for_whom,
        "reason": decision.reason,
        "lost": decision.lost,
    }


def _slice(part: Slice) -> Data:
    """MiB of memory and percent of cores on one card."""
    return {
        "container": part.container,
        "card": part.card,
        "uuid": part.uuid,
        "memory": part.memory_mib,
        "cores": part.cores,
        **({"instance": part.instance} if part.instance else {}),
    }


# -- groups -------------------------------------------------------------------------------------


def _group(job: Job) -> Data:
    return {
        "name": job.key,
        "queue": job.queue_name,
        "phase": job.phase,
        "minMember": job.min_member,
        "pods": {status.name.capitalize(): job.counts[status] for status in Status if job.counts[status]},
        "conditions": _conditions(job),
    }


def _conditions(job: Job) -> list[Data]:
    """What was last said of *job*: by a cycle, else by its object."""
    said: Sequence[Any] = ()
    if isinstance(job.said, GroupStatus):
        said = job.said.conditions
    elif job.group is not None and job.group.status is not None:
        said = job.group.status.conditions
    return [{"type": c.type, "status": c.status, "reason": c.reason, "message": c.message} for c in said]


# -- queues -------------------------------------------------------------------------------------


def queue_report(state: ClusterState, shares: QueueShares | None) -> list[Data]:
    """How every queue stands; amounts that follow from *shares* are empty without them."""
    known = _known(state)
    aside, _ = amounts_aside(state)
    return [_queue(state, shares, queue, known, aside) for queue in state.queues.live()]


def _queue(
    state: ClusterState, shares: QueueShares | None, queue: Queue, known: Mask, aside: Ints | None
) -> Data:
    table, row = state.queues, queue.row
    text = state.vocabulary.text
    capability = table.capability[row]
    entry = {
        "name": queue.name,
        "parent": queue.parent,
        "weight": int(table.weight[row]),
        "state": queue.state,
        "problem": queue.spec_problem,
        "allocated": text(table.allocated[row]),
        "guarantee": text(table.guarantee[row]),
        "max": _limit(state, capability, capability < UNLIMITED),
        "deserved": {},
        "entitlement": {},
        "share": None,
        "over": {},
        "under": {},
    }
    if shares is None:
        return entry
    held = table.staying(row)
    if aside is not None:
        held = held - aside[row]
    entitlement = shares.entitlement[row]
    below = np.where(known & (entitlement < UNLIMITED), np.maximum(entitlement - held, 0), 0)
    return entry | {
        "deserved": _limit(state, shares.deserved[row], known),
        "entitlement": _limit(state, entitlement, known),
        "share": _share(held, shares.deserved[row]),
        "over": text(shares.over(row, held)),
        "under": text(below),
    }


def _known(state: ClusterState) -> Mask:
    """(R,) resources that a node has or a pod asks for; pods themselves only where a queue limits them."""
    nodes, queues = state.nodes, state.queues
    offered: Mask = np.any(nodes.allocatable[nodes.live] > 0, axis=0)
    asked: Mask = np.any((queues.allocated > 0) | (queues.pending != 0), axis=0)
    known: Mask = offered | asked
    rows = [queue.row for queue in queues.live()]
    stated = (
        (queues.capability[rows] < UNLIMITED) | (queues.deserved[rows] >= 0) | (queues.guarantee[rows] > 0)
    )
    known[PODS] = stated[:, PODS].any()
    return known


def _limit(state: ClusterState, limit: Ints, wanted: Mask) -> dict[str, str]:
    """The bounded amounts of *limit* (R,) among *wanted* (R,), zeros too."""
    names = state.vocabulary.names
    columns = np.flatnonzero(wanted & (limit < UNLIMITED)).tolist()
    return {names[i]: format_base(names[i], int(limit[i])) for i in columns if i < len(names)}


def _share(held: Ints, deserved: Ints) -> float:
    """The largest part of what it deserves that a queue holds; resources it deserves none of aside."""
    shared = (deserved > 0) & (deserved < UNLIMITED)
    if not shared.any():
        return 0.0
    return round(float((held[shared] / deserved[shared]).max()), _SHARE_DIGITS)


# -- what waits ---------------------------------------------------------------------------------


def _pending(engine: Engine, last: CycleResult | None) -> Data:
    tasks = engine.state.tasks
    waiting = np.isin(tasks.status[: tasks.size], (Status.PENDING, Status.PIPELINED))
    keys = sorted(key for task in np.flatnonzero(waiting).tolist() if (key := tasks.keys[task]))
    return {
        key: _refusal(reason) for key in keys if (reason := waiting_reason(engine, last, key)) is not None
    }


def _refusal(refusal: Refusal) -> Data:
    return {
        "reason": refusal.message,
        "code": refusal.reason,
        "nodes": refusal.nodes,
        "failed": dict(refusal.failed),
        "missing": {name: format_base(name, amount) for name, amount in refusal.missing.items()},
        "nearest": refusal.nearest,
    }
