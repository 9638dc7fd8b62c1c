"""``make bench-shim`` in small: its books must be exact, whatever its times are."""

from pathlib import Path

from benchmarks.shim.__main__ import crowd


def test_the_crowds_books_are_exact(library: Path) -> None:
    many = crowd(8, 1)
    assert many.is_exact
    assert many.pairs > 0
    assert many.refused > 0
