"""What is loaded before, what is measured, and what must come out, for every shape.

Where nothing else is said, all of a shape (nodes, queue, PodGroups, pods) arrives at once and is
measured: taking it in, one cycle, its close. Shapes about a cluster at work load it first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from volcano_py.simulator.bench import manifests, slices
from volcano_py.simulator.bench.manifests import Document, amounts, group, node_name, pod
from volcano_py.simulator.bench.shapes import Shape

ACTIONS: Final = "enqueue, allocate, backfill"
CONFIG: Final = """\
actions: "{actions}"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]
- plugins: [{{name: overcommit}}, {{name: drf}}, {{name: predicates}}, {{name: proportion}}]
- plugins: [{{name: nodeorder}}, {{name: binpack}}{more}]
"""
CARDS: Final = ", {name: deviceshare}"
"""The plugin of shapes with cards."""
QUEUE: Final = "bench"


@dataclass(frozen=True)
class Outcome:
    """What the decisions of a step must add up to.

    Attributes:
        refused: waiting pods that are told why.
    """

    binds: int = 0
    evictions: int = 0
    promises: int = 0
    refused: int = 0


@dataclass(frozen=True)
class Step:
    """Objects that come, then a cycle, then (not measured) what it decided is carried out."""

    arrive: Callable[[], Iterable[Document]]
    outcome: Outcome


@dataclass(frozen=True)
class Course:
    """A shape as steps.

    Attributes:
        before: steps that only prepare.
        measured: steps whose cost counts.
        more: plugins besides those that every shape has.
    """

    shape: Shape
    measured: tuple[Step, ...]
    before: tuple[Step, ...] = ()
    actions: str = ACTIONS
    more: str = ""

    @property
    def config(self) -> str:
        """The scheduler configuration, as a file has it."""
        return CONFIG.format(actions=self.actions, more=self.more)


def course_of(shape: Shape) -> Course:
    """The course of *shape*: by its name where its note asks for more than its numbers say."""
    special = _SPECIAL.get(shape.name)
    return special(shape) if special else Course(shape, (arrival(shape, Outcome(binds=shape.pods)),))


def idle_course(shape: Shape) -> Course:
    """*shape* running, and nothing else."""
    return Course(shape, (NOTHING_NEW,), before=(Step(lambda: _running(shape), Outcome()),))


def arrival(shape: Shape, outcome: Outcome, **queue_spec: object) -> Step:
    """All of *shape* at once."""
    return Step(lambda: (*_cluster(shape, **queue_spec), *_jobs(shape, QUEUE)), outcome)


def _cluster(shape: Shape, **queue_spec: object) -> Iterator[Document]:
    yield from manifests.nodes(shape)
    yield manifests.queue(QUEUE, **queue_spec)


def _jobs(
    shape: Shape, in_queue: str, *, prefix: str = "job", count: int | None = None
) -> Iterator[Document]:
    for index in range(shape.jobs if count is None else count):
        yield from manifests.job(shape, f"{prefix}-{index:05}", in_queue)


def _running(shape: Shape) -> Iterator[Document]:
    """The cluster with every job of *shape* running, node after node in turn."""
    yield from _cluster(shape)
    place = 0
    for index in range(shape.jobs):
        name = f"job-{index:05}"
        yield group(name, shape.min_available, in_queue=QUEUE, phase="Running")
        yield from _running_pods(shape, name, place)
        place += shape.pods_per_job


def _running_pods(shape: Shape, name: str, place: int, *, phase: str = "Running") -> Iterator[Document]:
    request = amounts(shape.pod_cpu_milli, shape.pod_mem_mib, shape.pod_gpus)
    for index in range(shape.pods_per_job):
        yield pod(name, index, request, on=node_name((place + index) % shape.nodes), phase=phase)


NOTHING_NEW: Final = Step(tuple, Outcome())


def _capped_queue(shape: Shape) -> Course:
    """ksp-2025: the queue's capability of 1,000 CPU admits whole gangs up to it, the rest waits."""
    gangs = 1_000_000 // (shape.pod_cpu_milli * shape.pods_per_job)
    gangs = min(gangs, shape.jobs)
    outcome = Outcome(binds=gangs * shape.pods_per_job)
    return Course(shape, (arrival(shape, outcome, capability={"cpu": "1000"}),))


def _master_and_workers(shape: Shape) -> Course:
    """volcano-comprehensive: one bigger master in every job."""
    worker = amounts(shape.pod_cpu_milli, shape.pod_mem_mib, 0)

    def jobs() -> Iterator[Document]:
        yield from _cluster(shape)
        for index in range(shape.jobs):
            name = f"job-{index:05}"
            yield group(name, shape.min_available, in_queue=QUEUE)
            yield pod(name, 0, amounts(100, 100, 0), role="master")
            yield from (pod(name, number, worker) for number in range(shape.pods_per_job - 1))

    return Course(shape, (Step(jobs, Outcome(binds=shape.pods)),))


def _racks(shape: Shape) -> Course:
    """volcano-topology: gangs that want to stay below one spine (asked for in the PodGroup)."""
    bound = {"mode": "hard", "highestTierAllowed": 2}

    def arrive() -> Iterator[Document]:
        yield from _cluster(shape)
        yield from manifests.hyper_nodes(shape)
        for index in range(shape.jobs):
            yield from manifests.job(shape, f"job-{index:05}", QUEUE, networkTopology=bound)

    return Course(shape, (Step(arrive, Outcome(binds=shape.pods)),))


def _fill(shape: Shape) -> Course:
    """kai-fill: the cluster is filled, then a tenth as many jobs come and are refused."""
    more = shape.jobs // 10
    late = Step(lambda: _jobs(shape, QUEUE, prefix="late", count=more), Outcome(refused=more))
    return Course(shape, (arrival(shape, Outcome(binds=shape.pods)), late))


def _reclaim(shape: Shape) -> Course:
    """kai-reclaim-large: one-card jobs of another queue fill the cluster; then the gang comes."""

    def cluster() -> Iterator[Document]:
        yield from _cluster(shape)
        yield manifests.queue("owner")
        request = amounts(shape.pod_cpu_milli, shape.pod_mem_mib, 1)
        for index in range(shape.nodes * shape.node_gpus):
            name = f"small-{index:05}"
            yield group(name, 1, in_queue=QUEUE, phase="Running")
            yield pod(name, 0, request, on=node_name(index // shape.node_gpus))

    cards = shape.pods * shape.pod_gpus
    claim = Step(lambda: _jobs(shape, "owner"), Outcome(evictions=cards, promises=shape.pods))
    actions = "enqueue, allocate, preempt, reclaim, backfill"
    return Course(shape, (claim,), before=(Step(cluster, Outcome()),), actions=actions)


def _few_changes(shape: Shape) -> Course:
    """kai-idle-100: 5 of the running jobs end and 5 like them come."""
    count = 5

    def changes() -> Iterator[Document]:
        for index in range(count):
            place = index * shape.pods_per_job
            yield from _running_pods(shape, f"job-{index:05}", place, phase="Succeeded")
        yield from _jobs(shape, QUEUE, prefix="new", count=count)

    measured = Step(changes, Outcome(binds=count * shape.pods_per_job))
    return Course(shape, (measured,), before=(Step(lambda: _running(shape), Outcome()),))


def _full(shape: Shape) -> Course:
    """full-refuse: less than a pod's CPU is left on every node; the second cycle refuses all again."""
    left_milli = shape.pod_cpu_milli * 9 // 10
    filled = (shape.node_cpu_milli - left_milli) // shape.pod_cpu_milli
    rest_milli = shape.node_cpu_milli - left_milli - filled * shape.pod_cpu_milli

    def cluster() -> Iterator[Document]:
        yield from _cluster(shape)
        for index in range(shape.nodes):
            name, where = f"filler-{index:05}", node_name(index)
            yield group(name, 1, in_queue=QUEUE, phase="Running")
            request = amounts(shape.pod_cpu_milli, shape.pod_mem_mib, 0)
            yield from (pod(name, number, request, on=where) for number in range(filled))
            yield pod(name, filled, amounts(rest_milli, shape.pod_mem_mib, 0), on=where)
        yield from _jobs(shape, QUEUE)

    refused = Outcome(refused=shape.pods)
    return Course(shape, (Step(tuple, refused),), before=(Step(cluster, refused),))


def _slices(shape: Shape) -> Course:
    """slices-8000: gangs of slices of several sizes on nodes that register cards."""

    def arrive() -> Iterator[Document]:
        yield from slices.card_nodes(shape)
        yield manifests.queue(QUEUE)
        for index in range(shape.jobs):
            yield from slices.slice_job(shape, index, QUEUE)

    return Course(shape, (Step(arrive, Outcome(binds=shape.pods)),), more=CARDS)


_SPECIAL: Final[dict[str, Callable[[Shape], Course]]] = {
    "ksp-2025": _capped_queue,
    "volcano-comprehensive": _master_and_workers,
    "volcano-topology": _racks,
    "kai-fill": _fill,
    "kai-reclaim-large": _reclaim,
    "kai-idle": idle_course,
    "kai-idle-100": _few_changes,
    "full-refuse": _full,
    "slices-8000": _slices,
}
