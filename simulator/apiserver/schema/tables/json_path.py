"""JSON paths as printer columns use them: ``.status.conditions[?(@.type=="Ready")].status``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

# Takes a value, gives the values one step further.
Step = Callable[[Any], Iterator[Any]]

_TOKEN = re.compile(
    r"""
      \.\.(?P<deep>[^.\[\]]+)
    | \.(?P<field>(?:\\.|[^.\[\]])+)
    | \['(?P<quoted>[^']+)'\]
    | \[(?P<index>-?\d+)\]
    | \[(?P<start>-?\d*):(?P<end>-?\d*)\]
    | \[(?P<all>\*)\]
    | \[\?\(@(?P<subject>[^=!<>]*?)\s*(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<value>.+?))?\s*\)\]
    """,
    re.VERBOSE,
)


class PathError(ValueError):
    """A path that cannot be read; the message shows where."""


def find(path: str, document: Any) -> list[Any]:
    """Every value that *path* leads to.

    Raises:
        PathError: The path's syntax is wrong.
    """
    values = [document]
    for step in _steps(path):
        values = [found for value in values for found in step(value)]
    return values


@lru_cache(maxsize=512)
def _steps(path: str) -> tuple[Step, ...]:
    text = path.strip().removeprefix("{").removesuffix("}")
    text = text.removeprefix("$")
    if text in ("", "."):
        return ()
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise PathError(f"unrecognized character in {path!r} at {text[position:]!r}")
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    if match["field"] or match["quoted"]:
        name = match["quoted"] or re.sub(r"\\(.)", r"\1", match["field"])
        return _every if name == "*" else _field(name)
    if match["deep"]:
        return _deep(match["deep"])
    if match["index"]:
        return _index(int(match["index"]))
    if match["all"]:
        return _every
    if match["operator"] or match["subject"]:
        return _filter(match["subject"], match["operator"], match["value"])
    return _slice(match["start"], match["end"])


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, Mapping) and name in value:
            yield value[name]

    return step


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _deep(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        yield from _field(name)(value)
        for inner in _every(value):
            yield from step(inner)

    return step


def _index(position: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= position < len(value):
            yield value[position]

    return step


def _slice(start: str | None, end: str | None) -> Step:
    bounds = slice(int(start) if start else None, int(end) if end else None)

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[bounds]

    return step


def _filter(subject: str, operator: str | None, wanted: str | None) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for item in _every(value):
            found = find(subject, item)
            if found and (operator is None or _holds(found[0], operator, _literal(wanted or ""))):
                yield item

    return step


def _literal(text: str) -> Any:
    if text[:1] in "'\"":
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    return float(text)


def _holds(found: Any, operator: str, wanted: Any) -> bool:
    if operator in ("==", "!="):
        return bool(found == wanted) == (operator == "==")
    if isinstance(found, str) != isinstance(wanted, str):
        return False
    compared = {"<": found < wanted, ">": found > wanted, "<=": found <= wanted, ">=": found >= wanted}
    return bool(compared[operator])
