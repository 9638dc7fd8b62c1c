"""Whether a scenario is in the format: every key known, every value of the kind that its key takes.

Looked at before anything runs, so that a slip of the pen is told as such and not as a missed expectation.
What Kubernetes objects say is none of this module's business: a bad object is part of the case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from volcano_py.crds.messages import did_you_mean, join_path, shown
from volcano_py.crds.quantity import QuantityError, to_base
from volcano_py.scheduler.model.kube.times import parse_duration, parse_time

Check = Callable[[Any, str], Iterator[str]]
"""Yields what is wrong with a value at a path."""

_SLICE_KEYS: Final = ("node", "card", "uuid", "memory", "cores", "container", "instance")


def faults(document: Mapping[str, Any], shorthand: Iterable[str] = ()) -> list[str]:
    """What is wrong with the scenario *document*, each as ``path: message``.

    Args:
        document: one scenario.
        shorthand: further keys of scenarios and steps, which are checked by whoever reads them.
    """
    short = dict.fromkeys(shorthand, _anything)
    found = list(_keys(document, "", {**_SCENARIO, **short}, needed=("name",)))
    if "steps" in document:
        both = [key for key in ("cycles", "settle", "expect") if key in document]
        found += [f"{key}: stands in each of the steps where a scenario has steps" for key in both]
        steps = document["steps"] if isinstance(document["steps"], list) else []
        for at, step in enumerate(steps):
            found += _keys(step, join_path("steps", at), {**_STEP, **short})
    return found


# -- shapes -------------------------------------------------------------------------------------


def _anything(value: Any, path: str) -> Iterator[str]:
    yield from ()


def _text(value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{path}: must be a text, not {shown(value)}"


def _name(value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, str) or not value.strip():
        yield f"{path}: must be a name, not {shown(value)}"


def _flag(value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, bool):
        yield f"{path}: must be true or false, not {shown(value)}"


def _at_least(least: int) -> Check:
    def check(value: Any, path: str) -> Iterator[str]:
        if not _is_whole(value) or value < least:
            yield f"{path}: must be a whole number of at least {least}, not {shown(value)}"

    return check


def _count(value: Any, path: str) -> Iterator[str]:
    """A number, or a range of them."""
    if isinstance(value, Mapping):
        yield from _keys(value, path, {"min": _at_least(0), "max": _at_least(0)})
    elif not _is_whole(value) or value < 0:
        yield f"{path}: must be a number, or a range such as {{min: 1, max: 2}}, not {shown(value)}"


def _read_by(reader: Callable[[Any], object]) -> Check:
    def check(value: Any, path: str) -> Iterator[str]:
        try:
            reader(value)
        except ValueError as error:
            yield f"{path}: {error}"

    return check


def _amount(value: Any, path: str) -> Iterator[str]:
    try:
        to_base("", value)
    except QuantityError as error:
        yield f"{path}{error}"


def _list_of(check: Check) -> Check:
    def each(value: Any, path: str) -> Iterator[str]:
        if not isinstance(value, list):
            yield f"{path}: must be a list ([] for none), not {shown(value)}"
            return
        for at, entry in enumerate(value):
            yield from check(entry, join_path(path, at))

    return each


def _map_of(check: Check) -> Check:
    def each(value: Any, path: str) -> Iterator[str]:
        if not isinstance(value, Mapping):
            yield f"{path}: must be a mapping ({{}} for none), not {shown(value)}"
            return
        for key, entry in value.items():
            yield from check(entry, join_path(path, str(key)))

    return each


def _text_or_list(value: Any, path: str) -> Iterator[str]:
    yield from (_list_of(_text)(value, path) if isinstance(value, list) else _text(value, path))


def _card(value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, str) and not (_is_whole(value) and value >= 0):
        yield f"{path}: must be the card's position or its UUID, not {shown(value)}"


def _object(value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{path}: must be a Kubernetes object, not {shown(value)}"
        return
    if "firstCopy" in value and "copies" not in value:
        yield f"{path}.firstCopy: means nothing without copies"
    for key in ("copies", "firstCopy"):
        if key in value:
            yield from _at_least(0)(value[key], f"{path}.{key}")


def _deletion(value: Any, path: str) -> Iterator[str]:
    yield from _keys(value, path, {"kind": _name, "name": _name, "namespace": _name}, needed=("kind", "name"))


def _slice(value: Any, path: str) -> Iterator[str]:
    whole = _at_least(0)
    checks = (_name, _card, _name, whole, whole, _text, _text)
    yield from _keys(value, path, dict(zip(_SLICE_KEYS, checks, strict=True)))


def _keys(value: Any, path: str, known: Mapping[str, Check], needed: Iterable[str] = ()) -> Iterator[str]:
    """A mapping whose keys are *known*; keys that begin with ``x-`` are nobody's business."""
    if not isinstance(value, Mapping):
        yield f"{path or 'the scenario'}: must be a mapping, not {shown(value)}"
        return
    for key in needed:
        if key not in value:
            yield f"{path or 'the scenario'}: needs a {key}"
    for key, entry in value.items():
        where = join_path(path, str(key))
        check = known.get(key)
        if check is not None:
            yield from check(entry, where)
        elif path or not str(key).startswith("x-"):
            hint = did_you_mean(str(key), known) or f"; known are {', '.join(known)}"
            yield f"{path or 'the scenario'}: unknown key {key!r}{hint}"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


EXPECT: Final[Mapping[str, Check]] = {
    "binds": _map_of(_text_or_list),
    "bindCount": _count,
    "pipelined": _map_of(_list_of(_text)),
    "evicted": _list_of(_text),
    "evictedOneOf": _list_of(_list_of(_text)),
    "evictCount": _count,
    "bound": _map_of(_count),
    "allocated": _map_of(_map_of(_amount)),
    "podGroups": _map_of(_text),
    "pending": _map_of(_text),
    "slices": _map_of(_list_of(_slice)),
    "records": _map_of(_map_of(_text)),
    "doubts": _map_of(_text),
}
"""What may be expected, and what it looks like."""


def _expect(value: Any, path: str) -> Iterator[str]:
    yield from _keys(value, path, EXPECT)


_RUN: Final[Mapping[str, Check]] = {"cycles": _at_least(0), "settle": _flag, "expect": _expect}
_STEP: Final[Mapping[str, Check]] = {
    "apply": _list_of(_object),
    "delete": _list_of(_deletion),
    "wait": _read_by(parse_duration),
    **_RUN,
}
_SCENARIO: Final[Mapping[str, Check]] = {
    "name": _name,
    "why": _text,
    "config": _anything,  # read as the scheduler reads it, which says what is wrong
    "now": _read_by(parse_time),
    "objects": _list_of(_object),
    "steps": _list_of(_anything),
    **_RUN,
}
