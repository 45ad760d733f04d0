"""Confidence intervals have the coverage that they claim."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.accuracy.intervals import half_width, mixed_half_width, one_cell_bound
from dpublish.accuracy.noise_distribution import Terms, noise_survival, sum_quantile
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.exact.sampler import discrete_laplace
from dpublish.randomness import plain_generator, seeded


@pytest.mark.parametrize("rate", [Fraction(2), Fraction(1, 2), Fraction(1, 30)])
@pytest.mark.parametrize("cells", [1, 7, 300])
def test_whole_cells_are_covered_as_often_as_claimed_and_no_wider_than_needed(rate, cells):
    width = half_width(rate, np.ones(cells), 0.9)
    noise = discrete_laplace(rate, 20_000 * cells, seeded(3)).reshape(20_000, cells).sum(axis=1)
    covered = np.mean(np.abs(noise) <= width)
    assert covered > 0.9 - 0.01
    assert np.mean(np.abs(noise) <= width - 1) < 0.9 + 0.01  # one less would not do


@pytest.mark.parametrize("rate", [Fraction(2), Fraction(1, 5), Fraction(1, 300)])
@pytest.mark.parametrize(
    "weights", [[0.3], [1.0, 0.5, 0.25, 1.0, 0.1], [1.0] * 12 + [0.2] * 3, [0.9, 0.01]]
)
def test_partly_covered_cells_are_covered_as_often_as_claimed_and_hardly_more(rate, weights):
    noise = discrete_laplace(rate, 100_000 * len(weights), seeded(4)).reshape(100_000, -1)
    error = np.abs(noise @ np.array(weights))
    width = half_width(rate, np.array(weights), 0.95)
    assert np.mean(error <= width + 1e-9) > 0.95 - 0.004
    assert np.mean(error <= 0.97 * width - max(weights)) < 0.95 + 0.004  # less would not do


def test_a_weight_that_hardly_counts_changes_hardly_anything():
    width = half_width(Fraction(1, 5), np.array([1.0, 1e-7]), 0.95)
    one = sum_quantile(Fraction(1, 5), 1, 0.95)
    assert one < width < 1.03 * one


@pytest.mark.parametrize("rate", [Fraction(3), Fraction(1, 10)])
@pytest.mark.parametrize("shape", ["even", "heavy", "geometric"])
def test_sums_with_thousands_of_weights_are_bounded_closely(rate, shape):
    weights = {
        "even": np.linspace(0.1, 1, 3000),
        "heavy": np.append(np.linspace(0.001, 0.002, 2000), 1.0),
        "geometric": np.geomspace(1e-9, 1, 2000),
    }[shape]
    noise = discrete_laplace(rate, 4000 * weights.size, seeded(4)).reshape(4000, -1)
    error = np.abs(noise @ weights)
    width = half_width(rate, weights, 0.95)
    assert np.mean(error <= width) > 0.95 - 0.012
    assert np.mean(error <= 0.96 * width - 0.5 * weights.max()) < 0.95 + 0.012


@pytest.mark.parametrize("confidence", [0.2, 0.5, 0.999, 0.99999, 1 - 1e-9])
def test_the_distribution_of_a_weighted_sum_agrees_with_the_exact_quantile_of_whole_ones(
    confidence,
):
    # Weights that differ in the 12th digit cannot use the formula for equal ones.
    exact = sum_quantile(Fraction(1, 20), 3, confidence)
    width = half_width(Fraction(1, 20), np.array([1, 1, 1 + 1e-12]), confidence)
    assert exact <= width <= 1.2 * exact + 1


def test_noise_of_different_rates_is_added_up_as_it_is():
    rates, weights = [Fraction(1, 2), Fraction(1, 20)], [np.full(30, 1.0), np.array([0.5, 1.0])]
    noise = [
        discrete_laplace(r, 50_000 * w.size, seeded(5)) for r, w in zip(rates, weights, strict=True)
    ]
    error = np.abs(sum(n.reshape(-1, w.size) @ w for n, w in zip(noise, weights, strict=True)))
    width = mixed_half_width(rates, weights, 0.95)
    assert np.mean(error <= width) > 0.945
    assert np.mean(error <= 0.96 * width) < 0.955
    assert mixed_half_width(rates, [np.zeros(3), np.ones(4)], 0.9) == half_width(
        rates[1], np.ones(4), 0.9
    )


def test_a_deviation_on_top_of_the_noise_is_added_as_a_normal_number():
    noise = discrete_laplace(Fraction(1, 5), 200_000, seeded(6)).reshape(-1, 2).sum(axis=1)
    error = np.abs(noise + plain_generator(7).normal(0, 12, noise.size))
    width = half_width(Fraction(1, 5), np.ones(2), 0.95, deviation=12)
    assert np.mean(error <= width) > 0.947
    assert np.mean(error <= 0.97 * width) < 0.953


def test_products_of_weights_are_gathered_without_listing_them():
    axes = [np.array([0.5, 1, 1, 0]), np.array([1, 0.25]), np.ones(3)]
    listed = np.multiply.outer(np.multiply.outer(axes[0], axes[1]), axes[2]).ravel()
    gathered, one_by_one = Terms.of_products(axes, 0.2), Terms.gather(listed, np.full(24, 0.2))
    for here, there in zip(gathered, one_by_one, strict=True):
        assert np.array_equal(here, there)


def test_an_empty_sum_has_no_error():
    assert half_width(Fraction(1), np.zeros(4), 0.95) == 0
    assert half_width(Fraction(1), np.zeros(4), 0.95, deviation=2) == pytest.approx(2 * 1.959964)


@pytest.mark.parametrize("cells", [1, 10, 10**12])
def test_the_bound_over_all_cells_is_the_smallest_that_the_union_bound_allows(cells):
    width = one_cell_bound(Fraction(1, 4), cells, 0.95)
    assert cells * noise_survival(Fraction(1, 4), width + 1) <= 0.05 + 1e-9
    assert cells * noise_survival(Fraction(1, 4), width) > 0.05


@pytest.mark.parametrize("confidence", [0, 1, -0.1, 1.5, float("nan")])
def test_a_confidence_that_is_none_is_refused(confidence):
    with pytest.raises(InvalidParameter, match="between 0 and 1"):
        half_width(Fraction(1), np.ones(1), confidence)
