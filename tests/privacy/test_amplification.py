"""What a sample allows: never more than is proved, hardly less, and checked by enumeration."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import comb

import numpy as np
import pytest

from dpublish.accuracy.noise_distribution import noise_pmf
from dpublish.privacy import amplification
from dpublish.privacy.amplification import RATE_BITS, amplified_epsilon, sampling_rate
from dpublish.privacy.exponentials import Bounds, exp_bounds
from dpublish.testing import privacy_loss

CASES = [
    (Fraction(epsilon), Fraction(rate))
    for epsilon in ("0.000001", "0.1", "1", "1/3", "20", "700")
    for rate in ("0.001", "1/7", "0.5", "1")
]
# Whose logarithms, taken in floats, are a step too large: without the check, too much is spent.
TOO_LARGE = [
    (Fraction(epsilon), Fraction(rate))
    for epsilon, rate in (("3/2", "1/10"), ("2", "1/3"), ("31/5", "1/7"), ("67/10", "1/1000"))
]


def exact_value(epsilon, rate):
    with localcontext() as context:
        context.prec = 700
        grown = (Decimal(epsilon.numerator) / epsilon.denominator).exp() - 1
        return Fraction((1 + grown * rate.denominator / rate.numerator).ln())


@pytest.mark.parametrize(("epsilon", "rate"), CASES + TOO_LARGE)
def test_it_is_the_exact_value_rounded_down(epsilon, rate):
    found, exact = amplified_epsilon(epsilon, rate), exact_value(epsilon, rate)
    assert epsilon <= found <= max(exact, epsilon)
    assert found >= exact - Fraction(1, 10**9)


@pytest.mark.parametrize(("epsilon", "rate"), TOO_LARGE)
def test_a_logarithm_that_a_float_rounds_up_would_spend_too_much(epsilon, rate, monkeypatch):
    asked = []

    def unchecked(exponent, bits):
        """Enclose what e^epsilon is computed from, and let all that follows pass the check."""
        asked.append(exponent)
        return exp_bounds(exponent, bits) if len(asked) == 1 else Bounds(1 << bits, 1 << bits)

    monkeypatch.setattr(amplification, "exp_bounds", unchecked)
    assert amplified_epsilon(epsilon, rate) > exact_value(epsilon, rate)
    assert len(asked) == 2


@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(1)])
def test_so_large_an_epsilon_gains_nothing_from_a_sample(rate):
    assert amplified_epsilon(Fraction(2001, 2), rate) == Fraction(2001, 2)
    assert amplified_epsilon(Fraction(1000), Fraction(1, 1000)) > 1000


def sampled_distribution(records, epsilon, rate):
    """Give the distribution of a noisy count of a sample."""
    grid = np.arange(-60, 70)
    distribution = np.zeros(grid.size)
    for kept in range(records + 1):
        probability = (
            comb(records, kept) * float(rate) ** kept * float(1 - rate) ** (records - kept)
        )
        distribution += probability * noise_pmf(epsilon, grid - kept)
    return dict(zip(grid.tolist(), distribution.tolist(), strict=True))


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2)])
def test_a_sampled_count_loses_what_was_paid_and_a_greedy_one_more(rate):
    epsilon = Fraction(3, 10)
    inner = amplified_epsilon(epsilon, rate)
    loss = privacy_loss(sampled_distribution(3, inner, rate), sampled_distribution(4, inner, rate))
    assert float(epsilon) * 0.999 < loss <= float(epsilon) + 1e-9
    greedy = epsilon / rate
    broken = privacy_loss(
        sampled_distribution(3, greedy, rate), sampled_distribution(4, greedy, rate)
    )
    assert broken > float(epsilon) * 1.05


RATES = [
    (Fraction(epsilon), Fraction(spent))
    for epsilon, spent in (("0.01", "1"), ("1/3", "1/2"), ("1", "20"), ("0.000001", "3"))
]


@pytest.mark.parametrize(("epsilon", "spent"), RATES)
def test_a_rate_is_the_exact_one_rounded_down_to_its_bits(epsilon, spent):
    rate, step = sampling_rate(epsilon, spent), Fraction(1, 1 << RATE_BITS)
    with localcontext() as context:
        context.prec = 200
        least, most = ((Decimal(x.numerator) / x.denominator).exp() - 1 for x in (epsilon, spent))
        exact = Fraction(least / most)
    assert rate <= exact < rate + step
    assert rate % step == 0


def test_all_are_sampled_where_no_more_is_spent_than_it_may_cost():
    for spent in (Fraction(1), Fraction(1, 2)):
        assert sampling_rate(Fraction(1), spent) == 1
    assert sampling_rate(Fraction(1), Fraction(1001, 1000)) < 1


def test_none_are_sampled_where_the_rate_is_below_its_last_bit():
    assert sampling_rate(Fraction(1, 10**30), Fraction(1)) == 0
    assert sampling_rate(Fraction(1, 10**300), Fraction(1)) == 0
