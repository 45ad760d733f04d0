"""Scores of cells, and the correlation behind their products."""

from math import comb, inf

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import multivariate_normal

from dpublish.methods.dpcopula.latent_correlation import (
    SCORE_UNIT,
    best_steepness,
    correlation_of_terms,
    pair_terms,
    score_table,
    slope_of_terms,
)
from dpublish.randomness import plain_generator

MARGINALS = {
    "two": np.array([0.5, 0.5]),
    "uneven": np.array([0.9, 0.1]),
    "three": np.array([0.3, 0.3, 0.4]),
    "geometric": 0.5 ** np.arange(1, 12) / (0.5 ** np.arange(1, 12)).sum(),
    "many": np.full(40, 1 / 40),
}


def exact_mean(first, second, tables, rho):
    """Mean product of scores from bivariate normal probabilities, cell by cell."""
    cumulative = [np.minimum(np.concatenate([[0], np.cumsum(p)]), 1) for p in (first, second)]
    cuts = [np.clip(ndtri(part), -9, 9) for part in cumulative]
    distribution = multivariate_normal([0, 0], [[1, rho], [rho, 1]])
    corners = distribution.cdf(np.stack(np.meshgrid(*cuts, indexing="ij"), axis=-1))
    cells = np.diff(np.diff(corners, axis=0), axis=1)
    return float((tables[0] / SCORE_UNIT) @ cells @ (tables[1] / SCORE_UNIT))


@pytest.mark.parametrize("rho", [-0.8, -0.2, 0.0, 0.5, 0.9])
@pytest.mark.parametrize("pair", [("two", "two"), ("uneven", "three"), ("geometric", "many")])
@pytest.mark.parametrize("steepness", [1.0, 2.0, inf])
def test_the_correlation_of_cut_normal_variables_is_found_in_spite_of_ties(rho, pair, steepness):
    probabilities = [MARGINALS[name] for name in pair]
    tables = [score_table(p, steepness) for p in probabilities]
    mean = exact_mean(*probabilities, tables, rho)
    found = correlation_of_terms(np.array([mean]), pair_terms(tables, probabilities))
    # Where cells are few and the correlation strong, products hardly rise any more.
    slope = slope_of_terms(np.array([rho]), pair_terms(tables, probabilities))[0]
    assert found[0] == pytest.approx(rho, abs=2e-3 + 2e-5 / slope)


def test_taking_products_for_correlations_would_be_caught():
    """The papers' formula 2 sin(pi r / 6) forgets ties."""
    probabilities = [MARGINALS["uneven"], MARGINALS["geometric"]]
    tables = [score_table(p, 1.0) for p in probabilities]
    mean = exact_mean(*probabilities, tables, 0.6)
    naive = 2 * np.sin(np.pi * 3 * mean / 6)
    assert abs(naive - 0.6) > 0.1
    assert correlation_of_terms(np.array([mean]), pair_terms(tables, probabilities))[
        0
    ] == pytest.approx(0.6, abs=2e-3)


def test_products_beyond_what_is_possible_give_the_ends():
    probabilities = [MARGINALS["many"]] * 2
    tables = [score_table(p, 1.0) for p in probabilities]
    found = correlation_of_terms(np.array([7.0]), pair_terms(tables, probabilities))
    assert found[0] == pytest.approx(1, abs=1e-3)
    assert correlation_of_terms(np.array([-7.0]), pair_terms(tables, probabilities))[
        0
    ] == pytest.approx(-1, abs=1e-3)


def test_the_slope_is_the_derivative_of_the_mean_product():
    probabilities = [MARGINALS["geometric"], MARGINALS["three"]]
    tables = [score_table(p, 1.5) for p in probabilities]
    step = 1e-3
    rise = exact_mean(*probabilities, tables, 0.4 + step) - exact_mean(
        *probabilities, tables, 0.4 - step
    )
    found = slope_of_terms(np.array([0.4]), pair_terms(tables, probabilities))[0]
    assert found == pytest.approx(rise / (2 * step), rel=0.02)


@pytest.mark.parametrize("steepness", [1.0, 3.0, inf])
@pytest.mark.parametrize("name", MARGINALS)
def test_scores_rise_with_the_rank_and_stay_within_the_unit(steepness, name):
    table = score_table(MARGINALS[name], steepness)
    assert np.all(np.diff(table) >= 0)
    assert np.abs(table).max() <= SCORE_UNIT


@pytest.mark.parametrize("steepness", [1.0, inf])
def test_values_without_any_probability_have_scores(steepness):
    table = score_table(np.array([0.0, 0.5, 0.0, 0.5, 0.0]), steepness)
    assert table[0] <= table[1] <= table[2] <= table[3] <= table[4]
    assert table[2] == 0
    assert score_table(np.array([1.0]), steepness).tolist() == [0]


@pytest.mark.parametrize(
    ("records", "epsilon", "columns"), [(50_000, 0.01, 8), (50_000, 0.2, 4), (10**6, 1.0, 20)]
)
def test_the_chosen_steepness_is_the_most_certain_in_simulation(records, epsilon, columns):
    chosen = best_steepness(records, epsilon, columns)
    draws = plain_generator(4)
    probabilities = np.full(512, 1 / 512)

    def error(steepness):
        table = score_table(probabilities, steepness)
        codes = np.minimum((ndtr(draws.standard_normal((2, 400_000))) * 512).astype(int), 511)
        deviation = (table[codes[0]] * table[codes[1]] / SCORE_UNIT**2).std() / np.sqrt(records)
        noise = np.sqrt(2) * comb(columns, 2) / epsilon / records
        slope = slope_of_terms(np.zeros(1), pair_terms([table] * 2, [probabilities] * 2))[0]
        return np.hypot(deviation, noise) / slope

    assert error(chosen) <= 1.03 * min(error(other) for other in (1.0, 1.5, 3.0, inf))
