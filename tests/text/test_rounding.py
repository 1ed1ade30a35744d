"""Values and errors are rounded together as the Particle Data Group does."""

from decimal import Decimal
from math import inf, isfinite, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morefit.text.rounding import round_pdg


@pytest.mark.parametrize(
    ("value", "error", "expected"),
    [
        (0.827, 0.119, ("0.83", "0.12")),  # the examples of the Review of Particle Physics, introduction 5.3
        (0.827, 0.367, ("0.8", "0.4")),
        (0.827, 0.1, ("0.83", "0.10")),
        (0.827, 0.354, ("0.83", "0.35")),
        (0.827, 0.3549, ("0.83", "0.35")),
        (0.827, 0.355, ("0.8", "0.4")),
        (0.827, 0.949, ("0.8", "0.9")),
        (0.827, 0.950, ("0.8", "1.0")),
        (0.8273, 0.0999, ("0.83", "0.10")),
        (12.3456, 9.6, ("12", "10")),
    ],
)
def test_the_digits_of_the_error_decide(value, error, expected):
    assert round_pdg(value, error) == expected


@pytest.mark.parametrize(
    ("value", "error", "expected"),
    [
        (1234.5, 367.0, ("1200", "400")),
        (123456.7, 345.0, ("123460", "350")),
        (12345678.9, 3514.2, ("12345700", "3500")),
        (1.234e10, 4.2e8, ("1.23e10", "0.04e10")),
        (1.2e-5, 3.4e-6, ("1.20e-5", "0.34e-5")),
        (0.0, 1e-8, ("0.0e-8", "1.0e-8")),
        (5.28, 1e-9, ("5.2800000000", "0.0000000010")),
        (1e308, 1e307, ("1.00e308", "0.10e308")),
        (5e-324, 5e-324, ("5e-324", "5e-324")),
    ],
)
def test_large_and_small_numbers_share_an_exponent(value, error, expected):
    assert round_pdg(value, error) == expected


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((5.279655, 0.0), ("5.279655", "0")),
        ((1 / 3, nan), ("0.33333333", "nan")),
        ((1.5, inf), ("1.5", "inf")),
        ((nan, 0.119), ("nan", "0.12")),
        ((-inf, 0.119), ("-inf", "0.12")),
        ((2.0,), ("2",)),
        ((-3.2, 0.355, 0.0), ("-3.2", "0.4", "0.0")),
    ],
)
def test_errors_that_are_zero_or_not_finite_do_not_decide(numbers, expected):
    assert round_pdg(*numbers) == expected


def test_the_smallest_error_decides_and_signs_stay():
    assert round_pdg(0.51234, 0.42, -0.119, 0.13) == ("0.51", "0.42", "-0.12", "0.13")


def test_what_rounds_to_zero_has_no_sign():
    assert round_pdg(-0.0004, 0.1) == ("0.00", "0.10")


def test_halves_are_rounded_away_from_zero_as_by_hand():
    assert round_pdg(0.825, 0.12)[0] == "0.83"
    assert round_pdg(-0.825, 0.12)[0] == "-0.83"


@pytest.mark.parametrize(
    ("value", "error", "expected"), [(5.0, 1e-30, ("5.0", "1e-30")), (1e300, 1.0, ("1e+300", "1"))]
)
def test_an_error_beyond_double_precision_is_written_by_itself(value, error, expected):
    assert round_pdg(value, error) == expected


@given(st.floats(-1e12, 1e12), st.floats(1e-4, 1e12))
def test_rounding_moves_a_number_by_at_most_half_of_its_last_digit(value, error):
    shown_value, shown_error = (Decimal(text) for text in round_pdg(value, error))
    unit = Decimal(1).scaleb(Decimal(repr(error)).adjusted())
    assert abs(shown_value - Decimal(repr(value))) <= unit / 2
    assert Decimal("0.88") * Decimal(repr(error)) <= shown_error <= Decimal("1.13") * Decimal(repr(error))


@given(st.floats(), st.lists(st.floats(), max_size=3))
def test_any_number_can_be_written_and_read(value, errors):
    texts = round_pdg(value, *errors)
    assert len(texts) == 1 + len(errors)
    for text, number in zip(texts, (value, *errors), strict=True):
        assert isfinite(float(text)) or not isfinite(number) or abs(number) > 1e307


@pytest.mark.parametrize(
    ("value", "error", "limits", "expected"),
    [
        (2.34, 9000.0, (1.01, 50.0), ("2.3", "9000")),  # these two used to be 0
        (-500.0, 9000.0, (-900.0, 900.0), ("-500", "9000")),
        (1.2, 90000.0, (1.01, 50.0), ("1.2", "90000")),
        (49.96, 400.0, (1.01, 50.0), ("50", "400")),
        (49.96, 4.0, (1.01, 49.97), ("49.96", "4")),  # not 50
        (0.9996, 0.4, (0.0, 0.9999), ("0.9996", "0.4")),
        (0.827, 0.367, (0.0, 1.0), ("0.83", "0.4")),
        (-500.0, 9000.0, (-inf, inf), ("-500", "9000")),
        (0.0, 0.119, (0.0, 1.0), ("0.00", "0.12")),
        (-3e-9, 0.035, (-3.0, 3.0), ("0.000", "0.035")),  # a zero but for rounding
        (1e-9, 0.035, (5e-10, 3.0), ("0.000000001", "0.035")),
        (5.2797, 0.0012, (5.0, 6.0), ("5.2797", "0.0012")),
        (nan, 0.1, (0.0, 1.0), ("nan", "0.10")),
    ],
)
def test_the_value_of_a_parameter_keeps_two_digits_and_its_limits(value, error, limits, expected):
    assert round_pdg(value, error, limits=limits) == expected


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e9), st.floats(0, 1e3), st.floats(0, 1e3))
def test_no_value_is_rounded_out_of_its_limits(value, error, below, above):
    low, high = value - below, value + above
    shown = float(round_pdg(value, error, limits=(low, high))[0])
    assert low <= shown <= high
