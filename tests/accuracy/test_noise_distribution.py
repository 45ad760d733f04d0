"""The distribution of the noise in floats is the one that is drawn; its quantiles hold."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.accuracy import noise_distribution
from dpublish.accuracy.noise_distribution import (
    Terms,
    noise_pmf,
    noise_survival,
    noise_variance,
    quantile,
    sum_quantile,
)
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.exact.sampler import discrete_laplace
from dpublish.randomness import seeded
from noise_oracle import two_sided_survival


@pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(1), Fraction(5)], ids=str)
def test_mass_survival_and_variance_belong_together(rate):
    values = np.arange(-1500, 1501)
    mass = noise_pmf(rate, values)
    assert mass.sum() == pytest.approx(1)
    assert noise_survival(rate, values) == pytest.approx(mass[::-1].cumsum()[::-1])
    assert noise_survival(rate, values) == pytest.approx(two_sided_survival(rate, values))
    assert noise_variance(rate) == pytest.approx((mass * values**2).sum())


def test_extreme_rates_neither_overflow_nor_vanish():
    assert noise_variance(Fraction(5000)) == 0
    assert noise_variance(Fraction(1, 2**40)) == pytest.approx(2.0**81)
    assert sum_quantile(Fraction(5000), 3, 0.999) == 0


def convolved_quantile(rate, terms, confidence):
    """The smallest q with P(|sum| <= q) >= confidence, by plain convolution."""
    single = noise_pmf(rate, np.arange(-600, 601))
    distribution = single
    for _ in range(terms - 1):
        distribution = np.convolve(distribution, single)
    center = len(distribution) // 2
    within = distribution[center] + np.concatenate([[0], 2 * distribution[center + 1 :].cumsum()])
    return int(np.argmax(within >= confidence))


@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.9, 0.95, 0.999999])
@pytest.mark.parametrize("terms", [1, 2, 3, 10])
@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(2, 3), Fraction(3)], ids=str)
def test_quantiles_of_sums_are_those_of_the_convolution(rate, terms, confidence):
    assert sum_quantile(rate, terms, confidence) == convolved_quantile(rate, terms, confidence)


def test_sums_of_equal_weight_and_different_rates_are_those_of_the_convolution():
    rates = (0.1, 0.25, 0.25)
    distribution = np.ones(1)
    for rate in rates:
        distribution = np.convolve(distribution, noise_pmf(rate, np.arange(-600, 601)))
    center = len(distribution) // 2
    within = distribution[center] + np.concatenate([[0], 2 * distribution[center + 1 :].cumsum()])
    for confidence in (0.5, 0.95, 0.999):
        terms = Terms.gather(np.full(3, 2.0), np.array(rates))
        assert quantile(terms, confidence) == 2 * int(np.argmax(within >= confidence))


@pytest.mark.parametrize("terms", [1, 40])
def test_sums_of_drawn_noise_stay_within_as_often_as_guaranteed(terms):
    sums = (
        discrete_laplace(Fraction(1, 30), 20_000 * terms, seeded(1)).reshape(-1, terms).sum(axis=1)
    )
    inside = np.abs(sums) <= sum_quantile(Fraction(1, 30), terms, 0.9)
    assert inside.mean() == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize(("terms", "excess"), [(2, 0.01), (100, 0.1), (10_000, 0.4)])
def test_where_the_lattice_is_too_long_the_bound_is_safe_and_close(terms, excess, monkeypatch):
    rate = Fraction(1, 5000)
    exact = sum_quantile(rate, terms, 0.95)
    monkeypatch.setattr(noise_distribution, "LONGEST_LATTICE", 1 << 15)
    anew = noise_distribution._lattice_quantile.__wrapped__  # not the one that is remembered
    bound = anew((float(rate),), (float(terms),), 0.95)
    assert exact < bound < exact * (1 + excess)


def test_very_wide_noise_and_extreme_confidence_are_bounded():
    wide = sum_quantile(Fraction(1, 10**7), 100, 0.95)
    assert wide == pytest.approx(1.97 * (100 * noise_variance(1e-7)) ** 0.5, rel=0.01)
    rate, risk = Fraction(1, 2), 1e-13
    assert sum_quantile(rate, 2, 1 - risk) >= convolved_quantile(rate, 2, 1 - 1e-11)


def test_chernoff_holds_everywhere_it_can_be_checked():
    for terms in (2, 5, 30):
        for confidence in (0.5, 0.9, 0.999):
            noise = Terms.alike(0.3, terms)
            (bound,) = noise_distribution._chernoff(noise, 0.0, 1 - confidence)
            assert bound >= convolved_quantile(0.3, terms, confidence)


@pytest.mark.parametrize("bad", [{"rate": 0}, {"terms": 0}, {"confidence": 1}, {"confidence": 0}])
def test_settings_out_of_range_are_refused(bad):
    with pytest.raises(InvalidParameter, match=next(iter(bad))):
        sum_quantile(**{"rate": 1, "terms": 1, "confidence": 0.9} | bad)
