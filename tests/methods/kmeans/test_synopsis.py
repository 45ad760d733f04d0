"""A noisy grid: where its cells are, what they add up to, and what it refuses to be."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.core.noisy_size import NoisySize
from dpublish.errors import InvalidParameter
from dpublish.methods.kmeans.synopsis import GridSynopsis

RATE = Fraction(1, 2)
GRID = GridSynopsis((2, 3), np.array([4, -1, 3, 0, 2, -5]), RATE)


def test_cells_come_in_row_major_order_between_minus_one_and_one():
    assert GRID.cell_centers() == pytest.approx(
        np.array([[-0.5, -2 / 3], [-0.5, 0], [-0.5, 2 / 3], [0.5, -2 / 3], [0.5, 0], [0.5, 2 / 3]])
    )
    assert GRID.lines(1) == pytest.approx([-2 / 3, 0, 2 / 3])
    assert GridSynopsis((1,), np.array([3]), RATE).cell_centers().tolist() == [[0.0]]


def test_estimates_are_not_negative_and_add_up_to_the_noisy_total():
    estimates = GRID.estimates()
    assert np.all(estimates >= 0)
    assert estimates.sum() == pytest.approx(GRID.counts.sum())


@pytest.mark.parametrize("value", [-500, 0])
def test_a_total_that_is_not_positive_counts_as_one(value):
    records = NoisySize(value, Fraction(50))  # nearly exact, so it outweighs the counts
    grid = GridSynopsis((2,), np.array([-30, -40]), RATE, records)
    assert grid.total == 1.0
    assert grid.estimates().sum() == pytest.approx(1.0)


def test_the_total_weighs_the_noisy_size_against_the_counts():
    records = NoisySize(12, Fraction(1, 3))
    grid = replace(GRID, records=records)
    shares = 1 / (6 * noise_variance(RATE)), 1 / noise_variance(records.rate)
    assert grid.total == pytest.approx((3 * shares[0] + 12 * shares[1]) / sum(shares))
    assert grid.deviation == pytest.approx(noise_variance(RATE) ** 0.5)


def test_a_plane_adds_up_the_other_columns():
    counts = np.arange(24)
    grid = GridSynopsis((2, 3, 4), counts, RATE)
    cube = counts.reshape(2, 3, 4)
    assert np.array_equal(grid.plane(0, 2), cube.sum(axis=1))
    assert np.array_equal(grid.plane(2, 0), cube.sum(axis=1).T)
    assert np.array_equal(grid.plane(1, 2), cube.sum(axis=0))


def test_grids_are_equal_if_all_they_hold_is():
    assert replace(GRID) == GRID
    assert replace(GRID, counts=GRID.counts + 1) != GRID
    assert replace(GRID, records=NoisySize(3, RATE)) != GRID
    assert replace(GRID, rate=Fraction(1)) != GRID
    assert GRID != 3


@pytest.mark.parametrize(
    "changes",
    [
        {"sizes": ()},
        {"sizes": (6,), "counts": np.zeros((2, 3), dtype=np.int64)},
        {"sizes": (2, 2)},
        {"sizes": (6, 0)},
        {"sizes": (2.0, 3)},
        {"counts": np.zeros(6)},
        {"rate": 0.5},
        {"rate": Fraction(0)},
        {"records": NoisySize(2.5, RATE)},
        {"records": NoisySize(2, Fraction(-1))},
    ],
)
def test_what_no_method_publishes_is_refused(changes):
    with pytest.raises(InvalidParameter):
        replace(GRID, **changes)
