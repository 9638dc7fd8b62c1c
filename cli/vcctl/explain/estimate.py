"""When a gang may start: the engine runs on in virtual time, and work ends when it says it does.

Known run times are ``activeDeadlineSeconds`` of pods and ``runningEstimate`` of their Jobs. Work that says
nothing counts as endless, so an estimate is late rather than early, and may be none.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from volcano_py.cli.vcctl.cluster import PAGE, Cluster
from volcano_py.client.api import ApiError
from volcano_py.client.resources import RESOURCES
from volcano_py.crds.times import parse_duration_s
from volcano_py.scheduler.engine import Engine
from volcano_py.scheduler.model.tasks import Status

MOST_CYCLES: Final = 500
MOST_S: Final = 10.0
"""Seconds of our own time that an estimate may take."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """When something may start.

    Attributes:
        start: epoch seconds; None where nothing known lets it start.
        endless: running pods of which nobody knows when they end.
        cut_short: the time for an answer was over before there was one.
        in_vain: it would not start even if all that runs ended.
    """

    start: float | None
    endless: int
    cut_short: bool = False
    in_vain: bool = False


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    active_deadline_seconds: float | None = None


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Meta
    spec: _Spec = _Spec()


class _ListMeta(msgspec.Struct, frozen=True, rename={"more": "continue"}):
    more: str = ""


class _Pods(msgspec.Struct, frozen=True):
    items: list[_Pod]
    metadata: _ListMeta = _ListMeta()


_JOB: Final = "volcano.sh/job-name"


async def run_times(cluster: Cluster) -> dict[str, float]:
    """Seconds that pods run, by "namespace/name", of those of which that is known."""
    jobs = await _of_jobs(cluster)
    found: dict[str, float] = {}
    more = ""
    while True:
        query = {"limit": str(PAGE), **({"continue": more} if more else {})}
        page = msgspec.json.decode(await cluster.read_raw(RESOURCES["Pod"].path(), **query), type=_Pods)
        for pod in page.items:
            seconds = _seconds(pod, jobs)
            if seconds is not None:
                found[f"{pod.metadata.namespace}/{pod.metadata.name}"] = seconds
        more = page.metadata.more
        if not more:
            return found


def _seconds(pod: _Pod, jobs: Mapping[str, float]) -> float | None:
    meta = pod.metadata
    job = meta.annotations.get(_JOB) or meta.labels.get(_JOB) or ""
    told = [pod.spec.active_deadline_seconds, jobs.get(f"{meta.namespace}/{job}")]
    return min((seconds for seconds in told if seconds), default=None)


async def _of_jobs(cluster: Cluster) -> dict[str, float]:
    try:
        answer: Any = await cluster.read(RESOURCES["Job"].path())
    except ApiError as error:
        if error.status in (403, 404):
            return {}
        raise
    found = {}
    for job in answer.get("items") or []:
        said = (job.get("spec") or {}).get("runningEstimate")
        meta = job["metadata"]
        if said:
            found[f"{meta['namespace']}/{meta['name']}"] = parse_duration_s(said)
    return found


def estimate(
    engine: Engine,
    now: float,
    seconds: Mapping[str, float],
    started: Callable[[Engine], bool],
    group: str = "",
) -> Estimate:
    """Run *engine* on from *now* until *started*, or until nothing known happens any more.

    Args:
        engine: a cluster of one's own; it is used up.
        now: epoch seconds.
        seconds: run times by pod, see ``run_times``.
        started: whether what is asked about runs.
        group: its PodGroup, "namespace/name".
    """
    ends: list[tuple[float, str]] = []
    ending: set[str] = set()
    endless = _endless(engine, seconds)
    finish = time.monotonic() + MOST_S
    for _ in range(MOST_CYCLES):
        decided = bool(engine.cycle(now).decisions)
        engine.settle(now)
        if started(engine):
            return Estimate(now, endless)
        _note_ends(engine, seconds, ending, ends, now)
        if not decided:
            if not ends:
                in_vain = not _starts_some_day(engine, now, started, group, finish)
                return Estimate(None, endless, in_vain=in_vain)
            now = max(now, ends[0][0])
            while ends and ends[0][0] <= now:
                engine.delete("Pod", heapq.heappop(ends)[1])
        if time.monotonic() > finish:
            break
    return Estimate(None, endless, cut_short=True)


def _starts_some_day(
    engine: Engine, now: float, started: Callable[[Engine], bool], group: str, finish: float
) -> bool:
    """Whether it starts once all that runs has ended, its own *group* last; True where time ran out."""
    for own in (False, True):
        decided = True
        while decided and time.monotonic() < finish:
            for key in _running(engine, but="" if own else group):
                engine.delete("Pod", key)
            decided = bool(engine.cycle(now).decisions)
            engine.settle(now)
            if started(engine):
                return True
    return time.monotonic() >= finish


def _running(engine: Engine, but: str) -> list[str]:
    """Pods that run, but for those of PodGroup *but*."""
    tasks, jobs = engine.state.tasks, engine.state.jobs
    kept = jobs.named(but)
    mine = set() if kept is None else set(kept.tasks)
    return [
        key for key, task in tasks.index.items() if task not in mine and tasks.status[task] == Status.RUNNING
    ]


def _note_ends(
    engine: Engine, seconds: Mapping[str, float], ending: set[str], ends: list[tuple[float, str]], now: float
) -> None:
    """Put pods that began to run on the heap of *ends*; who ran longer than it said may run for ever."""
    tasks = engine.state.tasks
    for key, task in tasks.index.items():
        if key not in seconds or key in ending or tasks.status[task] != Status.RUNNING:
            continue
        end = float(tasks.started[task]) + seconds[key]
        if end > now:
            ending.add(key)
            heapq.heappush(ends, (end, key))


def _endless(engine: Engine, seconds: Mapping[str, float]) -> int:
    """Pods that run now and of which nobody knows how long."""
    return sum(key not in seconds for key in _running(engine, but=""))
