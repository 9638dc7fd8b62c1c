"""One course through a fresh engine in this process: what it cost, and whether it was right."""

from __future__ import annotations

import gc
import resource
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final

from volcano_py.crds.schedulerconfig import load_scheduler_config
from volcano_py.scheduler.decoding import decode_object
from volcano_py.scheduler.engine import CycleResult, Engine
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.run import collector
from volcano_py.simulator.bench.course import Course, Outcome, Step
from volcano_py.simulator.bench.manifests import NOW, Document

_DECODED_TOGETHER: Final = 2_000
_WARM_CYCLES: Final = 50


class WrongOutcomeError(Exception):
    """A shape did not come out as it must."""


@dataclass(slots=True)
class Measurement:
    """What one run of a course cost.

    Attributes:
        cpu_s, wall_s: of the measured steps, taking in and cycle; decoding not included.
        refresh_cpu_s, cycle_cpu_s: parts of ``cpu_s``: taking in decoded objects; actions and close.
        decode_cpu_s: documents to objects, of the measured steps.
        peak_mib: largest resident size of the process, preparation included.
        state_mib: by how much it had grown over a process that has only loaded the code.
        decisions: binds, evictions and promises of the measured steps.
        growth_mib: resident growth over the idle cycles, where these were asked for.
    """

    cpu_s: float = 0.0
    wall_s: float = 0.0
    refresh_cpu_s: float = 0.0
    cycle_cpu_s: float = 0.0
    decode_cpu_s: float = 0.0
    peak_mib: float = 0.0
    state_mib: float = 0.0
    decisions: int = 0
    growth_mib: float = 0.0
    costs: list[tuple[str, float]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


Watch = Callable[[bool], None]
"""Told when the measured part begins (True) and ends (False); the profiler hangs here."""


def measure(
    course: Course, *, config: str = "", idle_cycles: int = 0, watch: Watch | None = None
) -> Measurement:
    """Run *course* once.

    The garbage collector is set before the measured part as the scheduler sets it after its first sync.

    Args:
        course: what to run.
        config: another scheduler configuration (YAML) than the course's.
        idle_cycles: cycles with nothing to do at the end, over which memory is watched.
        watch: told when the measured part begins and ends.

    Raises:
        WrongOutcomeError: the decisions are not what they must be.
    """
    engine = Engine(load_scheduler_config(config or course.config))
    empty = _resident_mib()
    measurement = Measurement()
    for step in course.before:
        engine.state.upsert_all(_decoded(step))
        _check(engine, course, step.outcome, engine.cycle(NOW))
        engine.settle(NOW)
    for step in course.measured:
        _measured_step(engine, course, step, measurement, watch)
    measurement.state_mib = _resident_mib() - empty
    measurement.growth_mib = _growth_mib(engine, idle_cycles) if idle_cycles else 0.0
    measurement.peak_mib = _peak_mib()
    return measurement


def _measured_step(
    engine: Engine, course: Course, step: Step, measurement: Measurement, watch: Watch | None
) -> None:
    began = process_time()
    objects = _decoded(step)
    measurement.decode_cpu_s += process_time() - began
    collector.settle()
    with _watched(watch):
        wall, cpu = perf_counter(), process_time()
        problems = engine.state.upsert_all(objects)
        taken_in = process_time()
        result = engine.cycle(NOW)
        done = process_time()
        measurement.wall_s += perf_counter() - wall
    measurement.refresh_cpu_s += taken_in - cpu
    measurement.cycle_cpu_s += done - taken_in
    measurement.cpu_s += done - cpu
    measurement.decisions += len(result.decisions)
    if problems:
        raise WrongOutcomeError(f"{course.shape.name}: objects with problems: {problems}")
    _check(engine, course, step.outcome, result)
    engine.settle(NOW)


def _decoded(step: Step) -> list[object]:
    """The objects of *step*; documents are read in portions, so that not all are held at once."""
    documents = iter(step.arrive())
    objects: list[object] = []
    while portion := list(islice(documents, _DECODED_TOGETHER)):
        objects += _known(portion)
    return objects


def _known(documents: Iterable[Document]) -> Iterator[object]:
    for document in documents:
        found = decode_object(document)
        if found is None:
            raise WrongOutcomeError(f"nobody knows a {document.get('kind')}")
        yield found


@contextmanager
def _watched(watch: Watch | None) -> Iterator[None]:
    if watch is not None:
        watch(True)
    yield
    if watch is not None:
        watch(False)


def _check(engine: Engine, course: Course, expected: Outcome, result: CycleResult) -> None:
    """Decisions by number, gangs whole, no node over what it has."""
    kinds = Counter(decision.kind for decision in result.decisions)
    refused = sum(
        1 for key in _waiting(engine) if key in result.refusals or _group_waits(engine, key, result)
    )
    found = Outcome(kinds["bind"], kinds["evict"], kinds["pipeline"], refused if expected.refused else 0)
    faults = [] if found == expected else [f"expected {expected}, found {found}"]
    twice = [pod for pod, count in Counter(d.pod for d in result.decisions).items() if count > 1]
    faults += [f"decided twice: {twice[:3]}"] if twice else []
    parts = [job.key for job in engine.state.jobs.live() if 0 < _standing(job) < job.min_member]
    faults += [f"gangs in part: {parts[:3]}"] if parts else []
    nodes = engine.state.nodes
    over = nodes.live & (nodes.used > nodes.allocatable).any(axis=1)
    faults += [f"{int(over.sum())} nodes hold more than they have"] if over.any() else []
    if faults:
        raise WrongOutcomeError(f"{course.shape.name}: {'; '.join(faults)}")


def _waiting(engine: Engine) -> list[str]:
    jobs, tasks = engine.state.jobs, engine.state.tasks
    return [tasks.keys[task] for row in jobs.with_pending for task in jobs[row].pending]


def _group_waits(engine: Engine, pod: str, result: CycleResult) -> bool:
    """The pod's group as a whole was told why it waits."""
    tasks = engine.state.tasks
    return engine.state.jobs[int(tasks.job[tasks.index[pod]])].key in result.job_refusals


def _standing(job: Job) -> int:
    return job.ready()


def _growth_mib(engine: Engine, cycles: int) -> float:
    for _ in range(_WARM_CYCLES):
        engine.cycle(NOW)
    gc.collect()
    before = _resident_mib()
    for _ in range(cycles):
        engine.cycle(NOW)
    gc.collect()
    return _resident_mib() - before


def _resident_mib() -> float:
    """Resident size now; 0 where the system has no /proc."""
    path = Path("/proc/self/statm")
    pages = int(path.read_text().split()[1]) if path.exists() else 0
    return pages * resource.getpagesize() / 2**20


def _peak_mib() -> float:
    """Largest resident size of this process.

    ``ru_maxrss`` alone counts what the parent held when it started us, so the kernel's own high-water
    mark goes first where there is one.
    """
    path = Path("/proc/self/status")
    for line in path.read_text().splitlines() if path.exists() else ():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
