"""Quantities are exact, rounded as Kubernetes rounds, and refuse what they cannot hold."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.crds.quantity import INT64_MAX, QuantityError, format_base, parse_quantity, to_base

NAMES = ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "pods", "nvidia.com/gpu"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", Fraction(0)),
        ("1", Fraction(1)),
        ("+1", Fraction(1)),
        ("-2", Fraction(-2)),
        ("500m", Fraction(1, 2)),
        ("1n", Fraction(1, 10**9)),
        ("3u", Fraction(3, 10**6)),
        ("1k", Fraction(1000)),
        ("1.5G", Fraction(1_500_000_000)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("1E", Fraction(10**18)),
        ("1E3", Fraction(1000)),
        ("1e-3", Fraction(1, 1000)),
        ("12e+2", Fraction(1200)),
        ("1Ki", Fraction(1024)),
        ("1.5Gi", Fraction(3 * 2**29)),
        ("2Ei", Fraction(2**61)),
        ("7T", Fraction(7 * 10**12)),
        ("7P", Fraction(7 * 10**15)),
        (3, Fraction(3)),
        (0.1, Fraction(1, 10)),
        (1e22, Fraction(10**22)),
    ],
)
def test_value(text: str | int | float, value: Fraction) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", " 1", "1 ", "1\n", "abc", "1K", "1GB", "1Gib", "1 Gi", "--1", "1e", "1e1.5", "1.2.3", ".", "m",
        "0x10", "1_000", "١", "1e999999999", "9" * 10_000, float("nan"), float("inf"),
    ],
)  # fmt: skip
def test_not_a_quantity(text: str | float) -> None:
    with pytest.raises(QuantityError, match="is not a quantity") as caught:
        parse_quantity(text)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("value", [True, None, [1], {"a": 1}])
def test_wrong_type_is_a_quantity_error(value: object) -> None:
    with pytest.raises(QuantityError, match="is not a quantity"):
        parse_quantity(value)  # type: ignore[arg-type]
    with pytest.raises(QuantityError, match=r"cpu.*is not a quantity"):
        to_base("cpu", value)  # type: ignore[arg-type]


def test_true_is_refused_though_one_is_cached() -> None:
    assert to_base("cpu", 1) == 1000
    with pytest.raises(QuantityError):
        to_base("cpu", True)


@pytest.mark.parametrize(
    ("name", "text", "units"),
    [
        ("cpu", "1", 1000),
        ("cpu", "1u", 1),
        ("cpu", "1500.1m", 1501),
        ("cpu", "-1500.1m", -1501),
        ("memory", "1Gi", 2**30),
        ("memory", "100m", 1),
        ("ephemeral-storage", "1k", 1000),
        ("hugepages-1Gi", "2Gi", 2**31),
        ("pods", "110", 110_000),
        ("nvidia.com/gpu", 8, 8000),
        ("attachable-volumes-csi-disk", "39", 39_000),
        ("memory", str(INT64_MAX), INT64_MAX),
        ("memory", "-9223372036854775807", -INT64_MAX),
    ],
)
def test_base_units(name: str, text: str | int, units: int) -> None:
    assert to_base(name, text) == units


@pytest.mark.parametrize(
    ("name", "text"),
    [("memory", "8Ei"), ("cpu", "9223372036854776"), ("nvidia.com/gpu", "1e16"), ("memory", "-8Ei")],
)
def test_beyond_int64_names_the_resource(name: str, text: str) -> None:
    with pytest.raises(QuantityError, match=f"{name}.*more than can be counted"):
        to_base(name, text)


def test_largest_extended_amount_fits() -> None:
    assert to_base("nvidia.com/gpu", "9223372036854775807m") == INT64_MAX


@pytest.mark.parametrize(
    ("name", "units", "text"),
    [
        ("cpu", 500, "500m"),
        ("cpu", 2000, "2"),
        ("cpu", 1500, "1500m"),
        ("cpu", 10**6, "1k"),
        ("memory", 2**30, "1Gi"),
        ("memory", 256 * 2**20, "256Mi"),
        ("memory", 1025, "1025"),
        ("memory", 1000, "1k"),
        ("memory", 0, "0"),
        ("memory", -(2**31), "-2Gi"),
        ("nvidia.com/gpumem", 4_096_000, "4096"),
        ("pods", 110_000, "110"),
    ],
)
def test_canonical_spelling(name: str, units: int, text: str) -> None:
    assert format_base(name, units) == text


@given(st.sampled_from(NAMES), st.integers(-INT64_MAX, INT64_MAX))
def test_what_is_written_is_read_back(name: str, units: int) -> None:
    assert to_base(name, format_base(name, units)) == units


@given(st.integers(-(10**9), 10**9), st.sampled_from(["n", "u", "m", "", "k", "Ki", "Mi", "M"]))
def test_rounding_is_away_from_zero_and_below_one_unit(number: int, suffix: str) -> None:
    exact = parse_quantity(f"{number}{suffix}") * 1000
    units = to_base("cpu", f"{number}{suffix}")
    assert abs(exact) <= abs(units) < abs(exact) + 1
    assert units == 0 or (units < 0) == (number < 0)


@given(st.text(alphabet="0123456789.eEKMGTPinumk+-", max_size=8))
def test_no_text_does_anything_but_parse_or_say_no(text: str) -> None:
    try:
        value = parse_quantity(text)
    except QuantityError:
        return
    assert isinstance(value, Fraction)
