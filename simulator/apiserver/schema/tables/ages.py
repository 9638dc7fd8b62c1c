"""Ages as ``kubectl get`` shows them: one or two units, the fewer the older."""

from __future__ import annotations

from datetime import datetime
from typing import Any

UNKNOWN = "<unknown>"
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY


def seconds_of(moment: str) -> float:
    """An RFC 3339 time in seconds since 1970.

    Raises:
        ValueError: Not such a time.
    """
    return datetime.fromisoformat(moment).timestamp()


def age(moment: Any, now: float) -> str:
    """How long ago *moment* was; ``<unknown>`` for none.

    Args:
        moment: An RFC 3339 time, or None.
        now: Seconds since 1970.
    """
    if not moment:
        return UNKNOWN
    return span(now - seconds_of(moment))


def span(seconds: float) -> str:
    """A length of time.

    Source: apimachinery ``duration.HumanDuration``.
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


def _two(seconds: int, large: int, large_unit: str, small: int, small_unit: str) -> str:
    first, second = seconds // large, seconds % large // small
    return f"{first}{large_unit}{second}{small_unit}" if second else f"{first}{large_unit}"
