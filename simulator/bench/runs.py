"""Fresh processes for runs, medians over them, and how costs grow."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from statistics import median
from typing import Final

import numpy as np

from volcano_py.simulator.bench.measure import Measurement, WrongOutcomeError
from volcano_py.simulator.bench.shapes import Shape, growth_in_nodes, growth_in_pods

IDLE_CYCLES: Final = 1_000
IDLE_SHAPE: Final = "kai-idle"


@dataclass(frozen=True)
class Plan:
    """How to run.

    Attributes:
        runs: of each shape; the median counts.
        profile: one run more, under the profiler, for the largest costs.
        config: another scheduler configuration than the benchmarks' own (YAML; empty: theirs).
    """

    runs: int = 3
    profile: bool = False
    config: str = ""


@dataclass(frozen=True)
class Growth:
    """Cost along one axis.

    Attributes:
        exponent: e of the best fit cost ~ size^e (least squares of the logarithms).
        limit: what it may be.
    """

    axis: str
    limit: float
    sizes: tuple[int, ...]
    cpu_s: tuple[float, ...]
    exponent: float


def run_shape(shape: Shape, plan: Plan, tick: Callable[[], None]) -> Measurement:
    """Medians of *plan*'s runs of *shape*; *tick* is called after every run.

    Raises:
        WrongOutcomeError: a run's decisions were wrong, or runs differed in number.
    """
    runs = []
    for _ in range(plan.runs):
        runs.append(_in_child(shape, plan))
        tick()
    if len({run.decisions for run in runs}) > 1:
        raise WrongOutcomeError(f"{shape.name}: runs decided differently")
    middle = medians(runs)
    if plan.profile:
        middle.costs = _in_child(shape, plan, profile=True).costs
        tick()
    return middle


def runs_of(plan: Plan) -> int:
    """How many times ``run_shape`` ticks."""
    return plan.runs + plan.profile


def medians(runs: Sequence[Measurement]) -> Measurement:
    """Field by field; what is no number is taken from the first."""
    numbers = [f.name for f in fields(Measurement) if f.name not in ("costs", "decisions")]
    return replace(runs[0], **{name: median(getattr(run, name) for run in runs) for name in numbers})


def run_growth(shapes: dict[str, Shape], plan: Plan, tick: Callable[[], None]) -> list[Growth]:
    """Growth in nodes and in pods."""
    return [
        _growth(
            "nodes", 0.6, [s.nodes for s in growth_in_nodes(shapes)], growth_in_nodes(shapes), plan, tick
        ),
        _growth("pods", 1.05, [s.pods for s in growth_in_pods(shapes)], growth_in_pods(shapes), plan, tick),
    ]


def run_idle(shapes: dict[str, Shape], plan: Plan, tick: Callable[[], None]) -> float:
    """MiB by which a large idle cluster's scheduler grows over ``IDLE_CYCLES`` cycles."""
    grown = _in_child(shapes[IDLE_SHAPE], plan, idle_cycles=IDLE_CYCLES).growth_mib
    tick()
    return grown


def exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """Slope of log cost over log size."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def _growth(
    axis: str, limit: float, sizes: list[int], shapes: list[Shape], plan: Plan, tick: Callable[[], None]
) -> Growth:
    costs = [run_shape(shape, replace(plan, profile=False), tick).cpu_s for shape in shapes]
    return Growth(axis, limit, tuple(sizes), tuple(costs), exponent(sizes, costs))


def _in_child(shape: Shape, plan: Plan, *, profile: bool = False, idle_cycles: int = 0) -> Measurement:
    request = {
        "shape": asdict(shape),
        "config": plan.config,
        "profile": profile,
        "idle_cycles": idle_cycles,
    }
    done = subprocess.run(
        [sys.executable, "-m", "volcano_py.simulator.bench.child"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise WrongOutcomeError(done.stderr.strip() or f"{shape.name}: exit code {done.returncode}")
    return Measurement(**json.loads(done.stdout))
