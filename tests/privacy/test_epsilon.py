from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.errors import InvalidParameter, InvalidType
from dpublish.privacy.epsilon import (
    format_epsilon,
    format_short,
    how_read,
    parse_epsilon,
    parse_exact,
    rational_weight,
    read_exact,
)

UP_TO_30_DIGITS = st.integers(1, 10**30 - 1)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("0.1", Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("1/3", Fraction(1, 3)),
        (" 2 / 4 ", Fraction(1, 2)),
        ("1e5", Fraction(100_000)),
        ("1e-99", Fraction(1, 10**99)),
        ("0." + "0" * 29 + "1", Fraction(1, 10**30)),
        (3, Fraction(3)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Fraction(2, 7), Fraction(2, 7)),
    ],
)
def test_an_exact_number_is_read_exactly(written, meant):
    assert parse_epsilon(written) == meant


@pytest.mark.parametrize("zero_or_less", [0, "0", "0.0", "0/5", "0e9", "-1", -1, Fraction(-1, 2)])
def test_epsilon_is_greater_than_zero(zero_or_less):
    with pytest.raises(InvalidParameter, match="must be greater than 0"):
        parse_epsilon(zero_or_less)


@pytest.mark.parametrize(
    "garbage", ["", " ", "0.1x", "x", "1.", "1,5", "1_0", "nan", "inf", "1e", "1//2"]
)
def test_text_that_is_not_a_number_is_refused(garbage):
    with pytest.raises(InvalidParameter, match="is not a number"):
        parse_epsilon(garbage)


def test_numbers_that_would_fill_the_memory_are_refused_before_they_are_computed():
    with pytest.raises(InvalidParameter, match="is too large"):
        parse_epsilon("1e999999999")
    with pytest.raises(InvalidParameter, match="has too many digits"):
        parse_epsilon("9" * 31)
    for huge in ("1e999999999", "1e-999999999"):
        with pytest.raises(InvalidParameter, match="must be a number such as"):
            parse_epsilon(Decimal(huge))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1" * 400, "has too many digits: 30 before the point and 30 after it at most"),
        ("0." + "1" * 400, "has too many digits: 30 before"),
        ("1e400", "is too large: its power of ten is 99 at most"),
        ("1e-400", "is too small: its power of ten is -99 at most"),
        ("1/" + "3" * 1001, "has too many digits: 1000 on either side"),
    ],
)
def test_a_number_beyond_a_limit_is_not_called_no_number(text, told):
    with pytest.raises(InvalidParameter, match=told) as caught:
        parse_epsilon(text)
    assert len(str(caught.value)) < 200


def test_white_space_around_a_ratio_is_no_matter():
    assert parse_epsilon(" 1\t/ 3 ") == Fraction(1, 3)


def test_division_by_zero_is_refused():
    with pytest.raises(InvalidParameter, match="divides by zero"):
        parse_epsilon("1/0")


FLOATS = [
    (0.1, Fraction(1, 10)),
    (1.0, Fraction(1)),
    (1e-8, Fraction(1, 10**8)),
    (0.1 + 0.2, Fraction(30000000000000004, 10**17)),
    (np.float64(0.1), Fraction(1, 10)),
    (np.float32(0.1), Fraction(1, 10)),
    (np.float16(0.1), Fraction(1, 10)),
    (np.int64(2), Fraction(2)),
    (np.uint8(3), Fraction(3)),
]


@pytest.mark.parametrize(("value", "meant"), FLOATS, ids=repr)
def test_a_float_is_read_by_its_shortest_decimal(value, meant):
    read = parse_epsilon(value)
    assert read == meant
    assert type(read.numerator) is type(read.denominator) is int


@given(digits=st.integers(0, 12), units=st.integers(1, 10**15))
def test_every_short_decimal_is_read_as_it_was_typed(digits, units):
    meant = Fraction(units, 10**digits)
    assert parse_epsilon(float(meant)) == meant


def test_it_is_said_how_a_float_was_read_and_nothing_of_exact_numbers():
    assert how_read(np.float32(0.1)) == how_read(0.1)
    assert "exactly 1/10" in how_read(0.1)
    for exact in ("0.1", 1, Fraction(1, 10), Decimal("0.1"), np.int64(1)):
        assert how_read(exact) == ""


@pytest.mark.parametrize("value", [0.1, 1.0, np.float64(0.1), np.float32(0.5)])
def test_a_sensitivity_is_never_read_from_a_float(value):
    with pytest.raises(InvalidType, match=r'binary float.*write "'):
        parse_exact(value, "sensitivity")


def test_the_decimal_offered_for_a_tiny_float_has_no_exponent():
    with pytest.raises(InvalidType, match=r'write "0\.00000001"'):
        parse_exact(1e-8, "sensitivity")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), np.float32("nan")])
def test_a_float_that_is_no_number_is_refused(value):
    with pytest.raises(InvalidParameter, match="must be a finite number"):
        parse_epsilon(value)
    with pytest.raises(InvalidParameter, match=r"is not exact$"):
        parse_exact(value, "sensitivity")


@pytest.mark.parametrize("value", [-0.5, 0.0, -0.0])
def test_a_float_is_greater_than_zero(value):
    with pytest.raises(InvalidParameter, match="must be greater than 0"):
        parse_epsilon(value)


@pytest.mark.parametrize(
    "value",
    [True, None, [1], b"1", 1j, np.array(0.5), np.bool_(True), Decimal("NaN"), Decimal("Infinity")],
)
def test_what_is_no_number_is_refused_with_what_to_pass(value):
    with pytest.raises(InvalidType, match=r"must be a number such as 0\.5 or a string"):
        parse_epsilon(value)


def test_the_message_names_the_setting():
    with pytest.raises(InvalidParameter, match=r"^cap \('0'\) must"):
        parse_epsilon("0", "cap")


@given(numerator=UP_TO_30_DIGITS, denominator=UP_TO_30_DIGITS)
def test_what_is_written_is_read_back_the_same(numerator, denominator):
    value = Fraction(numerator, denominator)
    assert parse_epsilon(format_epsilon(value)) == value


@pytest.mark.parametrize("value", [Fraction(1, 10**31), Fraction(2, 3**70)])
def test_small_shares_are_read_back_the_same(value):
    assert parse_epsilon(format_epsilon(value)) == value


@given(digits=st.integers(0, 30), units=st.integers(1, 10**30 - 1))
def test_decimals_are_written_as_decimals_without_needless_zeros(digits, units):
    text = format_epsilon(Fraction(units, 10**digits))
    assert "/" not in text
    assert "e" not in text
    assert not ("." in text and text.endswith("0"))


@given(value=st.floats(1e-6, 1e6))
def test_a_rational_weight_is_near_its_value_and_never_zero(value):
    weight = rational_weight(value)
    assert weight > 0
    assert 64 % weight.denominator == 0
    assert abs(weight - Fraction(value)) <= Fraction(1, 64)


ABSURD = {
    "a long number": -(10**5000),
    "a long fraction": Fraction(-1, 10**5000),
    "a long decimal": Decimal("-0." + "1" * 900),
    "a long text": "x" * 900,
    "long digits": "-" + "5" * 900,
    "two lines": "x\ny",
    "an escape": "-5\n\x1b[31m",
    "long zeros": "1/" + "0" * 900,
    "a huge float": -1e300,
}


@pytest.mark.parametrize("case", ABSURD)
def test_a_refusal_repeats_little_of_what_was_given_and_stays_on_one_line(case):
    with pytest.raises(InvalidParameter) as caught:
        parse_epsilon(ABSURD[case])
    assert len(str(caught.value)) < 120
    assert str(caught.value).isprintable()


def test_a_number_too_long_to_be_written_is_refused():
    for value in (10**4000, Fraction(1, 10**4000)):
        with pytest.raises(InvalidParameter, match="more than 4000 digits"):
            parse_epsilon(value)
    assert parse_epsilon(10**4000 - 1) == 10**4000 - 1


@given(value=st.fractions(min_value=0, max_value=10**6, max_denominator=10**60))
def test_a_number_in_a_message_is_short_and_never_more_than_it_is(value):
    text = format_short(value)
    assert len(text) <= 40
    assert Fraction(text) <= value <= Fraction(text) * (1 + Fraction(1, 10**10))


@pytest.mark.parametrize("text", ["", "1e9", "-1", "1/0", "1/", ".5", "٣", "1 ", "nan"])
def test_stored_amounts_are_read_strictly(text):
    with pytest.raises(ValueError, match="not an exact number"):
        read_exact(text)
