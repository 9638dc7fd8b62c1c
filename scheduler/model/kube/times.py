"""Times and durations as Kubernetes and Volcano write them, to and from seconds."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from functools import lru_cache

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_DURATION_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_time(value: str | datetime) -> float:
    """Seconds since the epoch of an RFC 3339 time, or of a ``datetime`` as YAML loaders give it.

    A ``datetime`` without a zone is taken as UTC. Raises ``ValueError`` on anything else.
    """
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    raise ValueError(f"expected an RFC 3339 time, got {value!r}")


@lru_cache(maxsize=65536)
def _parse_text(text: str) -> float:
    if not _RFC3339.fullmatch(text):
        raise ValueError(f"not an RFC 3339 time: {text[:64]!r}")
    return datetime.fromisoformat(text.upper()).timestamp()


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
        if not math.isfinite(value):
            raise ValueError(f"not a duration: {value!r}")
        return float(value)
    if not isinstance(value, str):
        raise ValueError(f"not a duration: {value!r}")
    sign, digits = (-1.0, value[1:]) if value.startswith("-") else (1.0, value.removeprefix("+"))
    if digits == "0":
        return 0.0
    parts = _DURATION_PART.findall(digits)
    if not parts or "".join(number + unit for number, unit in parts) != digits:
        raise ValueError(f"not a duration: {value[:64]!r} (write it like 1h5m or 30s)")
    return sign * sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)
