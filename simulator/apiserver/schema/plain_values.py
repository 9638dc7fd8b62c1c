"""Values of built-in kinds that have one spelling on the server: quantities, times, bytes.

Clients may write ``1000m`` or ``2026-01-02T03:04:05.6+02:00``; the server answers ``1`` and
``2026-01-02T01:04:05Z``. Whoever compares what was sent with what came back meets the difference.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache

from volcano_py.crds.quantity import QuantityError, parse_quantity

BAD_QUANTITY = r"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_CANONICAL = re.compile(r"[1-9][0-9]{0,2}(?:[numkMGTPE]|[KMGTPE]i)?|0")
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL_SUFFIXES = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
# Certainly a time, written as the server does; days past the 28th are looked at more closely.
_SURE = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d"
_SECONDS = re.compile(rf"{_SURE}Z")
_MICROSECONDS = re.compile(rf"{_SURE}\.\d{{6}}Z")
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)")


@lru_cache(maxsize=4096)
def canonical_quantity(text: str | int | float) -> str:
    """The one spelling of a quantity: no fraction, the largest suffix that needs none.

    Raises:
        ValueError: Not a quantity; the message is the server's.

    Source: apimachinery ``resource.Quantity``, ``CanonicalizeBytes``.
    """
    if isinstance(text, str) and _CANONICAL.fullmatch(text):
        return text
    try:
        value = parse_quantity(text)
    except QuantityError as fault:
        raise ValueError(BAD_QUANTITY) from fault
    written = str(text)
    if written.endswith("i"):
        return _binary(value)
    return _exponent(value) if re.search(r"[eE][+-]?[0-9]", written) else _decimal(value)


def _binary(value: Fraction) -> str:
    if value.denominator != 1 or abs(value) < 1024:
        return _decimal(value)
    number, step = value.numerator, 0
    while number % 1024 == 0 and step < len(_BINARY_SUFFIXES) - 1:
        number, step = number // 1024, step + 1
    return f"{number}{_BINARY_SUFFIXES[step]}"


def _mantissa(value: Fraction) -> tuple[int, int]:
    """Whole number and power of ten, a multiple of three between -9 and 18; finer parts are rounded up."""
    if value == 0:
        return 0, 0
    scaled = value * 10**9
    number = (
        -(-scaled.numerator // scaled.denominator) if value > 0 else scaled.numerator // scaled.denominator
    )
    power = -9
    while number % 1000 == 0 and power < 18:
        number, power = number // 1000, power + 3
    return number, power


def _decimal(value: Fraction) -> str:
    number, power = _mantissa(value)
    return f"{number}{_DECIMAL_SUFFIXES[power]}"


def _exponent(value: Fraction) -> str:
    number, power = _mantissa(value)
    return f"{number}e{power}" if power else str(number)


def canonical_time(text: str, *, micro: bool) -> str:
    """An RFC 3339 time in UTC, to the second or the microsecond.

    Raises:
        ValueError: Not such a time; the message is the server's.
    """
    if (_MICROSECONDS if micro else _SECONDS).fullmatch(text):
        return text
    layout = "2006-01-02T15:04:05.000000Z07:00" if micro else "2006-01-02T15:04:05Z07:00"
    if not _RFC3339.fullmatch(text):
        raise ValueError(f'parsing time "{text}" as "{layout}": cannot parse "{text}" as "2006"')
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
    except ValueError as fault:
        raise ValueError(f'parsing time "{text}": {_out_of_range(text)} out of range') from fault
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


def _out_of_range(text: str) -> str:
    limits = {"month": (5, 12), "day": (8, 31), "hour": (11, 23), "minute": (14, 59), "second": (17, 59)}
    return next((name for name, (at, limit) in limits.items() if int(text[at : at + 2]) > limit), "day")


def check_base64(text: str) -> None:
    """Refuse what is not padded standard base64.

    Raises:
        ValueError: The message is the server's.
    """
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error as fault:
        good = re.match(r"[A-Za-z0-9+/]*", text)
        raise ValueError(f"illegal base64 data at input byte {good.end() if good else 0}") from fault
