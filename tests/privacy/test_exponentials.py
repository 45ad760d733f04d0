"""Enclosures of exponentials at the ends of their range; the rest is with the samplers' tests."""

from fractions import Fraction

import pytest

from dpublish.privacy.exponentials import Bounds, exp_bounds


@pytest.mark.parametrize("precision", [0, 1, 64, 500])
def test_the_exponential_of_nothing_is_known_exactly(precision):
    assert exp_bounds(Fraction(0), precision) == Bounds(1 << precision, 1 << precision)


@pytest.mark.parametrize("precision", [8, 64])
def test_what_is_below_the_last_bit_lies_between_nothing_and_one(precision):
    assert exp_bounds(precision + Fraction(1, 10**9), precision) == Bounds(0, 1)
    assert exp_bounds(Fraction(10) ** 30, precision) == Bounds(0, 1)
    # At the last bit itself it is computed, and is less than one of them: e > 2.
    assert exp_bounds(Fraction(precision), precision) == Bounds(0, 1)
