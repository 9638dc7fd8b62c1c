"""One run in this (fresh) process: a request as JSON on standard input, its result on standard output."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from volcano_py.simulator.bench.costs import CostMeter
from volcano_py.simulator.bench.course import course_of
from volcano_py.simulator.bench.measure import WrongOutcomeError, measure
from volcano_py.simulator.bench.shapes import shape_of

LARGEST: Final = 3
WRONG: Final = 3
"""Exit code: the shape came out wrong; standard error says how."""


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Run what *request* asks: shape, config, idle_cycles, profile."""
    meter = CostMeter() if request["profile"] else None
    measurement = measure(
        course_of(shape_of(request["shape"])),
        config=request["config"],
        idle_cycles=request["idle_cycles"],
        watch=meter,
    )
    if meter is not None:
        measurement.costs = meter.largest(request.get("largest", LARGEST))
    return measurement.as_dict()


def main() -> int:
    """Entry of the process."""
    try:
        result = answer(json.load(sys.stdin))
    except WrongOutcomeError as error:
        sys.stderr.write(f"{error}\n")
        return WRONG
    json.dump(result, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
