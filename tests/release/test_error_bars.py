"""Error bars have the coverage that they claim."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.errors import InvalidParameter
from dpublish.mechanisms.exact import discrete_laplace
from dpublish.mechanisms.noise_law import noise_survival, sum_quantile
from dpublish.randomness import seeded
from dpublish.release.error_bars import half_width, one_cell_bound


@pytest.mark.parametrize("rate", [Fraction(2), Fraction(1, 2), Fraction(1, 30)])
@pytest.mark.parametrize("cells", [1, 7, 300])
def test_whole_cells_are_covered_as_often_as_claimed_and_no_wider_than_needed(rate, cells):
    reach = half_width(rate, np.ones(cells), 0.9)
    noise = discrete_laplace(rate, 20_000 * cells, seeded(3)).reshape(20_000, cells).sum(axis=1)
    covered = np.mean(np.abs(noise) <= reach)
    assert covered > 0.9 - 0.01
    assert np.mean(np.abs(noise) <= reach - 1) < 0.9 + 0.01  # one less would not do


@pytest.mark.parametrize("rate", [Fraction(2), Fraction(1, 5), Fraction(1, 300)])
@pytest.mark.parametrize(
    "weights", [[0.3], [1.0, 0.5, 0.25, 1.0, 0.1], [1.0] * 12 + [0.2] * 3, [0.9, 0.01]]
)
def test_partly_covered_cells_are_covered_as_often_as_claimed_and_hardly_more(rate, weights):
    noise = discrete_laplace(rate, 100_000 * len(weights), seeded(4)).reshape(100_000, -1)
    error = np.abs(noise @ np.array(weights))
    reach = half_width(rate, np.array(weights), 0.95)
    assert np.mean(error <= reach + 1e-9) > 0.95 - 0.004
    assert np.mean(error <= 0.97 * reach - max(weights)) < 0.95 + 0.004  # less would not do


def test_the_bound_after_chernoff_holds_where_the_grid_would_be_too_fine():
    reach = half_width(Fraction(1, 5), np.array([1.0, 1e-7]), 0.95)
    one = sum_quantile(Fraction(1, 5), 1, 0.95)
    assert one < reach < 3 * one


def test_nothing_asked_means_no_error():
    assert half_width(Fraction(1), np.zeros(4), 0.95) == 0


@pytest.mark.parametrize("cells", [1, 10, 10**12])
def test_the_bound_over_all_cells_is_the_smallest_that_the_union_bound_allows(cells):
    reach = one_cell_bound(Fraction(1, 4), cells, 0.95)
    assert cells * noise_survival(Fraction(1, 4), reach + 1) <= 0.05 + 1e-9
    assert cells * noise_survival(Fraction(1, 4), reach) > 0.05


@pytest.mark.parametrize("confidence", [0, 1, -0.1, 1.5, float("nan")])
def test_a_confidence_that_is_none_is_refused(confidence):
    with pytest.raises(InvalidParameter, match="between 0 and 1"):
        half_width(Fraction(1), np.ones(1), confidence)
