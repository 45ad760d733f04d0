"""Tau of classes of normal variables: exact, ties or not, and turned back into correlations."""

from math import asin, pi

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import multivariate_normal

from dpublish.methods.dpcopula.latent_correlation import (
    class_of_values,
    classed_column,
    correlation_of_terms,
    slope_of_terms,
    tau_terms,
)

BINARY = np.array([0.3, 0.7])
FIVE = np.array([0.1, 0.3, 0.2, 0.25, 0.15])
GEOMETRIC = 0.7 ** np.arange(20) / (0.7 ** np.arange(20)).sum()
EVEN = np.full(1000, 1e-3)


def terms_of(*probabilities, most=128):
    return tau_terms([classed_column(x, most) for x in probabilities])


def tau_at(correlation, terms):
    return terms @ correlation ** np.arange(terms.shape[1])


def plain_tau(one, other, correlation):
    """Add up over all pairs of pairs of classes."""
    cuts = [np.clip(ndtri(np.append(0, np.cumsum(x)).clip(0, 1)), -9, 9) for x in (one, other)]
    grid = np.array([[(a, b) for b in cuts[1]] for a in cuts[0]])
    distribution = multivariate_normal([0, 0], [[1, correlation], [correlation, 1]])
    below = distribution.cdf(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    probabilities = np.diff(np.diff(below, axis=0), axis=1)
    signs = [np.sign(np.subtract.outer(np.arange(x.size), np.arange(x.size))) for x in (one, other)]
    return float(((signs[0] @ probabilities @ signs[1].T) * probabilities).sum())


@pytest.mark.parametrize("correlation", [-0.9, -0.4, 0.0, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("pair", [(BINARY, BINARY), (BINARY, FIVE), (FIVE, GEOMETRIC)])
def test_tau_equals_a_sum_over_all_classes(pair, correlation):
    found = tau_at(correlation, terms_of(*pair))[0]
    assert found == pytest.approx(plain_tau(*pair, correlation), abs=2e-4)


@pytest.mark.parametrize("correlation", [-0.95, -0.5, 0.2, 0.8, 0.95])
def test_many_classes_come_near_the_arc_sine(correlation):
    found = tau_at(correlation, terms_of(EVEN, EVEN))[0]
    assert found == pytest.approx(2 / pi * asin(correlation), abs=0.012)


def test_at_the_ends_only_ties_matter():
    terms = terms_of(BINARY, BINARY)
    both = 2 * 0.3 * 0.7
    assert tau_at(1.0, terms)[0] == pytest.approx(both)
    assert tau_at(-1.0, terms)[0] == pytest.approx(-(1 - 2 * (0.09 + 0.49) + 0.09 + 0.09 + 0.16))


@pytest.mark.parametrize("probabilities", [BINARY, FIVE, GEOMETRIC, EVEN])
def test_correlations_are_found_again(probabilities):
    terms = terms_of(probabilities, probabilities)
    for correlation in (-0.9, -0.3, 0.0, 0.6, 0.95):
        found = correlation_of_terms(tau_at(correlation, terms), terms)
        assert found[0] == pytest.approx(correlation, abs=5e-3)
    assert correlation_of_terms(np.array([3.0]), terms)[0] == pytest.approx(1)
    assert correlation_of_terms(np.array([-3.0]), terms)[0] == pytest.approx(-1)


def test_the_slope_is_that_of_tau():
    terms = terms_of(FIVE, GEOMETRIC)
    for correlation in (-0.5, 0.0, 0.7):
        rise = (tau_at(correlation + 1e-5, terms) - tau_at(correlation - 1e-5, terms)) / 2e-5
        assert slope_of_terms(np.array([correlation]), terms) == pytest.approx(rise, rel=1e-6)


def test_classes_are_neighboring_values_of_nearly_equal_probability():
    rng = np.random.Generator(np.random.Philox(key=2))
    for probabilities in (EVEN, rng.dirichlet(np.full(500, 0.1)), np.eye(300)[7]):
        classes = class_of_values(probabilities, 16)
        assert set(np.diff(classes)) <= {0, 1}
        assert classes[0] == 0
        assert classes[-1] < 16
        sizes = np.bincount(classes, weights=probabilities)
        shared = np.bincount(classes, weights=probabilities > 0) > 1
        assert (sizes[shared] < 2 / 16 + 2 * probabilities.max()).all()
    assert class_of_values(FIVE, 16).tolist() == [0, 1, 2, 3, 4]


def test_columns_that_do_not_vary_say_nothing_and_break_nothing():
    terms = terms_of(np.array([0.0, 1.0, 0.0]), FIVE)
    assert np.abs(terms).max() < 1e-9
    assert np.isfinite(correlation_of_terms(np.array([0.2]), terms)).all()
