from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.scheduler.model.kube.times import format_time, parse_duration, parse_time

NEW_YEAR = 1767225600.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-01-01T00:00:00Z", NEW_YEAR),
        ("2026-01-01t00:00:00z", NEW_YEAR),
        ("2026-01-01T01:00:00+01:00", NEW_YEAR),
        ("2025-12-31T19:30:00-04:30", NEW_YEAR),
        ("2026-01-01T00:00:00.250Z", NEW_YEAR + 0.25),
        ("2026-01-01T00:00:00.250000999Z", NEW_YEAR + 0.25),
        (datetime(2026, 1, 1, tzinfo=UTC), NEW_YEAR),
        (datetime(2026, 1, 1), NEW_YEAR),
    ],
)
def test_times(text: Any, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "2026-01-01", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00Zx", 5, None],
)
def test_no_times(text: Any) -> None:
    with pytest.raises(ValueError, match=r"time|month"):
        parse_time(text)


@given(st.integers(0, 4_000_000_000))
def test_written_times_read_back(seconds: int) -> None:
    assert parse_time(format_time(seconds)) == seconds
    assert format_time(seconds + 0.9) == format_time(seconds)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h5m", 3900.0),
        ("30s", 30.0),
        ("1.5h", 5400.0),
        (".5s", 0.5),
        ("300ms", 0.3),
        ("2µs", 2e-6),
        ("2μs", 2e-6),
        ("1h0m0.5s", 3600.5),
        ("-2s", -2.0),
        ("+2s", 2.0),
        ("0", 0.0),
        (90, 90.0),
        (1.5, 1.5),
    ],
)
def test_durations(text: Any, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "5", "h", "1d", "1h 5m", "1h5", "--1s", "s", ".s", True, None, float("nan"), [1]]
)
def test_no_durations(text: Any) -> None:
    with pytest.raises(ValueError, match="must be a duration"):
        parse_duration(text)
