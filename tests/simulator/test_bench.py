"""Benchmarks are held to what is decided, never to how long it takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from volcano_py.simulator.bench.costs import CostMeter
from volcano_py.simulator.bench.course import ACTIONS, Course, Outcome, arrival, course_of
from volcano_py.simulator.bench.measure import Measurement, WrongOutcomeError, measure
from volcano_py.simulator.bench.report import Report, notes, rows
from volcano_py.simulator.bench.runs import Growth, exponent, medians
from volcano_py.simulator.bench.shapes import (
    GROWTH_NODES,
    GROWTH_PODS,
    Shape,
    Target,
    growth_in_nodes,
    growth_in_pods,
    read_shapes,
    read_targets,
    shape_of,
)

SHAPES = read_shapes()


def small(name: str, **numbers: Any) -> Shape:
    return replace(SHAPES[name], **numbers)


def test_every_target_names_a_shape() -> None:
    assert read_targets().keys() <= SHAPES.keys()
    assert len(SHAPES) == 26


@pytest.mark.parametrize(
    ("shape", "decisions"),
    [
        (small("ksp-s1", nodes=4, jobs=40), 40),
        (small("ksp-s4", nodes=4, pods_per_job=30), 30),
        (small("ksp-s5", nodes=4, jobs=40), 40),
        (small("ksp-s7", nodes=4, jobs=2, pods_per_job=20, min_available=20), 40),
        (small("slices-8000", nodes=4, jobs=9), 90),
        (small("ksp-2025", nodes=40, jobs=340), 999),
        (small("volcano-comprehensive", nodes=4), 55),
        (small("volcano-topology", nodes=60, jobs=2), 100),
        (small("kai-fill", nodes=2, jobs=16), 16),
        (small("kai-idle", nodes=4, jobs=3), 0),
        (small("kai-idle-100", nodes=8, jobs=10), 100),
        (small("knav-gang", nodes=4, pods_per_job=4, min_available=4), 4),
        (small("full-refuse", nodes=4, jobs=5), 0),
    ],
    ids=lambda value: value.name if isinstance(value, Shape) else "",
)
def test_a_small_shape_comes_out_as_its_course_says(shape: Shape, decisions: int) -> None:
    assert measure(course_of(shape)).decisions == decisions


def test_reclaim_takes_just_the_cards_the_gang_asks_for() -> None:
    shape = small("kai-reclaim-large", nodes=10, pods_per_job=2, min_available=2)
    assert measure(course_of(shape)).decisions == 2 * 8 + 2


def test_a_wrong_outcome_is_said_loudly() -> None:
    shape = small("ksp-s6", nodes=2, jobs=1)
    course = Course(shape, (arrival(shape, Outcome(binds=19)),))
    with pytest.raises(WrongOutcomeError, match=r"ksp-s6: expected .*binds=19.*, found .*binds=20"):
        measure(course)


def test_idle_cycles_are_run_after_the_measured_part() -> None:
    measured = measure(course_of(small("kai-idle", nodes=2, jobs=1)), idle_cycles=3)
    assert measured.decisions == 0


def test_a_configuration_of_the_callers_own_is_used() -> None:
    shape = small("ksp-s6", nodes=2, jobs=1)
    course = Course(shape, (arrival(shape, Outcome(binds=0)),))
    assert measure(course, config="actions: backfill\ntiers: []\n").decisions == 0
    assert "allocate" in ACTIONS


def test_growth_varies_one_axis_only() -> None:
    nodes, pods = growth_in_nodes(SHAPES), growth_in_pods(SHAPES)
    assert [shape.nodes for shape in nodes] == list(GROWTH_NODES)
    assert {(shape.jobs, shape.pods_per_job) for shape in nodes} == {(20, 500)}
    assert [shape.pods for shape in pods] == list(GROWTH_PODS)
    assert {(shape.nodes, shape.min_available) for shape in pods} == {(1000, 20)}


def test_the_exponent_of_a_square_is_two() -> None:
    assert exponent([1, 2, 4, 8], [3, 12, 48, 192]) == pytest.approx(2)


def test_medians_are_taken_field_by_field() -> None:
    runs = [Measurement(cpu_s=c, wall_s=w, decisions=7) for c, w in ((1, 9), (5, 2), (3, 4))]
    middle = medians(runs)
    assert (middle.cpu_s, middle.wall_s, middle.decisions) == (3, 4, 7)


def test_costs_name_functions_of_ours_and_count_what_they_call() -> None:
    meter = CostMeter()
    measure(course_of(small("ksp-s6", nodes=2, jobs=1)), watch=meter)
    costs = meter.largest(1000)
    assert sum(share for _, share in costs) == pytest.approx(1, abs=0.01)
    assert all(where.split(":")[0].endswith(".py") for where, _ in costs)
    assert any(where.endswith(" fill") for where, _ in costs)


def test_the_report_sets_a_shape_beside_its_target() -> None:
    report = Report(3, {"a": Target(0.5, 100.0, "")})
    report.shapes["a"] = Measurement(cpu_s=0.25, wall_s=0.3, peak_mib=80, decisions=5)
    report.shapes["b"] = Measurement(cpu_s=0.25)
    report.growth = [Growth("nodes", 0.6, (1, 2), (1.0, 2.0), 1.0)]
    with_target, without = rows(report)
    assert with_target[0] == "a"
    assert with_target[-4:] == ("0.5", "100", "400x", "ok")
    assert without[-4:] == ("", "", "", "")
    assert "over" in notes(report)[0]
    assert report.records()[0] == {"shape": "a", "cpu_s": 0.25, "wall_s": 0.3, "peak_mib": 80, "decisions": 5}


def test_a_shape_goes_through_json_unchanged() -> None:
    shape = SHAPES["ksp-s8"]
    assert shape_of(dict(vars(shape))) == shape
