"""Functions that Kubernetes adds to CEL and cel-python lacks: of lists, strings and quantities.

Source: the library list in the Kubernetes documentation, "Common Expression Language in Kubernetes".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from celpy import celtypes

from volcano_py.crds.quantity import QuantityError, parse_quantity

Text = celtypes.StringType
Whole = celtypes.IntType
Truth = celtypes.BoolType


def _is_sorted(items: Any) -> Truth:
    return Truth(all(one <= other for one, other in pairwise(items)))


def _index_of(container: Any, sought: Any, start: int = 0) -> Whole:
    if isinstance(container, str):
        return Whole(str(container).find(str(sought), int(start)))
    return Whole(next((at for at, item in enumerate(container) if item == sought), -1))


def _last_index_of(container: Any, sought: Any) -> Whole:
    if isinstance(container, str):
        return Whole(str(container).rfind(str(sought)))
    return Whole(max((at for at, item in enumerate(container) if item == sought), default=-1))


def _split(text: str, by: str, limit: int = -1) -> celtypes.ListType:
    if limit == 0:
        return celtypes.ListType([])
    pieces = str(text).split(str(by), int(limit) - 1 if limit > 0 else -1) if by else list(str(text))
    return celtypes.ListType([Text(piece) for piece in pieces])


def _replace(text: str, old: str, new: str, limit: int = -1) -> Text:
    return Text(str(text).replace(str(old), str(new), int(limit)))


def _substring(text: str, start: int, end: int | None = None) -> Text:
    return Text(str(text)[int(start) : None if end is None else int(end)])


def _find(text: str, pattern: str) -> Text:
    found = re.search(str(pattern), str(text))
    return Text(found.group(0) if found else "")


def _find_all(text: str, pattern: str, limit: int = -1) -> celtypes.ListType:
    found = [match.group(0) for match in re.finditer(str(pattern), str(text))]
    return celtypes.ListType([Text(piece) for piece in (found if limit < 0 else found[: int(limit)])])


def _is_quantity(text: Any) -> Truth:
    try:
        parse_quantity(str(text))
    except QuantityError:
        return Truth(False)
    return Truth(True)


def _quantity(text: Any) -> celtypes.DoubleType:
    # Compared and added up, never written: a double holds what rules ask about.
    return celtypes.DoubleType(float(parse_quantity(str(text))))


def _compare_to(one: Any, other: Any) -> Whole:
    return Whole((one > other) - (one < other))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "charAt": lambda text, at: Text(str(text)[int(at)]),
    "compareTo": _compare_to,
    "find": _find,
    "findAll": _find_all,
    "indexOf": _index_of,
    "isGreaterThan": lambda one, other: Truth(one > other),
    "isLessThan": lambda one, other: Truth(one < other),
    "isQuantity": _is_quantity,
    "isSorted": _is_sorted,
    "join": lambda items, by="": Text(str(by).join(str(item) for item in items)),
    "lastIndexOf": _last_index_of,
    "lowerAscii": lambda text: Text(str(text).lower()),
    "max": max,
    "min": min,
    "quantity": _quantity,
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "sum": lambda items: sum(items[1:], items[0]) if items else Whole(0),
    "trim": lambda text: Text(str(text).strip()),
    "upperAscii": lambda text: Text(str(text).upper()),
}
