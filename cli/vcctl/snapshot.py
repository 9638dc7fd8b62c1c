"""The cluster as it is now, in an engine of our own: whatever is asked of it changes nothing out there.

The engine that answers is the scheduler's, fed with the same objects and the same configuration, so an
answer is what the scheduler would decide, not a guess at it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from volcano_py.cli.vcctl.cluster import PAGE, Cluster, CommandError
from volcano_py.cli.vcctl.live_config import Source, scheduler_config
from volcano_py.client.api import ApiError
from volcano_py.client.resources import RESOURCES
from volcano_py.scheduler.cluster.feed import ENGINE_KINDS
from volcano_py.scheduler.cluster.wire import Reader
from volcano_py.scheduler.decoding import decode_object, identity_of
from volcano_py.scheduler.engine import CycleResult, Engine
from volcano_py.scheduler.model.groups import COMPLETED
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem
from volcano_py.scheduler.model.queues import Queue

NEEDED: Final = ("Pod", "Node", "PodGroup", "Queue")
"""Kinds without which no answer is possible."""


class Listed(NamedTuple):
    """One object of a list; ``item`` is None where it could not be read, as ``problems`` say."""

    kind: str
    key: str
    item: Any | None
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster at one moment.

    Attributes:
        engine: holds it; nobody else does.
        source: the configuration the engine runs by.
        now: epoch seconds.
        objects: what the engine was fed, for those who need another one like it.
    """

    engine: Engine
    source: Source
    now: float
    objects: tuple[Listed, ...]

    def again(self) -> Engine:
        """Another engine over the same objects."""
        return fed(self.source, self.objects)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the next cycle would do, and who stands where in the line of each queue before it."""

    result: CycleResult
    lines: dict[str, list[str]]


async def snapshot(cluster: Cluster, conf: Path | None) -> Snapshot:
    """Everything a scheduler reads, listed once. Raises ``CommandError`` where it can't be."""
    source = await scheduler_config(cluster, conf)
    objects = tuple(await _listed(cluster))
    return Snapshot(fed(source, objects), source, time.time(), objects)


def fed(source: Source, objects: Iterable[Listed]) -> Engine:
    """An engine that holds *objects*, and calls cards as *source* does."""
    engine = Engine(source.config)
    if source.cards is not None:
        take_in(engine, [as_listed(source.cards)])
    take_in(engine, objects)
    return engine


def take_in(engine: Engine, objects: Iterable[Listed]) -> None:
    """Let *engine* take in *objects*; those that could not be read are marked in its state."""
    listed = list(objects)
    engine.state.upsert_all(one.item for one in listed if one.item is not None)
    for one in listed:
        if one.problems:
            engine.state.mark(one.kind, one.key, list(one.problems))


def as_listed(document: Mapping[str, Any]) -> Listed:
    """*document* as it would stand in a list; ``item`` is None too where no scheduler reads its kind."""
    kind, key = identity_of(document)
    try:
        return Listed(kind, key, decode_object(document), ())
    except ObjectError as error:
        return Listed(kind, key, None, tuple(error.problems))


def outlook(engine: Engine, now: float) -> Outlook:
    """Run one cycle of *engine* at *now*, and note the line of every queue before it."""
    session = engine.open(now)
    lines: dict[str, list[str]] = {}
    for queue in engine.state.queues.live():
        waiting = sorted(waiting_jobs(engine, queue), key=session.job_order_key)
        lines[queue.name] = [job.key for job in waiting]
    for action in engine.actions:
        action.run(session)
    return Outlook(engine.close(session), lines)


def waiting_jobs(engine: Engine, queue: Queue) -> list[Job]:
    """Jobs of *queue* that have something to start."""
    jobs = engine.state.jobs
    found = [jobs[row] for row in queue.jobs]
    return [job for job in found if job.phase != COMPLETED and (job.pending or row_waits(engine, job))]


def row_waits(engine: Engine, job: Job) -> bool:
    """*job* waits at the gate, with or without pods."""
    return job.row in engine.state.jobs.gate_waiting


async def _listed(cluster: Cluster) -> list[Listed]:
    """All objects a scheduler reads, what pods refer to before the pods."""
    kinds = await asyncio.gather(*(_kind(cluster, kind) for kind in ENGINE_KINDS))
    return [item for items in kinds for item in items]


async def _kind(cluster: Cluster, kind: str) -> list[Listed]:
    """All objects of *kind*; none where it isn't served or may not be read, if an answer is possible so."""
    resource = RESOURCES[kind]
    reader, found, more = Reader(resource), [], ""
    try:
        while True:
            query = {"limit": str(PAGE), **({"continue": more} if more else {})}
            page = reader.page(await cluster.read_raw(resource.path(), **query))
            found += [Listed(kind, seen.key, seen.item, seen.problems) for seen in page.items]
            more = page.more
            if not more:
                return found
    except ApiError as error:
        if error.status not in (403, 404):
            raise
        if kind in NEEDED:
            hint = "are the CRDs installed? kubectl apply -f crds/yaml" if error.is_missing else ""
            raise CommandError(f"{kind}s can't be listed: {error.message}", hint) from error
        sys.stderr.write(f"note: {kind}s are left out: {error.message}\n")
        return []
