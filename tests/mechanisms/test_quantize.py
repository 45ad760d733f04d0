"""Real scores on a lattice: how far rounding lets one record pull two scores apart."""

from fractions import Fraction
from math import ceil

import numpy as np
import pytest

from dpublish.errors import InvalidParameter
from dpublish.mechanisms.selection import FARTHEST, lattice_range, quantize
from dpublish.randomness import plain_generator

GRAIN = 20  # scores are whole multiples of 1/20, so that all cases can be listed
STARTS = np.arange(GRAIN)


def rounded_changes(change, rounding=lambda score: score // GRAIN):
    """List what a change of score can become on the lattice of integers."""
    return set((rounding(STARTS + change) - rounding(STARTS)).tolist())


def widest(width, error=0):
    """Find the widest range on the lattice if changes lie within some interval of `width`.

    With an `error`, the scores before and after are each computed wrongly by up to it.
    """
    return max(
        max(rounded_changes(lowest + width + 2 * error)) - min(rounded_changes(lowest - 2 * error))
        for lowest in range(-2 * GRAIN, 2 * GRAIN)
    )


@pytest.mark.parametrize("width", range(2, 3 * GRAIN, 2))
@pytest.mark.parametrize("error", [0, 1, 4])
def test_rounding_down_widens_the_range_as_stated_and_no_more(width, error):
    ideal, off = Fraction(width, GRAIN), Fraction(error, GRAIN)
    stated = lattice_range(sensitivity_range=ideal, numeric_error=off, exponent=0)
    assert widest(width, error) == stated
    assert stated > ceil(ideal + 2 * off)  # the rule for a bound on each score is too little


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_aligned_changes_cost_nothing_if_rounded_down(steps):
    changes = range(-steps * GRAIN, 1)  # anything between two integers
    rounded = set().union(*(rounded_changes(change) for change in changes))
    stated = lattice_range(sensitivity_range=steps, exponent=0, aligned=True)
    assert max(rounded) - min(rounded) == stated == steps
    assert widest(steps * GRAIN) == steps + 1  # for the guarantee matters


def test_rounding_to_even_would_break_the_guarantee_of_aligned_changes():
    to_even = rounded_changes(GRAIN, lambda score: np.rint(score / GRAIN).astype(int))
    assert max(to_even) - min(rounded_changes(0)) == 2


@pytest.mark.parametrize("exponent", [-200, -52, -1, 0])
def test_the_range_is_counted_in_steps(exponent):
    step = Fraction(1, 2**-exponent)
    assert lattice_range(sensitivity_range=3 * step, exponent=exponent, aligned=True) == 3
    assert lattice_range(sensitivity_range=3 * step, exponent=exponent) == 4
    assert lattice_range(sensitivity_range=step / 3, exponent=exponent) == 2


@pytest.mark.parametrize("magnitude", [1e-30, 1.0, 1e6, 2.0**40, 2.0**60, 1e200])
def test_the_lattice_is_exact_for_scores_of_every_size(magnitude):
    scores = plain_generator(8).normal(0, magnitude, 50)
    for signed in (scores, -abs(scores)):
        lattice = quantize(signed, sensitivity_range=1, exponent=-20)
        floors = [Fraction(score) * 2**20 // 1 for score in signed]
        assert lattice.scores.tolist() == [max(f - max(floors), -FARTHEST) for f in floors]
        assert lattice.scores.dtype == np.int64


def test_scores_that_are_no_numbers_follow_a_fixed_rule():
    def steps(*scores):
        return quantize(np.array(scores), sensitivity_range=1, exponent=0).scores.tolist()

    assert steps(np.nan, 1.0, -np.inf, np.inf, -3.0) == [-FARTHEST] * 3 + [0, -FARTHEST]
    assert steps(np.nan, 1.0, -np.inf, -3.0) == [-FARTHEST, 0, -FARTHEST, -4]
    assert steps(np.nan) == steps(np.inf) == [0]


def test_scores_beyond_the_largest_assumed_count_as_that():
    huge = [2.0**1000, 2.0**800, -(2.0**1000), -(2.0**800)]
    lattice = quantize(np.array(huge), sensitivity_range=1, exponent=-200)
    assert lattice.scores.tolist() == [0, 0, -FARTHEST, -FARTHEST]


def test_no_score_raises_a_floating_point_error():
    odd = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -5e-324, 0.1])
    with np.errstate(all="raise"):
        for exponent in (-200, -20, 0):
            quantize(odd, sensitivity_range=1, exponent=exponent)
            quantize(odd[5:], sensitivity_range=1, exponent=exponent)
        signaling = np.array([0x7FA00000], dtype=np.uint32).view(np.float32)  # a kind of NaN
        assert quantize(signaling, sensitivity_range=1, exponent=0).scores.tolist() == [0]


@pytest.mark.parametrize(
    "bad",
    [
        {"exponent": 1},
        {"exponent": -201},
        {"exponent": 0.0},
        {"sensitivity_range": 0.1},
        {"sensitivity_range": 0},
        {"numeric_error": -1},
        {"numeric_error": 1e-9},
        {"aligned": True, "numeric_error": 1},
        {"aligned": True, "sensitivity_range": Fraction(1, 3)},
        {"scores": np.array([1, 2])},
        {"scores": np.array([])},
        {"scores": np.array([1.0], dtype=np.longdouble)},
        {"scores": [1.0]},
        {"scores": np.ma.masked_array([1.0, 2.0], mask=[False, True])},
    ],
)
def test_settings_that_make_no_sense_are_refused(bad):
    call = {"scores": np.array([1.0]), "sensitivity_range": 1, "exponent": 0} | bad
    with pytest.raises(InvalidParameter):
        quantize(**call)
