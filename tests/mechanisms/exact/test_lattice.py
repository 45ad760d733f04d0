"""The lattice: floors are exact, and move as little as the proof says."""

from fractions import Fraction
from functools import cache
from itertools import product
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.errors import InvalidParameter
from dpublish.mechanisms.exact.lattice import (
    LatticeValues,
    choose_exponent,
    exponent_of,
    floor_units,
    lattice_sensitivity,
    require_reals,
)

SIXTEENTHS = [Fraction(n, 16) for n in range(-32, 33)]


@cache
def widest_moves(round_one):
    """Widest move of a rounded number for each size of the number's own move."""
    by_size = {}
    for start, move in product(SIXTEENTHS, SIXTEENTHS):
        distance = abs(round_one(start + move) - round_one(start))
        by_size[abs(move)] = max(by_size.get(abs(move), 0), distance)
    return by_size


def widest_move(round_one, sensitivity, coordinates):
    """Largest L1 distance of rounded vectors over all vectors and moves on a finer lattice."""
    by_size = widest_moves(round_one)
    return max(
        sum(by_size[size] for size in sizes)
        for sizes in product(by_size, repeat=coordinates)
        if sum(sizes) <= sensitivity
    )


@pytest.mark.parametrize("coordinates", [1, 2, 3])
@pytest.mark.parametrize("sensitivity", [Fraction(n, 4) for n in range(1, 9)], ids=str)
def test_floors_move_by_the_lattice_sensitivity_and_no_more(sensitivity, coordinates):
    bound = lattice_sensitivity(sensitivity, 0, coordinates)
    assert widest_move(floor, sensitivity, coordinates) == bound


def test_rounding_to_the_nearest_would_break_the_bound():
    assert widest_move(round, 1, 1) > lattice_sensitivity(Fraction(1), 0, 1)


def test_forgetting_the_coordinates_would_break_the_bound():
    assert widest_move(floor, 1, 3) > lattice_sensitivity(Fraction(1), 0, 1)


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-1000, 900),
)
def test_floors_of_floats_are_exact(value, exponent):
    wanted = Fraction(value) // Fraction(2) ** exponent
    wanted = max(-(2**60), min(int(wanted), 2**60))
    assert floor_units(np.array([value]), exponent).tolist() == [wanted]
    assert floor_units(np.array([value], dtype=object), exponent).tolist() == [wanted]


def test_a_value_too_small_to_be_scaled_keeps_its_sign():
    assert floor_units(np.array([-5e-324, 5e-324, -0.0, 0.0]), 10).tolist() == [-1, 0, 0, 0]


def test_integers_and_fractions_are_floored_exactly():
    exact = require_reals([Fraction(-1, 3), Fraction(7, 3), 2**80 + 1])
    assert floor_units(exact, -2).tolist() == [-2, 9, 2**60]
    assert floor_units(require_reals(np.array([5, -5])), 1).tolist() == [2, -3]
    assert floor_units(require_reals(np.float32(0.1)), -4).tolist() == 1


class Unwilling(float):
    def as_integer_ratio(self):
        raise ValueError(f"secret {float(self)}")


def test_no_element_raises_an_error_and_what_is_no_number_counts_as_zero():
    odd = ["secret 42", None, 1j, [3], {}, b"1", np.str_("7"), Unwilling(5), Fraction]
    odd += [float("nan"), float("-inf"), np.float32("inf"), np.datetime64("2020")]
    for values in (odd, np.array(odd, dtype=object)):
        assert floor_units(require_reals(values), -3).tolist() == [0] * len(odd)


def test_elements_of_any_numeric_type_are_floored_exactly():
    mixed = [True, 2, np.int8(-3), np.uint64(2**64 - 1), 0.3, np.float16(0.5), Fraction(-1, 3)]
    wanted = [4, 8, -12, 2**60, 1, 2, -2]
    assert floor_units(require_reals(mixed), -2).tolist() == wanted
    assert floor_units(require_reals([np.longdouble(0.3)]), -2).tolist() == [1]


def test_a_list_keeps_its_numbers_whatever_the_others_are():
    large = 2**53 + 1  # no float
    for others in ([], [0.5], [Fraction(1, 3)], [2**2000], ["a"]):
        assert floor_units(require_reals([large, *others]), 0)[0] == large


@pytest.mark.parametrize(
    "values",
    [np.array(["a"]), np.array([1j]), np.array(["2020"], "M8"), np.zeros(2, np.longdouble)],
)
def test_what_is_not_a_number_is_refused_by_its_type(values):
    with pytest.raises(InvalidParameter, match="numbers"):
        require_reals(values)


@pytest.mark.parametrize("epsilon", ["1/1000", "1/10", "1", "10"])
@pytest.mark.parametrize("sensitivity", ["1/7", "1", "1000"])
@pytest.mark.parametrize("touched", [1, 30, 10_000])
def test_the_chosen_lattice_costs_next_to_nothing(epsilon, sensitivity, touched):
    epsilon, sensitivity = Fraction(epsilon), Fraction(sensitivity)
    exponent = choose_exponent(sensitivity, epsilon, touched)
    step = Fraction(2) ** exponent
    assert step <= sensitivity / epsilon / 2**20  # far below the noise
    widened = step * lattice_sensitivity(sensitivity, exponent, touched)
    assert sensitivity <= widened <= sensitivity * Fraction(1002, 1000)
    assert 2 * step > min(sensitivity / epsilon / 2**20, sensitivity / touched / 2**10)


@pytest.mark.parametrize("bad", ["1/3", "3", Fraction(2) ** 950, Fraction(1, 2**1001)])
def test_only_powers_of_two_within_bounds_are_lattices(bad):
    with pytest.raises(InvalidParameter, match="granularity"):
        exponent_of(bad)


def test_published_values_come_back_exactly():
    noisy = LatticeValues(np.array([[3, -5], [0, 2**60 + 1]]), -3)
    assert noisy.fractions() == [Fraction(3, 8), Fraction(-5, 8), 0, Fraction(2**60 + 1, 8)]
    assert noisy.values.tolist() == [[0.375, -0.625], [0.0, 2.0**57]]
