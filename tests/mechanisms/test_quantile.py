"""Quantiles: what they hide, with which odds a point comes out, what they cost."""

from fractions import Fraction
from itertools import combinations_with_replacement as multisets
from math import ceil, inf, nan

import numpy as np
import pytest

from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.mechanisms.quantile import equal_stretches, quantile, rank_range
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value, privacy_loss

PROBABILITIES = [Fraction(p) for p in ("0", "1/10", "1/3", "1/2", "3/4", "1")]
HALF = Fraction(1, 2)


def scores(values, probability, cells):
    """Score each lattice point by its definition, in units of 1 / denominator of a record."""
    values, points = np.sort(np.array(values, dtype=int)), np.arange(cells + 1)
    below = probability.denominator * np.searchsorted(values, points, side="left")
    up_to = probability.denominator * np.searchsorted(values, points, side="right")
    target = probability.numerator * len(values)
    return -np.maximum(np.maximum(below - target, target - up_to), 0)


def exact_odds(values, probability, cells, epsilon, range_factor=1.0):
    rate = epsilon / (rank_range(probability) * range_factor)
    odds = np.exp(rate * scores(values, probability, cells))
    return dict(enumerate(odds / odds.sum()))


def worst_neighbors(probability, cells):
    """Arrange values so that one more of them lifts nearly all points and sinks one.

    A long stretch beside the quantile comes nearer to it; the one point beyond it moves off.
    """
    if probability > HALF:
        values, added = worst_neighbors(1 - probability, cells)
        return [cells - value for value in values], cells - added
    if probability == 0:
        return [], cells - 1
    return [cells - 1] * ceil((1 - probability) / probability), 0


def published(values, count, seed, *, budget=1, **changes):
    rng = seeded(seed)
    public = {"probability": HALF, "lower": 0, "upper": 6, "cells": 6} | changes
    return [
        quantile(np.array(values), **public, budget=Budget.seeded(budget), rng=rng)
        for _ in range(count)
    ]


# --- what they hide ----------------------------------------------------------------------------


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_the_worst_added_record_tells_the_budget_and_half_the_range_is_too_little(probability):
    cells = 10**5
    values, added = worst_neighbors(probability, cells)

    def loss(**changes):
        here = exact_odds(values, probability, cells, 1, **changes)
        return privacy_loss(here, exact_odds([*values, added], probability, cells, 1, **changes))

    assert loss() == pytest.approx(1, abs=1e-3)
    assert loss() < 1
    assert loss(range_factor=0.5) > 1.9


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_no_added_record_changes_scores_by_more_than_the_range(probability):
    values, added = worst_neighbors(probability, 4)
    widest = np.ptp(scores([*values, added], probability, 4) - scores(values, probability, 4))
    assert widest == rank_range(probability)
    for size in range(7):
        for values in multisets(range(5), size):
            before = scores(values, probability, 4)
            for added in range(5):
                assert np.ptp(scores([*values, added], probability, 4) - before) <= widest


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_equal_points_weighed_together_cover_the_lattice_with_the_right_scores(probability):
    rng = plain_generator(1)
    for size in (0, 1, 2, 5, 40):
        values = rng.integers(0, 18, size)  # 18 is never reached, 0 and 17 sometimes are
        stretches = equal_stretches(values, probability=probability, cells=18)
        covered = np.full(19, 1)
        for start, length, score in zip(*stretches, strict=True):
            assert length >= 1
            covered[start : start + length] = score
        assert stretches.lengths.sum() == 19
        assert covered.tolist() == scores(values, probability, 18).tolist()


# --- with which odds ---------------------------------------------------------------------------


@pytest.mark.parametrize("probability", PROBABILITIES[::2])
@pytest.mark.parametrize("values", [[], [3], [0, 0, 1, 5, 5, 5, 6], [2] * 9])
def test_points_are_as_frequent_as_the_proof_assumes(values, probability):
    seen = published(values, 1500, 2, budget=2, probability=probability)
    assert frequency_p_value(seen, exact_odds(values, probability, 6, 2.0)) > 1e-4


def test_half_the_range_shows_in_the_frequencies():
    values = [0, 0, 1, 5, 5, 5, 6]
    seen = published(values, 3000, 2)
    assert frequency_p_value(seen, exact_odds(values, HALF, 6, 1.0)) > 1e-4
    assert frequency_p_value(seen, exact_odds(values, HALF, 6, 1.0, range_factor=0.5)) < 1e-9


def test_values_go_to_the_nearest_point_within_the_bounds_by_a_fixed_rule():
    odd = [nan, inf, -inf, 99.0, -99.0, 2.4, 2.6]
    moved = [0, 6, 0, 6, 0, 2, 3]
    assert published(odd, 50, 3) == published(moved, 50, 3)
    shifted = {"lower": -1.0, "upper": 0.5, "cells": 6}
    moved = [-1.0, 0.5, -1.0, 0.5, -1.0, 0.5, 0.5]
    assert published(odd, 50, 3, **shifted) == published(moved, 50, 3, **shifted)
    assert set(published([0.0], 200, 4, budget="0.01", **shifted)) <= set(np.linspace(-1, 0.5, 7))


def test_no_value_raises_a_floating_point_error():
    odd = np.array([nan, inf, -inf, 1e308, -1e308, 5e-324, 2.5])
    rest = {"probability": HALF, "cells": 1 << 50, "rng": seeded(1)}
    with np.errstate(all="raise"):
        for lower, upper in [(0, 6), (-5e-324, 1e-320), (-8e307, 8e307)]:
            quantile(odd, lower=lower, upper=upper, **rest, budget=Budget.seeded(1))
        signaling = np.array([0x7FA00000], dtype=np.uint32).view(np.float32)  # a kind of NaN
        quantile(signaling, lower=0, upper=1, **rest, budget=Budget.seeded(1))


def test_bounds_and_cells_of_any_numeric_type_are_the_same_settings():
    plain = published([1, 2, 5], 20, 8)
    for number in (Fraction, np.int64, np.float32):
        other = {"lower": number(0), "upper": number(6), "cells": np.int64(6)}
        assert published([1, 2, 5], 20, 8, **other) == plain


def test_ties_on_a_huge_lattice_are_found_against_all_odds_of_weight():
    huge = {"lower": 0.0, "upper": 1.0, "cells": 1 << 50}
    tied = [0.2] * 100 + [0.625] * 1000 + [0.7] * 200
    assert set(published(tied, 20, 5, **huge)) == {0.625}
    assert max(published(tied, 20, 5, probability=0, **huge)) <= 0.2
    assert min(published(tied, 20, 5, probability=1, **huge)) >= 0.625


def test_quantiles_of_many_values_are_near_the_truth():
    values = plain_generator(6).normal(50, 10, 100_000)
    for probability in (Fraction(1, 20), HALF, Fraction(9, 10)):
        found = published(values, 1, 7, probability=probability, upper=100, cells=1 << 30)[0]
        assert abs(np.mean(values <= found) - float(probability)) < 1e-3


# --- what they cost ----------------------------------------------------------------------------


def test_one_budget_pays_for_one_quantile():
    call = {"probability": HALF, "lower": 0, "upper": 1, "cells": 10, "rng": seeded(1)}
    budget = Budget.seeded(1)
    quantile(np.array([], dtype=float), **call, budget=budget)
    with pytest.raises(BudgetAlreadyUsed):
        quantile(np.array([0.5]), **call, budget=budget)


@pytest.mark.parametrize(
    "bad",
    [
        {"probability": 0.5},
        {"probability": Fraction(3, 2)},
        {"probability": -1},
        {"probability": Fraction(1, 2**20 + 1)},
        {"lower": 1, "upper": 1},
        {"lower": 0, "upper": inf},
        {"lower": nan},
        {"lower": -1e308, "upper": 1e308},
        {"upper": 10**400},
        {"upper": Fraction(10**400)},
        {"lower": None},
        {"lower": "a"},
        {"lower": 1j},
        {"lower": np.zeros(2)},
        {"lower": 2**53, "upper": 2**53 + 1},  # the same float
        {"cells": 0},
        {"cells": 2**50 + 1},
        {"values": [0.5]},
        {"values": np.array(["a"])},
        {"values": np.array([0.5], dtype=np.longdouble)},
        {"values": np.array([[0.5]])},
        {"values": np.ma.masked_array([0.5], mask=[True])},
    ],
)
def test_a_refused_call_costs_nothing(bad):
    call = {"values": np.zeros(1), "probability": HALF, "lower": 0, "upper": 1, "cells": 9} | bad
    with pytest.raises(InvalidParameter):
        quantile(**call, budget=(budget := Budget.seeded(1)), rng=seeded(1))
    assert not budget.is_used
