"""The story of a queue: what it holds against what it may, and who waits in it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from volcano_py.cli.vcctl.explain.advice import changes
from volcano_py.cli.vcctl.explain.story import Story, reason
from volcano_py.cli.vcctl.snapshot import Outlook, Snapshot
from volcano_py.crds.quantity import format_base
from volcano_py.scheduler.engine import Engine
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.groups import COMPLETED
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.queues import Queue
from volcano_py.scheduler.model.resources import PODS, UNLIMITED, Ints, Mask
from volcano_py.scheduler.model.wording import amounts_text
from volcano_py.simulator.reasons import waiting_reason

SHOWN: Final = 10
"""Groups of a line that are listed."""


def queue_story(seen: Snapshot, ahead: Outlook, queue: Queue) -> Story:
    """Why *queue* gives what it gives."""
    story = Story(f"Queue {queue.name}", _verdict(seen, ahead, queue), configuration=seen.source.where)
    story.limits = limits(seen.engine, ahead, queue.name)
    if queue.spec_problem:
        story.reasons.append(reason(Refusal("QueueInvalid", queue.spec_problem)))
    line = ahead.lines.get(queue.name, [])
    for place, key in enumerate(line[:SHOWN], 1):
        story.reasons.append(_waiting(seen, ahead, key, place))
    if line:
        story.line = {
            "queue": queue.name,
            "of": len(line),
            "text": f"{len(line)} PodGroups wait, in this order" if len(line) > 1 else "1 PodGroup waits",
        }
        first = seen.engine.state.jobs.named(line[0])
        refusal = None if first is None else _refusal(seen, ahead, first)
        story.changes = changes(seen.engine.state, first, refusal) if first and refusal else []
    story.notes = _notes(seen, ahead, queue)
    return story


def limits(engine: Engine, ahead: Outlook, name: str, job: Job | None = None) -> list[dict[str, str]]:
    """What queue *name* and those above it hold and may hold, of what *job* asks (else of all they know)."""
    state, shares = engine.state, ahead.result.shares
    queue = state.queues.named(name)
    if queue is None:
        return []
    told = []
    for row in queue.path:
        held, most = state.queues.staying(row), state.queues.capability[row]
        owed = None if shares is None else shares.entitlement[row]
        for column in np.flatnonzero(_wanted(engine, row, job)).tolist():
            resource = state.vocabulary.names[column]
            entry = {
                "queue": state.queues[row].name,
                "resource": resource,
                "holds": format_base(resource, int(held[column])),
            }
            if owed is not None and owed[column] < UNLIMITED:
                entry["entitlement"] = format_base(resource, int(owed[column]))
            if most[column] < UNLIMITED:
                entry["max"] = format_base(resource, int(most[column]))
            told.append(entry)
    return told


def _wanted(engine: Engine, row: int, job: Job | None) -> Mask:
    """(R,) resources worth a line: those that *job* asks, else those that queue *row* holds or limits."""
    state = engine.state
    named = np.arange(state.vocabulary.width) < len(state.vocabulary.names)
    if job is not None and job.pending:
        rows = {int(state.tasks.klass[task]) for task in job.pending}
        asked: Ints = np.max([state.classes[klass].charge for klass in rows], axis=0)
        found: Mask = named & (asked > 0)
    else:
        queues = state.queues
        limited = (
            (queues.capability[row] < UNLIMITED) | (queues.deserved[row] > 0) | (queues.guarantee[row] > 0)
        )
        found = named & (limited | (queues.allocated[row] > 0) | (queues.pending[row] != 0))
    found[PODS] = found[PODS] and state.queues.capability[row, PODS] < UNLIMITED
    return found


def _verdict(seen: Snapshot, ahead: Outlook, queue: Queue) -> str:
    jobs = [seen.engine.state.jobs[row] for row in queue.jobs]
    running = sum(job.standing > 0 for job in jobs if job.phase != COMPLETED)
    waiting = len(ahead.lines.get(queue.name, []))
    parts = [queue.state, f"PodGroups: {running} running, {waiting} waiting"]
    if queue.children:
        children = ", ".join(sorted(seen.engine.state.queues[row].name for row in queue.children))
        parts.append(f"holds queues {children} and no jobs")
    return ", ".join(parts)


def called(state: ClusterState, key: str) -> str:
    """The PodGroup *key*, and whom it was made for: a controller calls it by a UID, which says nothing."""
    job = state.jobs.named(key)
    return key if job is None or not job.made_for else f"{key} ({job.made_for})"


def _waiting(seen: Snapshot, ahead: Outlook, key: str, place: int) -> dict[str, Any]:
    job = seen.engine.state.jobs.named(key)
    refusal = None if job is None else _refusal(seen, ahead, job)
    name = called(seen.engine.state, key)
    if refusal is None:
        return {"code": "Starts", "message": f"{place}. {name}: starts in the next cycle"}
    found = reason(refusal)
    return {**found, "message": f"{place}. {name}: {refusal.message}", "podGroup": key}


def _refusal(seen: Snapshot, ahead: Outlook, job: Job) -> Refusal | None:
    """Why *job* waits: as a whole, else its first pod; of a pod alone its own reason says all."""
    whole = ahead.result.job_refusals.get(job.key)
    if not job.pending or (whole is not None and len(job.tasks) > 1):
        return whole
    first = min(seen.engine.state.tasks.keys[task] for task in job.pending)
    return waiting_reason(seen.engine, ahead.result, first)


def _notes(seen: Snapshot, ahead: Outlook, queue: Queue) -> list[str]:
    """What it lends and what it has borrowed."""
    state, shares = seen.engine.state, ahead.result.shares
    if shares is None or queue.spec_problem:
        return []
    held = state.queues.staying(queue.row)
    entitlement = shares.entitlement[queue.row]
    over = shares.over(queue.row, held)
    idle = np.where((entitlement < UNLIMITED) & (entitlement > held), entitlement - held, 0)
    idle[PODS] = over[PODS] = 0
    notes = []
    if (over > 0).any():
        notes.append(f"it has borrowed {_amounts(state, over)}, which others may take back")
    guarantee = state.queues.guarantee[queue.row]
    lent = (
        idle if queue.lend_min else np.where(guarantee > held, np.maximum(entitlement - guarantee, 0), idle)
    )
    lent = np.minimum(lent, idle)
    if (lent > 0).any():
        notes.append(f"of its entitlement {_amounts(state, lent)} is idle and may be borrowed")
    kept = idle - lent
    if (kept > 0).any():
        notes.append(f"{_amounts(state, kept)} is idle and held for it")
    return notes


def _amounts(state: ClusterState, vector: Ints) -> str:
    return amounts_text(state, state.vocabulary.amounts(vector))
