"""Times and durations in API objects: RFC 3339 and Go's duration notation, to seconds.

A time stays the text it was; a ``datetime``, which YAML loaders make of an unquoted one, becomes that text
again. Neighbour: ``base`` makes field types of these.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from volcano_py.crds.messages import shown

__all__ = ["DURATION_PATTERN", "parse_duration_s", "parse_time_s", "time_text"]

_RFC3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_PART: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_MICRO: Final = dict.fromkeys(("us", "µs", "μs"), 1e-6)  # the sign for micro and the Greek letter
_UNIT_S: Final = {"ns": 1e-9, **_MICRO, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}

# What the API server can check of a duration that may not be negative.
DURATION_PATTERN: Final = r"^(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"


def time_text(value: object) -> object:
    """*value*, a ``datetime`` turned into RFC 3339 text (without a zone it is read as UTC)."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat().replace("+00:00", "Z")
    return value


@lru_cache(maxsize=8192)
def parse_time_s(text: str) -> float:
    """Seconds since the epoch; raises ``ValueError`` where *text* is not an RFC 3339 time."""
    if _RFC3339.fullmatch(text) is not None:
        try:
            return datetime.fromisoformat(text.upper()).timestamp()
        except (ValueError, OverflowError):
            pass  # such as a 13th month: said below, in the same words
    raise ValueError(f"must be a time such as 2026-01-01T00:00:00Z, not {shown(text)}")


@lru_cache(maxsize=4096)
def parse_duration_s(text: str) -> float:
    """Seconds of a duration such as 1h30m, 45s, 300ms or 0; raises ``ValueError`` on anything else."""
    sign, digits = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    if digits == "0":
        return 0.0
    parts = _PART.findall(digits) if len(digits) <= 64 else []
    if not parts or "".join(number + unit for number, unit in parts) != digits:
        raise ValueError(f'must be a duration with its unit, such as "10m" or "1h30m", not {shown(text)}')
    return sign * sum(float(number) * _UNIT_S[unit] for number, unit in parts)
