"""Times and durations as Kubernetes and Volcano write them, to and from seconds.

How they are spelled is known in ``crds/times``; here are the other forms that loaders of YAML give.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

from volcano_py.crds.messages import shown
from volcano_py.crds.times import parse_duration_s, parse_time_s


def parse_time(value: str | datetime) -> float:
    """Seconds since the epoch of an RFC 3339 time, or of a ``datetime`` as YAML loaders give it.

    A ``datetime`` without a zone is taken as UTC. Raises ``ValueError`` on anything else.
    """
    if isinstance(value, str):
        return parse_time_s(value)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    raise ValueError(f"must be a time such as 2026-01-01T00:00:00Z, not {shown(value)}")


def format_time(epoch: float) -> str:
    """RFC 3339 in UTC, whole seconds (rounded down), as the API server writes times."""
    return datetime.fromtimestamp(math.floor(epoch), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(epoch: float) -> str:
    """RFC 3339 in UTC with microseconds: ``MicroTime``, of Leases and events."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_duration(value: str | float) -> float:
    """Seconds of a duration in Go's notation (``1h5m``, ``300ms``, ``-2s``, ``0``), or of a plain number.

    Raises ``ValueError`` on anything else, a number without unit in a string included.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        if math.isfinite(value):
            return float(value)
    elif isinstance(value, str):
        return parse_duration_s(value)
    raise ValueError(f'must be a duration with its unit, such as "10m" or "1h30m", not {shown(value)}')
