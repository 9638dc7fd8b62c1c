"""Where the time of a measured part went, by function of ours.

A function's cost is its own time and that of everything foreign it calls (NumPy, the standard library),
so that an entry names the line to look at; what it calls of ours stands on its own.
"""

from __future__ import annotations

import cProfile
import pstats
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).resolve().parents[2]
_DEPTH: Final = 12
"""Calls among foreign functions that are followed; deeper ones are cut off (recursion)."""

Function = tuple[str, int, str]


class CostMeter:
    """Profiles while it is switched on; fits ``measure``'s *watch*."""

    def __init__(self) -> None:
        self._profile = cProfile.Profile()

    def __call__(self, begins: bool) -> None:
        """Start or stop."""
        (self._profile.enable if begins else self._profile.disable)()

    def largest(self, count: int) -> list[tuple[str, float]]:
        """("file:line function", share of all time) of the *count* dearest functions of ours."""
        stats: dict[Function, Any] = pstats.Stats(self._profile).stats  # type: ignore[attr-defined]
        costs: defaultdict[Function, float] = defaultdict(float)
        for function, (_, _, own, _, _) in stats.items():
            _charge(stats, costs, function, own, _DEPTH)
        # What nobody of the profile calls is not ours: the clocks that are read around what is measured.
        total = sum(own for it, (_, _, own, _, callers) in stats.items() if callers or _is_ours(it)) or 1.0
        dearest = sorted(costs.items(), key=lambda item: -item[1])[:count]
        return [(_name(function), cost / total) for function, cost in dearest]


def _charge(
    stats: dict[Function, Any],
    costs: defaultdict[Function, float],
    function: Function,
    time: float,
    depth: int,
) -> None:
    """Put *time* on *function* if it is ours, else on its callers by how long it ran for each."""
    if _is_ours(function):
        costs[function] += time
        return
    callers = stats[function][4] if function in stats else {}
    total = sum(entry[3] for entry in callers.values())
    if total <= 0 or depth == 0:
        return
    for caller, entry in callers.items():
        _charge(stats, costs, caller, time * entry[3] / total, depth - 1)


def _is_ours(function: Function) -> bool:
    return _is_own_file(function[0])


@cache
def _is_own_file(name: str) -> bool:
    path = Path(name)
    return path.is_relative_to(_ROOT) and ".venv" not in path.parts


def _name(function: Function) -> str:
    path, line, name = function
    return f"{Path(path).relative_to(_ROOT)}:{line} {name}"
