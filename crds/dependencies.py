"""Whether things that wait for each other can ever start: known names, no circle."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

from volcano_py.crds.messages import did_you_mean, shown

__all__ = ["dependency_fault"]


def dependency_fault(after: Mapping[str, Iterable[str]]) -> tuple[str, str] | None:
    """The first fault in *after* (name to the names it waits for) as (name, message), or None."""
    for name, targets in after.items():
        for target in targets:
            if target not in after:
                return name, f"there is no {shown(target)} to wait for{did_you_mean(target, after)}"
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle[0], f"waits for itself: {' <- '.join(shown(name) for name in circle)}"
    return None
