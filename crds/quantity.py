"""Kubernetes quantities as exact integers: "500m", "1.5Gi", "2e3" in, int64 base units out.

Every amount inside the engine is a whole number of base units, so nothing drifts and sums compare exactly.
Which unit a resource has depends on its name only (:func:`units_per_one`). Whether a negative amount makes
sense is for the caller to say; this module reads it.

Source: the quantity grammar of the Kubernetes API (apimachinery ``resource.Quantity``), including its rule
that what is finer than the unit is rounded away from zero.
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

from volcano_py.crds.messages import shown

__all__ = [
    "INT32_MAX",
    "INT64_MAX",
    "QuantityError",
    "format_base",
    "parse_quantity",
    "to_base",
    "to_units",
    "units_per_one",
    "whole_number",
]

INT64_MAX: Final = 2**63 - 1
INT32_MAX: Final = 2**31 - 1
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,10}")

_BYTE_RESOURCES: Final = frozenset({"memory", "ephemeral-storage"})
_DECIMAL: Final = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9),
    "T": Fraction(10**12), "P": Fraction(10**15), "E": Fraction(10**18),
}  # fmt: skip
_BINARY: Final = {f"{prefix}i": Fraction(1024**power) for power, prefix in enumerate("KMGTPE", start=1)}
_FACTORS: Final = _DECIMAL | _BINARY
_SHAPE: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)
# Longer texts and larger exponents are far outside int64; reading them would only cost time.
_LONGEST: Final = 128
_LARGEST_EXPONENT: Final = 64
_SUFFIXES: Final = "n u m k M G T P E Ki Mi Gi Ti Pi Ei"


class QuantityError(ValueError):
    """An amount that is no quantity, or that no column can hold; the message is for the user."""


def parse_quantity(text: str | int | float) -> Fraction:
    """The exact value of a quantity, as Kubernetes reads it.

    Args:
        text: what a manifest holds; a YAML number means the same as its digits in quotes.

    Raises:
        QuantityError: not a quantity; the message shows the text.
    """
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise QuantityError(f'{shown(text)} is not a quantity: a number or a text like "500m" is needed')
    written = text if isinstance(text, str) else repr(text)
    match = _SHAPE.fullmatch(written) if len(written) <= _LONGEST else None
    if match is None:
        raise QuantityError(
            f"{shown(text)} is not a quantity: a number is needed, optionally followed by one of {_SUFFIXES}"
            ' or an exponent, without spaces, for example "500m", "2" or "1.5Gi"'
        )
    number = Fraction(match["number"].rstrip("."))
    if match["exponent"] is None:
        return number * _FACTORS[match["suffix"] or ""]
    return number * _power_of_ten(int(match["exponent"]), written)


def to_base(name: str, value: str | int | float) -> int:
    """The amount *value* of resource *name* in base units, as an int64.

    cpu is counted in milli-CPU; memory, ephemeral-storage and hugepages-* in bytes; every other resource
    (``pods`` and ``nvidia.com/gpu`` too) in thousandths. Finer amounts are rounded away from zero.

    Raises:
        QuantityError: not a quantity, or more than an int64 column holds; the message names the resource.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise QuantityError(f"{_cut(name)}: {shown(value)} is not a quantity")
    try:
        return to_units(value, units_per_one(name))
    except QuantityError as error:
        raise QuantityError(f"{_cut(name)}: {error}") from None


def format_base(name: str, value: int) -> str:
    """*value* base units of resource *name* in the canonical spelling of Kubernetes.

    Bytes are written with the largest binary suffix that leaves no fraction (1Gi), below 1024 and for all
    other resources with the largest decimal one (500m, 2, 1k). ``to_base(name, format_base(name, v)) == v``.
    """
    if units_per_one(name) != 1:
        return _with_suffix(value, 1000, ("m", "", "k", "M", "G", "T", "P", "E"))
    if -1024 < value < 1024:
        return _with_suffix(value, 1000, ("", "k"))
    return _with_suffix(value, 1024, ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))


def units_per_one(name: str) -> int:
    """How many base units one whole of the resource has: 1 where it is counted in bytes, else 1000."""
    return 1 if name in _BYTE_RESOURCES or name.startswith("hugepages-") else 1000


@lru_cache(maxsize=16384, typed=True)
def to_units(value: str | int | float, units: int) -> int:
    """*value* in units of which one whole has *units*, rounded away from zero; as :func:`to_base`."""
    exact = parse_quantity(value) * units
    whole, rest = divmod(abs(exact.numerator), exact.denominator)
    if rest:
        whole += 1
    if whole > INT64_MAX:
        raise QuantityError(f"{shown(value)} is more than can be counted (at most {INT64_MAX // units})")
    return -whole if exact < 0 else whole


def _power_of_ten(exponent: int, written: str) -> Fraction:
    if abs(exponent) > _LARGEST_EXPONENT:
        raise QuantityError(f"{shown(written)} is not a quantity: its exponent is out of range")
    return Fraction(10) ** exponent


def _with_suffix(value: int, step: int, suffixes: tuple[str, ...]) -> str:
    if value == 0:
        return "0"
    place = 0
    while value % step == 0 and place + 1 < len(suffixes):
        value //= step
        place += 1
    return f"{value}{suffixes[place]}"


def _cut(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:57]}..."


def whole_number(text: str) -> int | None:
    """The number of at most 32 bits that *text* (of an annotation) is; None where it is none."""
    if _WHOLE.fullmatch(text) is None or abs(int(text)) > INT32_MAX:
        return None
    return int(text)
