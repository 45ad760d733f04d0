"""Continuous noise: its distributions, and how close each draw is to a real number."""

from fractions import Fraction
from math import log

import numpy as np
import pytest
from scipy import stats

from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.mechanisms import continuous_noise as module
from dpublish.mechanisms.continuous_noise import (
    continuous_noise,
    noise_error,
    noise_length,
    noise_variance,
    root_above,
)
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded

DRAWS = 20_000
SURE = 1e-6


class Words:
    """A source that hands out the given words, then those of a seed."""

    def __init__(self, words, seed=1):
        self.given = list(words)
        self.rest = seeded(seed)

    def words(self, count):
        found = [self.given.pop(0) for _ in range(min(count, len(self.given)))]
        return np.concatenate(
            [np.array(found, dtype=np.uint64), self.rest.words(count - len(found))]
        )


def draw(shape, dimensions, rng, epsilon="1/2", sensitivity=Fraction(3), **further):
    budget = Budget.seeded(Fraction(epsilon))
    return continuous_noise(
        shape, dimensions, sensitivity=sensitivity, budget=budget, rng=rng, **further
    )


def test_coordinates_of_laplace_noise_have_the_laplace_distribution(rng):
    found = draw("laplace", DRAWS, rng)
    assert stats.kstest(found, stats.laplace(scale=6).cdf).pvalue > SURE
    assert stats.kstest(found, stats.laplace(scale=7).cdf).pvalue < SURE  # a twin is caught


@pytest.mark.parametrize("dimensions", [1, 2, 5])
def test_lengths_of_spherical_noise_have_the_gamma_distribution(dimensions, rng):
    found = np.array([draw("spherical", dimensions, rng) for _ in range(4000)])
    lengths = np.linalg.norm(found, axis=1)
    assert stats.kstest(lengths, stats.gamma(dimensions, scale=6).cdf).pvalue > SURE
    twin = stats.gamma(dimensions, scale=7)
    assert stats.kstest(lengths, twin.cdf).pvalue < SURE
    if dimensions == 2:
        angles = np.arctan2(found[:, 1], found[:, 0])
        assert stats.kstest(angles, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > SURE


def test_a_short_vector_of_normals_would_be_caught_as_a_twin(rng):
    """The length comes from one normal number more than there are dimensions."""
    twin = [module._normals(2, rng) * np.linalg.norm(module._normals(2, rng)) for _ in range(4000)]
    lengths = np.linalg.norm(twin, axis=1)
    assert stats.kstest(lengths, stats.gamma(2).cdf).pvalue < SURE


@pytest.mark.parametrize("shape", ["laplace", "spherical"])
def test_variances_are_as_predicted(shape, rng):
    found = np.array([draw(shape, 4, rng, sensitivity=Fraction(1, 2)) for _ in range(DRAWS // 4)])
    assert found.var() == pytest.approx(noise_variance(shape, 4), rel=0.1)
    assert np.linalg.norm(found, axis=1).max() < noise_length(4, Fraction(1))


def test_exponential_numbers_are_halved_as_often_as_the_coins_say():
    high, low, coins = 1 << 63, 5, 1 << 61  # a quarter of the way, two zeros before the first 1
    found = module._exponentials(1, Words([high, low, coins]))
    assert found[0] == pytest.approx(2 * log(2) - log(1 - 0.25), rel=1e-15)
    endless = module._exponentials(1, Words([high, low, 0, 0, coins]))
    assert endless[0] == pytest.approx((53 * 2 + 2) * log(2) - log(1 - 0.25), rel=1e-15)


@pytest.mark.parametrize("words", [[0, 1], [1, 0], [1 << 63, 0], [(1 << 64) - 1] * 2])
def test_draws_are_within_the_stated_error_of_more_precise_ones(words):
    """The same words, evaluated with longer floats."""
    coins, turn = 1 << 63, 3 << 61
    found = module._normals(2, Words([*words, coins, turn]))
    wide = np.longdouble
    part = wide(words[0]) * wide(2) ** -65 + wide(words[1]) * wide(2) ** -129
    length = np.sqrt(-2 * np.log1p(-part))
    angle = 2 * wide("3.14159265358979323846264338327950288") * wide(turn) / wide(2) ** 64
    exact = np.array([length * np.cos(angle), length * np.sin(angle)])
    assert np.linalg.norm((found - exact).astype(float)) <= 2.0**-46 * float(length) + 2.0**-62


def test_laplace_draws_lie_in_the_middle_of_cells_far_finer_than_the_noise(rng):
    error = noise_error("laplace", 1, Fraction(6))
    found = draw("laplace", 1000, rng)
    assert (found / 2.0**-29 % 1 == 0.5).all()  # so the cells are at least 2^-29 wide
    assert 2.0**-30 <= error <= 2.0**-28
    assert noise_error("spherical", 100, Fraction(1)) < 2.0**-25


def test_the_reserve_makes_noise_wider_and_the_budget_opens_once(rng):
    budget = Budget.seeded(1)
    given = {"sensitivity": Fraction(1), "reserve": Fraction(1, 2)}
    found = continuous_noise("laplace", DRAWS, budget=budget, rng=rng, **given)
    assert stats.kstest(found, stats.laplace(scale=2).cdf).pvalue > SURE
    with pytest.raises(BudgetAlreadyUsed):
        continuous_noise("laplace", 1, budget=budget, rng=rng, **given)


def test_what_cannot_be_drawn_is_refused_before_the_budget_opens(rng):
    budget = Budget.seeded("1/2")
    for shape, size, more in [
        ("gauss", 1, {}),
        ("laplace", 0, {}),
        ("laplace", 1 << 21, {}),
        ("laplace", 1, {"reserve": Fraction(1, 2)}),
        ("laplace", 1, {"sensitivity": Fraction(1 << 101)}),
    ]:
        with pytest.raises(InvalidParameter):
            continuous_noise(shape, size, budget=budget, rng=rng, **{"sensitivity": 1, **more})
    assert not budget.is_used


def test_roots_are_rounded_up():
    for number in (1, 2, 3, 10**6, Fraction(1, 3)):
        assert 0 < root_above(number) ** 2 - number < number * Fraction(1, 10**5) + Fraction(1, 500)
