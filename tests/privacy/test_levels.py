from fractions import Fraction

import pytest

from dpublish.errors import InvalidParameter
from dpublish.privacy.levels import parse_amounts, parse_levels, require_amounts, tell_amounts

CENT, TENTH, ONE = Fraction(1, 100), Fraction(1, 10), Fraction(1)


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ((), "1 to 1,000 levels, not 0"),
        (tuple(range(1, 1002)), "1 to 1,000 levels, not 1,001"),
        (("0.1", "0.10"), "must rise"),
        (("1", "0.1"), "must rise"),
        (("0", "1"), "must be greater than 0"),
        ((None,), "must be a number"),
        ("0.1", "several numbers"),
    ],
)
def test_levels_that_are_no_levels_are_refused(levels, message):
    with pytest.raises(InvalidParameter, match=message):
        parse_levels(levels)


def test_a_thousand_levels_are_not_too_many():
    assert len(parse_levels(range(1, 1001))) == 1000


def test_amounts_are_kept_in_the_order_of_their_levels():
    assert parse_amounts({ONE: "0.5", CENT: 0}) == ((CENT, Fraction(0)), (ONE, Fraction(1, 2)))


@pytest.mark.parametrize(
    ("amounts", "message"),
    [
        ({}, "1 to 1,000 levels, not 0"),
        ({CENT: 0, ONE: 0}, "some level must pay something"),
        ({CENT: TENTH, ONE: ONE}, r"level 0\.01 pays from 0 up to its own number, not 0\.1"),
        ({ONE: -TENTH}, "must be greater than 0"),
        ({ONE: 1.5}, r"level 1 pays from 0 up to its own number, not 1\.5"),
        ({ONE: 0.0}, "some level must pay something"),
        ({ONE: ONE, "1.0": ONE}, "must rise"),
    ],
)
def test_amounts_that_no_level_can_pay_are_refused(amounts, message):
    with pytest.raises(InvalidParameter, match=message):
        parse_amounts(amounts)


def test_amounts_below_nothing_are_refused_wherever_they_come_from():
    with pytest.raises(InvalidParameter, match="not less than nothing"):
        require_amounts(((CENT, -CENT), (ONE, ONE)))


def test_many_levels_are_told_by_their_ends():
    told = tell_amounts(parse_amounts({Fraction(level): level for level in range(1, 1001)}))
    assert told == "1 at level 1, and so on over 1,000 levels to 1000 at level 1000"
    assert tell_amounts(((ONE, TENTH),)) == "0.1 at level 1"
