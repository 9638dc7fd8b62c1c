"""Causes of a refusal, in the words of the real server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from volcano_py.simulator.apiserver.schema.kinds import Cause


def shown(value: Any) -> str:
    """A value as errors quote it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def required(field: str, detail: str = "") -> Cause:
    """The field is missing or empty."""
    return Cause("FieldValueRequired", f"Required value: {detail}" if detail else "Required value", field)


def invalid(field: str, value: Any, detail: str) -> Cause:
    """The field's value breaks a rule."""
    return Cause("FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}", field)


def unsupported(field: str, value: Any, known: Iterable[str]) -> Cause:
    """The field's value is none of those that are known."""
    listed = ", ".join(f'"{one}"' for one in known)
    return Cause(
        "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {listed}", field
    )


def forbidden(field: str, detail: str) -> Cause:
    """The field may not be set, or not be changed, here."""
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def duplicate(field: str, value: Any) -> Cause:
    """The value stands in the list already."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", field)


def not_found(field: str, value: Any) -> Cause:
    """The value names something that is not there."""
    return Cause("FieldValueNotFound", f"Not found: {shown(value)}", field)


def immutable(field: str, new: Any, old: Any) -> Iterator[Cause]:
    """The field must stay as it was."""
    if new != old:
        yield invalid(field, new, "field is immutable")


def one_of(field: str, value: Any, known: Iterable[str]) -> Iterator[Cause]:
    """The field, where it is set, must be one of *known*."""
    listed = tuple(known)
    if value is not None and value not in listed:
        yield unsupported(field, value, listed)


def at_least(field: str, value: int | None, least: int = 0) -> Iterator[Cause]:
    """The number, where it is set, must be *least* or more."""
    if value is not None and value < least:
        yield invalid(field, value, f"must be greater than or equal to {least}")


def each(field: str, value: Any, details: Iterable[str]) -> Iterator[Cause]:
    """One cause for each rule that *value* breaks."""
    for detail in details:
        yield invalid(field, value, detail)
