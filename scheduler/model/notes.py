"""What notes on pods and PodGroups (labels, annotations) say of interrupting, and which can't be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from volcano_py.crds.annotations import COOLDOWN, HOLD, PREEMPTABLE
from volcano_py.scheduler.model.kube.errors import Problem, child
from volcano_py.scheduler.model.kube.times import parse_duration

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_NO_FLAG: Final = "is neither true nor false; counts as false"
_NO_DURATION: Final = "is no duration such as 10m; counts as not said"


def said(labels: Mapping[str, str], annotations: Mapping[str, str], key: str) -> str | None:
    """The value of *key*, annotation before label."""
    return annotations.get(key, labels.get(key))


def as_flag(text: str | None) -> bool | None:
    """A flag as Volcano reads it: unparsable is false; None where nothing is said."""
    return None if text is None else text in _TRUE


def as_seconds(text: str | None) -> float | None:
    """A duration in seconds; None where nothing (or nothing readable) is said."""
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError:
        return None


def doubts_about(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Iterator[Problem]:
    """Notes that can't be read as they are meant to be."""
    for key in (PREEMPTABLE, HOLD):
        text = said(labels, annotations, key)
        if text is not None and text not in _TRUE and text not in _FALSE:
            yield _problem(annotations, key, _NO_FLAG)
    text = said(labels, annotations, COOLDOWN)
    if text is not None and as_seconds(text) is None:
        yield _problem(annotations, COOLDOWN, _NO_DURATION)


def _problem(annotations: Mapping[str, str], key: str, message: str) -> Problem:
    where = "annotations" if key in annotations else "labels"
    return Problem(child(f"metadata.{where}", key), message)
